/** The same tools as processes: agents and tool servers, checked by the program itself and run by a core. */

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { connect, scope } from "wharf-sdk";
import { coreTest, freshName, question, type Core } from "../support/core.js";
import { programFolder } from "../support/folders.js";

const run = promisify(execFile);
const program = (name: string): string => fileURLToPath(new URL(`../support/${name}.js`, import.meta.url));
const WORDS = Array.from({ length: 60 }, () => "word").join(" ");

/** A test that needs the `wharf` program, named by WHARF_BIN. */
function programTest(name: string, body: (wharf: string) => Promise<void>): void {
  const wharf = process.env["WHARF_BIN"];
  if (wharf) test(name, () => body(wharf));
  else test(name, { skip: "WHARF_BIN names no program" }, () => {});
}

async function conformance(wharf: string, args: string[], passMin: number): Promise<void> {
  const { stdout } = await run(wharf, ["conformance", ...args], { timeout: 240_000 }).catch((error: { stdout?: string; stderr?: string }) => {
    assert.fail(`${error.stdout}${error.stderr}`);
  });
  const { counts } = JSON.parse(stdout);
  assert.equal(counts.fail, 0, stdout);
  assert.ok(counts.pass >= passMin, stdout);
}

programTest("k033_an_agent_written_with_the_package_keeps_the_agent_protocol", (wharf) =>
  conformance(wharf, ["agent-protocol", "--json", "--", process.execPath, program("hello-agent")], 50));

programTest("k033_a_tool_server_written_with_the_package_keeps_the_run_protocol", async (wharf) => {
  const server = spawn(process.execPath, [program("typewriter"), "--port", "0"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [line] = (await once(createInterface(server.stdout), "line")) as [string];
    const slow = JSON.stringify({ text: WORDS, delay_ms: 1000 });
    await conformance(wharf, ["run-protocol", "--json", line.replace("listening on ", ""), "--slow-inputs", slow], 18);
  } finally {
    server.kill();
    await once(server, "exit");
  }
});

test("an_agent_without_a_core_says_how_it_is_started", async () => {
  const env = { PATH: process.env["PATH"] ?? "" };
  const ended = await run(process.execPath, [program("hello-agent")], { env }).then(
    () => assert.fail("it ended well"),
    (error: { code: number; stderr: string }) => error,
  );
  assert.equal(ended.code, 1);
  assert.equal(ended.stderr, "This agent is started by a core, which says where to connect.\n");
});

test("a_tool_server_prints_its_schemas", async () => {
  const { stdout } = await run(process.execPath, [program("typewriter"), "--schema"]);
  const { input_schema, output_schema } = JSON.parse(stdout);
  assert.equal(input_schema.properties.delay_ms.maximum, 60_000);
  assert.deepEqual(output_schema.required, ["text", "words"]);
});

/** Starting takes a moment: an agent is there when its tools are. */
async function registered(core: Core, id: string): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const { items } = await core.api("/v1/tools");
    if (items.some((item: unknown) => JSON.stringify(item).includes(`${id}/hello_world`))) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(JSON.stringify(await core.api(`/v1/agents/${id}`)));
}

coreTest("k033_an_agent_process_is_started_fenced_in_and_called", async (core) => {
  const id = "dev.wharf.hello-typescript";
  const manifest = {
    manifest_version: 1,
    id,
    name: "Hello in TypeScript",
    version: "0.1.0",
    entrypoint: { type: "command", value: "node", args: ["program.mjs"] },
    permissions: ["tool:invoke:wharf/count"],
    capabilities: ["tools", "streaming", "cancellation"],
  };
  await programFolder("hello-agent", { "opensentience.agent.json": JSON.stringify(manifest) }, async (folder) => {
    await core.api("/v1/agents", { folder });
    await core.api(`/v1/agents/${id}/approve`, { all: true });
    await core.api(`/v1/agents/${id}/start`, {});
    await registered(core, id);
    const transport = await connect(core.url, { token: core.token });
    const root = scope(transport);
    try {
      assert.deepEqual(await root.call(`${id}/hello_world`, { name: "Ada" }), { greeting: "Hello, Ada!" });
      const counting = root.call(`${id}/stream_counter`, { n: 3 });
      const seen: unknown[] = [];
      for await (const piece of counting.progress) seen.push(piece);
      assert.deepEqual(await counting, { counted: 3 });
      assert.ok(seen.length >= 3, JSON.stringify(seen));
      const title = `Which colour for ${freshName()}?`;
      const asking = root.call(`${id}/ask`, { title });
      const { ask_id } = await question(core, title);
      await core.api(`/v1/questions/${ask_id}/answer`, { value: { colour: "green" } });
      assert.equal(((await asking) as { answer: string }).answer, "green");
      const doubled = await core.api("/v1/runs?wait=30s", { tool: `${id}/double`, inputs: { value: 21 } });
      assert.deepEqual(doubled.outputs, { value: 42 });
      const headers = { authorization: `Bearer ${core.token}` };
      const put = await fetch(new URL("/v1/worlds/default/files/name.txt", core.url), { method: "PUT", headers, body: "Grace" });
      assert.equal(put.status, 201);
      const filed = await core.api("/v1/runs?wait=30s", { tool: `${id}/hello_world`, inputs: { "name.world": "/name.txt" }, outputs: { "greeting.world": "/greeting.txt" } });
      assert.equal(filed.outputs.greeting, "world://default/greeting.txt", JSON.stringify(filed.error));
      const greeting = await fetch(new URL("/v1/worlds/default/files/greeting.txt", core.url), { headers });
      assert.equal(await greeting.text(), "Hello, Grace!");
    } finally {
      await transport.close();
      await core.api(`/v1/agents/${id}/stop`, {});
    }
  });
});

coreTest("k033_a_tool_server_is_started_fenced_in_and_called", async (core) => {
  const reference = "text/typewriter-ts@1";
  const manifest = `
ref = "${reference}"
description = "Types a text word by word."
exec = ["node", "program.mjs", "--port", "{port}"]
timeout_s = 120
max_concurrency = 64
max_cost_micro = 10000
side_effects = false
mock = true
permissions = []

[input_schema]
type = "object"

[output_schema]
type = "object"
`;
  await programFolder("typewriter", { "wharf.tool.toml": manifest }, async (folder) => {
    await core.api("/v1/tools", { folder, approve: true });
    try {
      const done = await core.api("/v1/runs?wait=60s", { tool: reference, inputs: { text: "one two three" } });
      assert.equal(done.status, "succeeded", JSON.stringify(done.error));
      assert.deepEqual(done.outputs, { text: "one two three", words: 3 });
      assert.equal(done.cost_micro, 3);
      const filed = await core.api("/v1/runs?wait=60s", { tool: reference, inputs: { text: "kept" }, outputs: { "text.world": "/typed.txt" } });
      assert.equal(filed.status, "succeeded", JSON.stringify(filed.error));
      assert.equal(filed.outputs.text, "world://default/typed.txt");
      const again = await core.api("/v1/runs?wait=60s", { tool: reference, inputs: { "text.world": "/typed.txt" } });
      assert.deepEqual(again.outputs, { text: "kept", words: 1 }, JSON.stringify(again.error));
      const failed = await core.api("/v1/runs?wait=60s", { tool: reference, inputs: { text: "crash" } });
      assert.equal(failed.error.code, "tool.internal");
      assert.doesNotMatch(JSON.stringify(failed), /hunter2/);
    } finally {
      await core.api(`/v1/tools/${reference}/disable`, {});
    }
  });
});
