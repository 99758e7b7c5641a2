// What changed, as it changes. One tab holds the socket; the others hear of it from that tab. There is no history: after a
// gap everything that is shown is read again.
import { signal } from "@preact/signals";
import { sessionKey } from "./client";
import { recheck } from "./session";

export type Change = { kind: "RUN" | "ASK" | "PROVIDER" | "WORLD" | "TOKEN"; world?: string | null; id: string; seq: number; status: string };
export type Frame = { reset: boolean; items: Change[] };
type Listener = (frame: Frame) => void;

/** How the feed is: off where the core has none, and then lists are read again every few seconds. */
export const feed = signal<"starting" | "live" | "away" | "off">("starting");
/** Since when it has been away. */
export const awaySince = signal<number | undefined>(undefined);

const listeners = new Set<Listener>();
const seen = new Map<string, number>();
const SEEN_MAX = 20_000;

export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(frame: Frame): void {
  if (frame.reset) seen.clear();
  const all = frame.items.map((c) => ({ ...c, kind: c.kind.toUpperCase() as Change["kind"], seq: Number(c.seq) }));
  const items = all.filter((c) => {
    const key = `${c.kind} ${c.world ?? ""} ${c.id}`;
    if ((seen.get(key) ?? -1) >= c.seq) return false;
    if (seen.size > SEEN_MAX) seen.clear();
    seen.set(key, c.seq);
    return true;
  });
  if (!frame.reset && items.length === 0) return;
  for (const listener of [...listeners]) listener({ reset: frame.reset, items });
}

type Word = { frame: Frame } | { state: "live" | "away" | "off" } | { hello: true };
let channel: BroadcastChannel | undefined;
let stopped: (() => void) | undefined;

function setState(state: "live" | "away" | "off"): void {
  if (state === "away") awaySince.value ??= Date.now();
  else awaySince.value = undefined;
  // Whoever comes back may be another core.
  if (state === "live" && feed.value === "away") void recheck();
  feed.value = state;
}

/** Starts listening; gives back what stops it. */
export function startLive(): () => void {
  stopLive();
  const end = new AbortController();
  channel = "BroadcastChannel" in window ? new BroadcastChannel("wharf-live") : undefined;
  let leading = false;
  channel?.addEventListener("message", (event: MessageEvent<Word>) => {
    const word = event.data;
    if ("hello" in word) {
      if (leading) channel?.postMessage({ state: feed.value } as Word);
    } else if (!leading && "frame" in word) tell(word.frame);
    else if (!leading && "state" in word && (word.state as string) !== "starting") setState(word.state);
  });
  const lead = (): Promise<void> => {
    leading = true;
    return hold(end.signal, (word) => {
      if ("frame" in word) tell(word.frame);
      else if ("state" in word) setState(word.state);
      channel?.postMessage(word);
    });
  };
  if (navigator.locks) {
    navigator.locks.request("wharf-live", { signal: end.signal }, lead).catch(() => {});
    channel?.postMessage({ hello: true } as Word);
  } else void lead();
  stopped = () => {
    end.abort();
    channel?.close();
    channel = undefined;
    feed.value = "starting";
  };
  return stopLive;
}

export function stopLive(): void {
  stopped?.();
  stopped = undefined;
}

const QUERY = "subscription { changes { reset items { kind world id seq status } } }";

/** Keeps one socket until told to stop; comes back by itself, with growing pauses. */
async function hold(end: AbortSignal, say: (word: Word) => void): Promise<void> {
  let pause = 250;
  while (!end.aborted) {
    const how = await connect(end, say, () => (pause = 250));
    if (end.aborted) return;
    if (how === "off") {
      say({ state: "off" });
      await wait(30_000, end);
      continue;
    }
    say({ state: "away" });
    if (how === "refused") await recheck();
    await wait(pause * (0.75 + Math.random() / 2), end);
    pause = Math.min(pause * 2, 10_000);
  }
}

function wait(ms: number, end: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    end.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
    addEventListener("online", () => (clearTimeout(timer), done()), { once: true });
  });
}

function connect(end: AbortSignal, say: (word: Word) => void, well: () => void): Promise<"closed" | "refused" | "off"> {
  return new Promise((done) => {
    const key = sessionKey();
    const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/graphql`;
    const socket = new WebSocket(url, key ? ["graphql-transport-ws", `wharf.session.${key}`] : ["graphql-transport-ws"]);
    let result: "closed" | "off" = "closed";
    const stop = () => socket.close(1000);
    end.addEventListener("abort", stop, { once: true });
    socket.onopen = () => socket.send(JSON.stringify({ type: "connection_init" }));
    socket.onmessage = (event) => {
      const word = JSON.parse(String(event.data)) as { type: string; payload?: { data?: { changes?: Frame } } };
      if (word.type === "connection_ack") socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: QUERY } }));
      else if (word.type === "ping") socket.send(JSON.stringify({ type: "pong" }));
      else if (word.type === "next" && word.payload?.data?.changes) {
        well();
        say({ state: "live" });
        say({ frame: word.payload.data.changes });
      } else if (word.type === "error") {
        result = "off";
        socket.close(1000);
      } else if (word.type === "complete") socket.close(1000);
    };
    socket.onclose = (event) => {
      end.removeEventListener("abort", stop);
      done(event.code === 4401 || event.code === 4403 ? "refused" : result);
    };
  });
}
