/** The tool, tried without a server: `npm test`. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { scope } from "#wharf";

import { Count } from "../src/tool.js";

test("words and lines are counted", async () => {
  const told: string[] = [];
  const call = scope().call(Count, { text: "to be\nor not to be\n" }, { onProgress: (status) => told.push(status) });
  assert.deepEqual(await call, { words: 6, lines: 2 });
  assert.deepEqual(told, ["counting"]);
});

test("nothing has nothing", async () => {
  assert.deepEqual(await scope().call(Count, { text: "" }), { words: 0, lines: 0 });
});
