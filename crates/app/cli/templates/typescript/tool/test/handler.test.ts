/** The tool, tried without a server: `npm test`. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { tryTool } from "#wharf";

import { count } from "../handler.js";

test("words and lines are counted", async () => {
  const { output, status } = await tryTool(count, { text: "to be\nor not to be\n" });
  assert.deepEqual(output, { words: 6, lines: 2 });
  assert.deepEqual(status, [{ text: "counting", fraction: 0.5 }]);
});

test("nothing has nothing", async () => {
  assert.deepEqual((await tryTool(count, { text: "" })).output, { words: 0, lines: 0 });
});

test("an input that is missing is named", async () => {
  await assert.rejects(tryTool(count, {} as { text: string }), /"text" is a required property/);
});
