import assert from "node:assert/strict";
import { test } from "node:test";

import { Fault, tool, tryDurable, tryTool, type Cx } from "wharf-sdk";
import { z } from "zod";

import { example, withSession, type Core, type Message } from "../support/agent-core.js";

const Fetch = tool({ name: "web/fetch", input: z.object({ url: z.string() }), output: z.object({ size: z.number() }) });

let rolled = 0;

async function walk(cx: Cx<never>): Promise<number[]> {
  const first = await cx.step("fetch", Fetch, { url: "a" });
  const dice = await cx.local("roll", () => 40 + rolled++);
  const [left, right] = await Promise.all([cx.step("fetch", Fetch, { url: "b" }), cx.step("other", "web/fetch", { url: "c" })]);
  return [first.size, dice, left.size, (right as { size: number }).size];
}

const Walk = tool({
  name: "walk",
  description: "Takes its steps.",
  input: z.object({}),
  output: z.array(z.number()),
  durable: true,
  run: (_, cx) => walk(cx),
});

const Twice = tool({
  name: "twice",
  description: "Uses one name twice at once.",
  input: z.object({}),
  durable: true,
  run: (_, cx) => Promise.all([cx.step("fetch", Fetch, { url: "a" }), cx.step("fetch", Fetch, { url: "b" })]),
});

/** Answers what one attempt asks until it is over; `kept` is what the core has of its local code. */
async function attempt(core: Core, id: string, kept: { value?: unknown }): Promise<Message> {
  const call = await example("core.tool.call");
  Object.assign(call.payload, { call_id: id, tool_id: "dev.example.agent/walk", input: {} });
  delete call.payload["context"];
  core.say(call);
  const answer = async (): Promise<Record<string, any>> => {
    const { payload } = await core.hear("agent.tool.invoke");
    assert.equal(payload["parent_call_id"], id);
    const output = { size: payload["step"].n };
    const result = await example("core.tool.invoke_result");
    core.say({ ...result, payload: { invoke_id: payload["invoke_id"], status: "succeeded", output } });
    return payload;
  };
  const first = await answer();
  assert.deepEqual([first["tool_id"], first["input"], first["step"]], ["web/fetch", { url: "a" }, { name: "fetch", n: 1 }]);
  for (let asked = Number("value" in kept); asked < 2; asked += 1) {
    const { payload } = await core.hear("agent.step.local");
    assert.deepEqual([payload["call_id"], payload["step"]], [id, { name: "roll", n: 1 }]);
    if ("value" in payload) kept.value ??= payload["value"];
    const told = await example("core.step.kept.unknown");
    core.say({ ...told, payload: { call_id: id, step: payload["step"], ...kept } });
  }
  const names = [await answer(), await answer()].map((one) => `${one["step"].name}#${one["step"].n}`);
  assert.deepEqual(names.sort(), ["fetch#2", "other#1"]);
  return core.hear("agent.tool.result");
}

test("f022_f023_f028_a_durable_tool_asks_for_the_same_steps_each_time", async () => {
  await withSession([Walk], async (core, registered) => {
    assert.ok(registered.payload["tools"][0].capabilities.includes("durable"));
    rolled = 0;
    const kept: { value?: unknown } = {};
    for (const id of ["c-1", "c-2"]) {
      const { payload } = await attempt(core, id, kept);
      assert.deepEqual([payload["status"], payload["output"]], ["succeeded", { value: [1, 40, 2, 1] }]);
    }
    assert.equal(rolled, 1, "what was kept does not run again");
  });
});

test("f024_one_name_twice_at_once_is_refused", async () => {
  await withSession([Twice], async (core) => {
    const call = await example("core.tool.call");
    Object.assign(call.payload, { call_id: "c-1", tool_id: "dev.example.agent/twice", input: {} });
    core.say(call);
    const { payload } = await core.hear("agent.tool.result");
    assert.equal(payload["error"].code, "step.in_use");
    assert.match(payload["error"].message, /`each`/);
  });
});

const TOOLS = { "web/fetch": ({ url }: { url: string }) => ({ size: url.length }) };

