// What every client of Node in these tests does: it reads what to do from its one argument, does it
// step by step, and prints what came of each step as one line of JSON.
//
//   {"mode": …, "stdio": […], "answer": {…}, "sample": "…", "steps": [["call", {…}], …]}
//
// `answer` is what it says to every question, `sample` to every request for a model; without them
// it declares that it can do neither. WHARF_MCP and WHARF_TOKEN say where the core is.

import { createRequire } from "node:module";

export const need = createRequire(`${process.env.MCP_PEERS}/`);
export const asked = JSON.parse(process.argv[2]);

export const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// Clients wait long for tests that kill and restart.
export const patient = { timeout: 110_000, maxTotalTimeout: 110_000, resetTimeoutOnProgress: true };

export const headers = { authorization: `Bearer ${process.env.WHARF_TOKEN}` };

// Tries again and again while the core is away.
export const http = {
  requestInit: { headers },
  reconnectionOptions: {
    initialReconnectionDelay: 100,
    maxReconnectionDelay: 500,
    reconnectionDelayGrowFactor: 1.1,
    maxRetries: 400,
  },
};

export const capabilities = {
  ...(asked.answer ? { elicitation: { form: {} } } : {}),
  ...(asked.sample ? { sampling: {} } : {}),
  ...(asked.roots ? { roots: {} } : {}),
};

export const elicited = ({ params }) => {
  print({ asked: params.message, schema: params.requestedSchema });
  return asked.answer;
};

export const sampled = ({ params }) => {
  print({ sampled: params.messages });
  const content = { type: "text", text: asked.sample };
  return { role: "assistant", content, model: "none", stopReason: "endTurn" };
};

export const rooted = () => ({ roots: asked.roots });

// One line, typed by the test.
export const line = () =>
  new Promise((resolve) => {
    process.stdin.once("data", (data) => {
      process.stdin.pause();
      resolve(String(data));
    });
  });

const failed = (error) => ({
  error: { code: error.code, message: error.message, data: error.data },
});

// Does all steps with what `ways` has for each.
export async function play(ways) {
  for (const [step, given] of asked.steps) {
    try {
      print({ step, result: (await ways[step](given ?? {})) ?? null });
    } catch (error) {
      print({ step, ...failed(error) });
    }
  }
  process.exit(0);
}
