/**
 * Server-sent events one way, POST the other.
 *
 * The stream is resumed where it broke off, so that a short loss of the network is not noticed.
 * Messages are posted one after the other, since their order means something.
 */

import { Fault } from "../fault.js";
import { Transport, type Link, type LinkEvents, type TransportLimits } from "../transport.js";
import { PROTOCOL, writeFarewell } from "../wire.js";
import { EventParser } from "./event-parser.js";

/** How a stream of events is opened. */
export interface EventStreamOptions extends TransportLimits {
  /** A token, sent as a bearer. */
  token?: string | undefined;
  /** For servers that are not Wharf's: faults and calls from within a call are off. */
  plain?: boolean | undefined;
  /** How long a stream that broke off is tried again before it is given up. */
  resumeMs?: number | undefined;
  /** What fetches, if not the platform's `fetch`. */
  fetch?: typeof fetch | undefined;
}

const RESUME_MS = 25_000;
const PAUSE_MS = 200;
const PAUSE_MS_MAX = 2_000;
const POST_TRIES_MAX = 3;
const POST_MS = 30_000;
const QUEUE_BYTES_MAX = 64 * 1024 * 1024;
/** A stream says something at least every 15 seconds. */
const SILENCE_MS = 45_000;

/** Opens a stream of events to the other side of tools. */
export async function eventStream(url: string | URL, options: EventStreamOptions = {}): Promise<Transport> {
  const { token, plain = false, resumeMs = RESUME_MS, fetch: given, ...limits } = options;
  const address = new URL(url);
  if (!plain) address.searchParams.set("protocol", PROTOCOL);
  if (!plain && !address.searchParams.has("session")) address.searchParams.set("session", randomName());
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const link = new EventLink(address, headers, !plain, resumeMs, given ?? fetch.bind(globalThis));
  await link.open();
  return new Transport(link, limits);
}

interface Unsent {
  text: string;
  failed: ((fault: Fault) => void) | undefined;
}

class EventLink implements Link {
  readonly own: boolean;
  readonly bare = true;
  readonly #url: URL;
  readonly #headers: Record<string, string>;
  readonly #resumeMs: number;
  readonly #fetch: typeof fetch;
  readonly #stop = new AbortController();
  readonly #queue: Unsent[] = [];
  #queued = 0;
  #posting: Promise<void> | undefined;
  #lastId = "";
  #body: ReadableStream<Uint8Array> | undefined;
  #events: LinkEvents | undefined;

  constructor(url: URL, headers: Record<string, string>, own: boolean, resumeMs: number, fetcher: typeof fetch) {
    this.#url = url;
    this.#headers = headers;
    this.own = own;
    this.#resumeMs = resumeMs;
    this.#fetch = fetcher;
  }

  get unsent(): number {
    return this.#queued;
  }

  async open(): Promise<void> {
    const headers: Record<string, string> = { ...this.#headers, accept: "text/event-stream" };
    if (this.#lastId !== "") headers["last-event-id"] = this.#lastId;
    const { signal } = this.#stop;
    let response: Response;
    try {
      response = await this.#fetch(this.#url, { headers, signal, cache: "no-store" });
    } catch (error) {
      throw lost("The stream could not be opened.", error);
    }
    if (!response.ok || !response.body) throw await refusal(response);
    this.#body = response.body;
  }

  start(events: LinkEvents): void {
    this.#events = events;
    void this.#readOn();
  }

  send(text: string, failed?: (fault: Fault) => void): void {
    if (this.#stop.signal.aborted) return;
    if (this.#queued + text.length > QUEUE_BYTES_MAX) return this.#end(lost("The other side is too slow."));
    this.#queue.push({ text, failed });
    this.#queued += text.length;
    this.#posting ??= this.#postAll();
  }

  /** Sends what waits, and ends. */
  async close(): Promise<void> {
    // Otherwise the session is kept for a while, in case that somebody comes back to it.
    if (this.own) this.send(writeFarewell());
    const patience = pause(POST_MS / 10, this.#stop.signal);
    await Promise.race([this.#posting, patience]);
    this.#end(lost("The connection was closed here."));
  }

  #end(fault: Fault): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(fault);
    this.#events?.end(fault);
  }

  async #readOn(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#readBody();
      const fault = await this.#resume();
      if (fault) return this.#end(fault);
    }
  }

  /** Reads until the stream breaks off. */
  async #readBody(): Promise<void> {
    const reader = this.#body?.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    if (!reader) return;
    try {
      for (;;) {
        const { value, done } = await within(SILENCE_MS, reader.read());
        if (done) return;
        for (const event of parser.push(decoder.decode(value, { stream: true }))) {
          if (event.id !== "") this.#lastId = event.id;
          this.#events?.text(event.data);
        }
      }
    } catch {
      // The stream is opened again, and goes on behind the last event.
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  async #resume(): Promise<Fault | undefined> {
    const { signal } = this.#stop;
    const until = Date.now() + this.#resumeMs;
    for (let wait = PAUSE_MS; !signal.aborted; wait = Math.min(wait * 2, PAUSE_MS_MAX)) {
      try {
        await this.open();
        return undefined;
      } catch (error) {
        const fault = Fault.from(error);
        if (!fault.retryable || Date.now() > until) return lost(`The stream was lost: ${fault.message}`, fault);
      }
      await pause(wait, signal);
    }
    return undefined;
  }

  async #postAll(): Promise<void> {
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      const { text, failed } = next;
      const fault = await this.#post(text, failed ? 1 : POST_TRIES_MAX);
      this.#queued -= text.length;
      if (fault && failed) failed(fault);
      else if (fault) this.#end(fault);
      if (this.#stop.signal.aborted) break;
    }
    this.#posting = undefined;
  }

  /** Posts one message. What must not arrive twice is tried once. */
  async #post(body: string, triesMax: number): Promise<Fault | undefined> {
    let fault: Fault | undefined;
    for (let tries = 1; tries <= triesMax && !this.#stop.signal.aborted; tries += 1) {
      try {
        const headers = { ...this.#headers, "content-type": "application/json" };
        const response = await this.#fetch(this.#url, { method: "POST", headers, body, signal: AbortSignal.timeout(POST_MS) });
        if (response.ok) {
          await response.arrayBuffer();
          return undefined;
        }
        fault = await refusal(response);
      } catch (error) {
        fault = lost("A message could not be sent.", error);
      }
      if (!fault.retryable) return fault;
      if (tries < triesMax) await pause(PAUSE_MS * tries, this.#stop.signal);
    }
    return fault;
  }
}

/** Why a server said no: its own words if it has them. */
async function refusal(response: Response): Promise<Fault> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = (body as { error?: unknown } | undefined)?.error;
  if (typeof error === "object" && error !== null) return Fault.read(error);
  const retryable = response.status >= 500 || response.status === 429;
  return new Fault("transport.lost", `The other side answered with status ${response.status}.`, { retryable });
}

function lost(message: string, cause?: unknown): Fault {
  return new Fault("transport.lost", message, { retryable: true, cause });
}

/** A name that nobody guesses. */
function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("Nothing came in time.")), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