test("f029_a_durable_tool_is_killed_and_repeated_at_every_step", async () => {
  rolled = 0;
  const { output, steps, kills } = await tryDurable(Walk, {}, { tools: TOOLS });
  assert.equal(output.length, 4);
  assert.deepEqual([...steps].sort(), ["fetch#1", "fetch#2", "other#1", "roll#1"]);
  assert.ok(kills >= 8, String(kills));
});

/** A tool that does its steps with `each`, and one more of their name. */
const Many = tool({
  name: "many",
  input: z.object({ urls: z.array(z.string()) }),
  output: z.array(z.number()),
  durable: true,
  run: async ({ urls }, cx) => {
    const pages = await cx.each("fetch", Fetch, urls.map((url) => ({ url })), { atOnce: 2 });
    const last = await cx.step("fetch", Fetch, { url: "" });
    return [...pages, last].map((page) => page.size);
  },
});

test("f022_f024_each_does_so_many_at_once_and_keeps_their_order", async () => {
  await withSession([Many], async (core) => {
    const call = await example("core.tool.call");
    Object.assign(call.payload, { call_id: "c-1", tool_id: "dev.example.agent/many", input: { urls: ["a", "b", "c"] } });
    core.say(call);
    const begun = async (): Promise<Record<string, any>> => (await core.hear("agent.tool.invoke")).payload;
    const answer = async (asked: Record<string, any>, size: number): Promise<void> => {
      const result = await example("core.tool.invoke_result");
      core.say({ ...result, payload: { invoke_id: asked["invoke_id"], status: "succeeded", output: { size } } });
    };
    const [one, two] = [await begun(), await begun()];
    // The third begins when one of them is over; its number does not depend on that.
    await answer(two, 2);
    const three = await begun();
    await answer(three, 3);
    await answer(one, 1);
    const four = await begun();
    await answer(four, 4);
    assert.deepEqual([one, two, three, four].map((asked) => [asked["step"].n, asked["input"].url]), [[1, "a"], [2, "b"], [3, "c"], [4, ""]]);
    const { payload } = await core.hear("agent.tool.result");
    assert.deepEqual(payload["output"], { value: [1, 2, 3, 4] });
  });
});

test("f022_f029_each_is_tried_like_other_steps_and_throws_its_first_fault", async () => {
  const seen = new Set<string>();
  const fetch = ({ url }: { url: string }): { size: number } => {
    seen.add(url);
    if (url === "none") throw new Fault("acme.none", "There is no such page.");
    return { size: url.length };
  };
  const tools = { "web/fetch": fetch };
  const { output, steps, kills } = await tryDurable(Many, { urls: ["a", "bb", "ccc"] }, { tools });
  assert.deepEqual(output, [1, 2, 3, 0]);
  assert.deepEqual([...steps], ["fetch#1", "fetch#2", "fetch#3", "fetch#4"]);
  assert.ok(kills >= 8, String(kills));
  const urls = ["a", "none", "b", "last"];
  await assert.rejects(tryDurable(Many, { urls }, { tools }), (fault: Fault) => fault.code === "acme.none");
  assert.ok(seen.has("last"), "the others are done all the same");
  assert.equal((await tryDurable(Many, { urls: [] }, { tools })).output.length, 1);
});

test("f025_f029_code_that_changes_its_mind_is_found", async () => {
  let turn = 0;
  const options = { name: "other", input: z.object({}), durable: true };
  const Other = tool({ ...options, run: (_, cx) => cx.step("a", Fetch, { url: `${turn++}` }) });
  const Gives = tool({ ...options, run: async (_, cx) => [await cx.local("a", () => 1), turn++] });
  for (const one of [Other, Gives]) {
    await assert.rejects(tryDurable(one, {}, { tools: TOOLS }), (fault: Fault) => fault.code === "step.diverged");
  }
  await assert.rejects(tryTool(Other, {}), (fault: Fault) => fault.code === "tool.unavailable");
});

test("f029_the_clock_is_moved_by_hand", async () => {
  const clock = { now: new Date("2026-05-01T00:00:00Z") };
  const When = tool({ name: "when", input: z.object({}), durable: true, run: async (_, cx) => (await cx.now()).toISOString() });
  assert.equal((await tryDurable(When, {}, { clock })).output, "2026-05-01T00:00:00.000Z");
});
