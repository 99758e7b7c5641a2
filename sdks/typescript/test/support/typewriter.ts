/** A tool server that types a text word by word. */

import { setTimeout as pause } from "node:timers/promises";

import { Fault, tool } from "wharf-sdk";
import { serveTool } from "wharf-sdk/toolserver";
import { z } from "zod";

const Typewriter = tool({
  name: "typewriter",
  description: "Types a text word by word.",
  sideEffects: false,
  input: z.object({ text: z.string().default("Hello world"), delay_ms: z.int().min(0).max(60_000).default(20) }),
  output: z.object({ text: z.string(), words: z.int() }),
  progress: z.object({ text: z.string() }),
  async run({ text, delay_ms }, cx) {
    if (text === "fault") throw new Fault("ERR_INK", "The ink is empty.");
    if (text === "crash") throw new Error("password is hunter2");
    const words = text.match(/\S+\s*/g) ?? [];
    let typed = "";
    for (const word of words) {
      await pause(delay_ms, undefined, { signal: cx.signal });
      typed += word;
      cx.progress({ text: typed });
      cx.cost(1);
    }
    return { text: typed, words: words.length };
  },
});

await serveTool("text/typewriter-ts@1", Typewriter);
