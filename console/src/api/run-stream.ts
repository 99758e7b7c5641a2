// A run's own stream: every event once, in order, live. Nothing is lost and nothing is doubled, also over a restart of the core.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { parse, type Json, type Obj } from "../lib/json";
import { OutputLog } from "../lib/output";
import { ApiError } from "./client";
import { follow } from "./stream";
import type { Ask, Event } from "./types";

export type Phase = { phase: string; fraction?: number | null; at: string };

export class RunStream {
  readonly log = new OutputLog();
  readonly events: Event[] = [];
  readonly phases = new Map<string, Phase>();
  readonly partials = new Map<string, { value: Json; at: string }>();
  readonly asks = new Map<string, { ask: Ask; at: string; decided?: { at: string; decision: string; by: string } }>();
  readonly attempts: { attempt: number; from: string; to?: string; reason?: string; executed?: string }[] = [];
  readonly queued: { at: string; reason?: string }[] = [];
  last = 0;
  finished = false;

  /** Takes one event, and how it was written; what came before is left out. */
  take(e: Event, written: string): void {
    if (e.seq <= this.last) return;
    this.last = e.seq;
    this.events.push(e);
    const text = (k: string) => (typeof e[k] === "string" ? (e[k] as string) : "");
    switch (e.type) {
      case "text":
        this.log.push(text("channel") || "stdout", e.at, text("text"));
        break;
      case "log":
        this.log.entry("log", e.at, text("level") ? `${text("level")}: ${text("text")}` : text("text"));
        break;
      case "progress":
        this.phases.set(text("phase"), { phase: text("phase"), fraction: e["fraction"] as number | null, at: e.at });
        break;
      case "partial":
        // A number stays as it was written.
        this.partials.set(text("key"), { value: (parse(written) as Obj).get("value") ?? null, at: e.at });
        break;
      case "queued":
        this.queued.push({ at: e.at, reason: text("reason") });
        break;
      case "started":
      case "attempt": {
        const open = this.attempts.at(-1);
        if (open && open.to === undefined) {
          open.to = e.at;
          open.reason = text("reason");
          open.executed = text("executed");
        }
        if (Number(e["attempt"]) > 0 && open?.attempt !== Number(e["attempt"])) this.attempts.push({ attempt: Number(e["attempt"]), from: e.at });
        break;
      }
      case "question":
      case "approval":
        this.asks.set(text("ask_id"), { ask: e as unknown as Ask, at: e.at });
        break;
      case "decided": {
        const known = this.asks.get(text("ask_id"));
        if (known) known.decided = { at: e.at, decision: text("decision"), by: text("by") };
        break;
      }
      case "finished": {
        const open = this.attempts.at(-1);
        if (open && open.to === undefined) open.to = e.at;
        this.finished = true;
        break;
      }
    }
  }
}

/** Follows a run while its screen is open and seen. */
export function useRunStream(world: string, id: string, onEnd: () => void) {
  const s = useMemo(() => ({ stream: new RunStream(), version: signal(0), state: signal<"starting" | "open" | "away" | "over">("starting"), error: signal<ApiError | undefined>(undefined) }), [world, id]);
  useEffect(() => {
    let end: AbortController | undefined;
    let frame = 0;
    let hidden: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        s.version.value += 1;
      });
    };
    const begin = () => {
      if (end || s.stream.finished) return;
      const mine = (end = new AbortController());
      void follow({
        path: `/v1/runs/${encodeURIComponent(id)}/events`,
        params: { world },
        after: s.stream.last,
        signal: mine.signal,
        state: (state) => (s.state.value = state),
        over: (m) => m.event === "finished",
        batch: (messages) => {
          for (const m of messages) {
            try {
              s.stream.take({ ...(JSON.parse(m.data) as Event), type: m.event }, m.data);
            } catch {
              // What cannot be read is no event.
            }
          }
          draw();
        },
      }).then(
        () => {
          if (mine.signal.aborted) return;
          s.state.value = "over";
          draw();
          onEnd();
        },
        (error) => (s.error.value = error instanceof ApiError ? error : undefined),
      );
    };
    const stop = () => {
      end?.abort();
      end = undefined;
    };
    // A browser opens few connections to one host: a tab that nobody sees gives its own back after a while.
    const seen = () => {
      if (document.hidden) hidden = setTimeout(stop, 20_000);
      else {
        clearTimeout(hidden);
        begin();
      }
    };
    begin();
    document.addEventListener("visibilitychange", seen);
    return () => (stop(), clearTimeout(hidden), cancelAnimationFrame(frame), document.removeEventListener("visibilitychange", seen));
  }, [world, id]);
  return s;
}
