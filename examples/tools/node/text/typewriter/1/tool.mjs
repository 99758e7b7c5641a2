// The tool itself. Everything else in this folder would be the same for any other tool.

import { setTimeout as sleep } from "node:timers/promises";

/** A failure whose text is meant for the caller: a code and one safe sentence. */
export class Fault extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * Types a text word by word.
 *
 * `inputs` is complete: what was a reference has been read. `report` tells how it goes,
 * `signal` says when to stop. Gives the outputs and what they cost in micro-dollars.
 */
export async function run({ inputs, mode, report, signal }) {
  const { text = "Hello world", delay_ms: delay = 20 } = inputs;
  if (typeof text !== "string") throw new Fault("ERR_INPUTS", "The input text must be a string.");
  if (!Number.isInteger(delay) || delay < 0 || delay > 60_000) {
    throw new Fault("ERR_INPUTS", "The input delay_ms must be a whole number up to 60000.");
  }
  const words = text.match(/\S+\s*/g) ?? [];
  report.log("info", `Typing ${words.length} words`);
  let typed = "";
  for (const [index, word] of words.entries()) {
    await sleep(delay, undefined, { signal });
    typed += word;
    report.partial({ text: typed });
    report.event("checkpoint", (index + 1) / words.length);
  }
  return { outputs: { text: typed, words: words.length }, cost: mode === "real" ? words.length : 0 };
}
