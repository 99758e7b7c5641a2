/** The agent's tools, tried without a core: `npm test`. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { scope } from "#wharf";

import { Greet } from "../src/tools.js";

test("somebody is greeted by name", async () => {
  const told: string[] = [];
  const output = await scope().call(Greet, { name: "Ada" }, { onProgress: (status) => told.push(status) });
  assert.deepEqual(output, { text: "Hello, Ada!" });
  assert.deepEqual(told, ["thinking of something nice"]);
});

test("nobody is not greeted", async () => {
  await assert.rejects(async () => await scope().call(Greet, { name: " " }), { code: "{{code}}.no_name" });
});

test("the manifest names this agent's program", () => {
  const manifest = JSON.parse(readFileSync("opensentience.agent.json", "utf8"));
  assert.equal(manifest.id, "{{id}}");
  assert.deepEqual(manifest.entrypoint.args, ["dist/src/main.js"]);
});
