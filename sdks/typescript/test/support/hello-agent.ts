/** The tools of the reference agents, as an agent in a process of its own. */

import { setTimeout as pause } from "node:timers/promises";

import { tool } from "wharf-sdk";
import { runAgent } from "wharf-sdk/agent";
import { z } from "zod";

const OUTPUT_BYTES_MAX = 256 * 1024;
const about = { sideEffects: false };

const HelloWorld = tool({
  ...about,
  name: "hello_world",
  description: "Greets by name.",
  input: z.object({ name: z.string().default("world") }),
  output: z.object({ greeting: z.string() }),
  run: ({ name }) => ({ greeting: `Hello, ${name}!` }),
});

const StreamCounter = tool({
  ...about,
  name: "stream_counter",
  description: "Counts to n and streams every step.",
  input: z.object({ n: z.int().min(0).max(4000), delay_ms: z.int().min(0).max(60_000).default(0) }),
  output: z.object({ counted: z.number() }),
  progress: z.object({ count: z.number() }),
  async run({ n, delay_ms }, cx) {
    for (let count = 1; count <= n; count += 1) {
      cx.progress({ count });
      await pause(delay_ms, undefined, { signal: cx.signal });
    }
    return { counted: n };
  },
});

const Sleep = tool({
  ...about,
  name: "sleep",
  description: "Waits for some milliseconds.",
  input: z.object({ ms: z.int().min(0).max(3_600_000) }),
  output: z.object({ slept_ms: z.number() }),
  async run({ ms }, cx) {
    await pause(ms, undefined, { signal: cx.signal });
    return { slept_ms: ms };
  },
});

const InvalidInput = tool({
  ...about,
  name: "invalid_input",
  description: "Takes nothing but an integer.",
  input: z.object({ must_be: z.int() }),
  output: z.object({ integer: z.number() }),
  run: ({ must_be }) => ({ integer: must_be }),
});

const LargeOutput = tool({
  ...about,
  name: "large_output",
  description: "Returns that many bytes, or as many as are allowed.",
  input: z.object({ bytes: z.int().min(0).max(2 ** 40) }),
  output: z.object({ text: z.string(), truncated: z.boolean() }),
  run: ({ bytes }) => ({ text: "x".repeat(Math.min(bytes, OUTPUT_BYTES_MAX)), truncated: bytes > OUTPUT_BYTES_MAX }),
});

const Ask = tool({
  name: "ask",
  description: "Counts through the core, says so, and asks.",
  input: z.object({ title: z.string() }),
  output: z.object({ counted: z.unknown(), answer: z.string() }),
  async run({ title }, cx) {
    const counted = await cx.call("wharf/count", { n: 2 });
    await cx.notify("Counted");
    const answer = await cx.elicit(title, z.object({ colour: z.string() }));
    return { counted, answer: answer.status === "accepted" ? answer.content.colour : answer.status };
  },
});

const Double = tool({ ...about, name: "double", description: "Doubles a number.", input: z.number(), output: z.number(), run: (n) => 2 * n });

await runAgent([HelloWorld, StreamCounter, Sleep, InvalidInput, LargeOutput, Ask, Double], { id: "dev.wharf.hello-typescript", version: "0.1.0" });
