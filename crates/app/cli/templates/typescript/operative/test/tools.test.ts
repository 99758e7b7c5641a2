/** The operative's tools, tried without a core: `npm test`. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { memoryPair, scope, serve } from "#wharf";

import { findCore } from "../src/core.js";
import { Say } from "../src/tools.js";

test("what is to be said is said and counted, also over a connection", async () => {
  const told: string[] = [];
  const onProgress = (status: string): void => void told.push(status);
  assert.deepEqual(await scope().call(Say, { text: "hello" }, { onProgress }), { said: "hello", times: 1 });
  assert.deepEqual(told, ["clearing the throat"]);

  const [here, there] = memoryPair();
  const served = serve(there, [Say]);
  assert.deepEqual(await scope(here).call("say", { text: "again" }), { said: "again", times: 2 });
  await served.close();
});

test("nothing is not said", async () => {
  await assert.rejects(async () => await scope().call(Say, { text: " " }), { code: "{{code}}.nothing" });
});

test("the core is found by its home", () => {
  const home = mkdtempSync(join(tmpdir(), "home-"));
  assert.throws(() => findCore({ WHARF_HOME: home }), /wharf up/);
  mkdirSync(join(home, "run"));
  writeFileSync(join(home, "run", "core.json"), JSON.stringify({ http: "http://127.0.0.1:1" }));
  writeFileSync(join(home, "run", "owner.token"), "secret\n");
  assert.deepEqual(findCore({ WHARF_HOME: home }), { url: "http://127.0.0.1:1", token: "secret" });
});
