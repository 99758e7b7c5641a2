import assert from "node:assert/strict";
import { test } from "node:test";

import { tool } from "wharf-sdk";
import { z } from "zod";

import { example, withSession } from "../support/agent-core.js";

const Spend = tool({
  name: "spend",
  description: "Costs something, twice.",
  input: z.object({}),
  output: z.object({}),
  run(_, cx) {
    cx.cost(2);
    cx.cost(3);
    return {};
  },
});

const Look = tool({
  name: "look",
  description: "Costs nothing, and says whether it pretends.",
  input: z.object({}),
  output: z.object({ isMock: z.boolean() }),
  mock: true,
  free: true,
  run: (_, cx) => ({ isMock: cx.isMock }),
});

test("r165_an_agent_tells_its_cost_as_it_is_spent", async () => {
  const golden = await example("agent.tool.stream.cost");
  await withSession([Spend, Look], async (core) => {
    const call = await example("core.tool.call");
    Object.assign(call.payload, { tool_id: "dev.example.agent/spend", input: {} });
    delete call.payload["context"];
    core.say(call);
    for (const [index, so_far] of [2, 5].entries()) {
      const { payload } = await core.hear("agent.tool.stream");
      assert.deepEqual(Object.keys(payload).sort(), Object.keys(golden.payload).sort());
      assert.deepEqual([payload["seq"], payload["data"], payload["cost_micro"]], [index + 1, { text: "" }, so_far]);
    }
    const result = await core.hear("agent.tool.result");
    assert.equal(result.payload["metrics"].cost_micro, 5);
    assert.equal(result["in_reply_to"], call.id);
    for (const name of ["request_id", "correlation_id", "causation_id", "traceparent"]) assert.equal(result[name], call[name]);
  });
});

test("r068_r085_a_tool_says_that_it_can_pretend_and_is_free", async () => {
  await withSession([Spend, Look], async (core, registered) => {
    const said = registered.payload["tools"].map((one: any) => [one.name, one.capabilities.slice(2)]);
    assert.deepEqual(said, [["spend", []], ["look", ["mock", "free"]]]);
    for (const mode of ["mock", "real"]) {
      const call = await example("core.tool.call");
      Object.assign(call.payload, { call_id: mode, tool_id: "dev.example.agent/look", input: {} });
      call.payload["context"].mode = mode;
      core.say(call);
      const result = await core.hear("agent.tool.result");
      assert.deepEqual(result.payload["output"], { isMock: mode === "mock" });
    }
  });
});

test("r147_the_wire_s_examples_are_understood", async () => {
  await withSession([Spend, Look], async (core) => {
    for (const name of ["core.tools.registered", "core.tools.unregistered", "core.error"]) core.say(await example(name));
    const ping = await example("core.ping");
    core.say(ping);
    assert.equal((await core.hear("agent.pong"))["in_reply_to"], ping.id);
  });
});
