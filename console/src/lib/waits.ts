// Why a run does not move, in words. What its provider or its last attempt said comes apart, since others wrote it.
import { at, relative } from "./format";

export type Wait = { kind: string; message: string; until: string };

/** What it waits for, what was said about it, and when that ends. */
export function waitWords(wait: Wait, now: number): { what: string; said: string; when: string } {
  const end = at(wait.until);
  // What is due this moment is not told as if it had been forgotten.
  const then = end === undefined ? undefined : end <= now ? "now" : relative(end, now);
  switch (wait.kind) {
    case "retry":
      return { what: `It is tried again ${then ?? "soon"}.`, said: wait.message, when: "" };
    case "room":
      return { what: "It waits for room at its provider.", said: wait.message, when: then ? `It gives up ${then}.` : "" };
    case "provider":
      return { what: "It waits for its provider.", said: wait.message, when: then ? `It gives up ${then}.` : "" };
    default:
      return { what: "", said: wait.message, when: "" };
  }
}
