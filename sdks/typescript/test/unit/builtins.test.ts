import assert from "node:assert/strict";
import { test } from "node:test";

import { elicit, Fault, memoryPair, notify, sample, scope, serve, tool, type Elicited, type JsonSchema } from "wharf-sdk";
import { z } from "zod";
import { fails } from "../support/waiting.js";

const Confirm = z.object({ ok: z.boolean() });

/** A scope whose questions are answered at the other end of a transport. */
function answered(by: (message: string) => Elicited): ReturnType<typeof scope> {
  const [near, far] = memoryPair();
  serve(far, [], { scope: scope().provide(elicit, ({ message }) => by(message)) });
  return scope(near);
}

test("k018_every_answer_to_a_question_is_a_value", async () => {
  const outcomes: Elicited[] = [
    { status: "accepted", content: { ok: true } },
    { status: "declined" },
    { status: "cancelled" },
    { status: "denied" },
    { status: "other", content: "What do you mean?" },
  ];
  for (const outcome of outcomes) {
    assert.deepEqual(await answered(() => outcome).elicit("Go on?", Confirm), outcome);
    assert.deepEqual(await scope().provide(elicit, () => outcome).elicit("Go on?", Confirm), outcome);
  }
});

test("k018_an_accepted_answer_must_fit_the_schema", async () => {
  const fault = await fails(answered(() => ({ status: "accepted", content: { ok: "yes" } })).elicit("Go on?", Confirm), "tool.invalid_output");
  assert.deepEqual(fault.details, { path: "/ok" });
});

test("k018_trouble_on_the_way_is_an_error", async () => {
  const [near] = memoryPair();
  await near.close();
  await fails(scope(near).elicit("Go on?", Confirm), "transport.lost");
});

test("k018_a_notice_is_acknowledged_and_can_fail", async () => {
  const heard: unknown[] = [];
  const [near, far] = memoryPair();
  const there = scope().provide(notify, (input) => {
    if (input.message === "no") throw new Fault("tool.busy", "Not now.");
    heard.push(input);
  });
  serve(far, [], { scope: there });
  assert.equal(await scope(near).notify("Half way", { progress: 0.5 }), null);
  assert.deepEqual(heard, [{ message: "Half way", level: "info", progress: 0.5 }]);
  await fails(scope(near).notify("no"), "tool.busy");
});

test("k018_a_model_that_is_declined_is_an_error", async () => {
  const [near, far] = memoryPair();
  const there = scope().provide(sample, ({ prompt, maxTokens }) => {
    if (prompt === "no") throw Fault.declined();
    return { text: `${String(prompt)} ${maxTokens}`, finishReason: "stop" };
  });
  serve(far, [], { scope: there });
  const root = scope(near);
  assert.deepEqual(await root.sample({ prompt: "Say", maxTokens: 5 }), { text: "Say 5", finishReason: "stop" });
  await fails(root.sample({ prompt: "no" }), "tool.declined");
  await fails(root.sample({ prompt: 7 as unknown as string }), "tool.invalid_input");
});

test("k017_built_ins_are_ordinary_tools", async () => {
  const root = scope().provide(elicit, ({ message, type }) => ({ status: "other", content: `${type}: ${message}` }));
  assert.deepEqual(await root.call(elicit, { message: "Who?", type: "confirmation" }), { status: "other", content: "confirmation: Who?" });
});

test("k019_a_tool_that_is_served_asks_the_one_who_called_it", async () => {
  const Buy = tool({
    name: "buy",
    description: "",
    input: z.null(),
    output: z.string(),
    async run(_, cx) {
      await cx.notify("Buying");
      const { text } = await cx.sample({ prompt: "A name" });
      const answer = await cx.elicit(`Buy ${text}?`, Confirm);
      return answer.status === "accepted" && answer.content.ok ? `bought ${text}` : "left it";
    },
  });
  const [near, far] = memoryPair();
  serve(far, [Buy]);
  const heard: string[] = [];
  const root = scope(near)
    .provide(elicit, ({ message }) => ({ status: "accepted", content: { ok: message === "Buy Rosebud?" } }))
    .provide(notify, ({ message }) => void heard.push(message))
    .provide(sample, () => ({ text: "Rosebud" }));
  assert.equal(await root.call("buy", null), "bought Rosebud");
  assert.deepEqual(heard, ["Buying"]);
});

test("k019_a_plain_peer_is_not_asked_what_it_cannot_answer", async () => {
  const Ask = tool({ name: "ask", description: "", input: z.null(), output: {}, run: (_, cx) => cx.elicit("Well?", Confirm) });
  const [near, far] = memoryPair({ plain: true });
  serve(far, [Ask]);
  const fault = await fails(scope(near).call("ask", null), "tool.failed");
  assert.match(fault.message, /takes no calls/);
});

test("k024_a_schema_of_a_question_that_nobody_knows_is_opaque", async () => {
  for (const schema of ["zod:object", 7, ["x"], { kind: "mystery" }, { pattern: "(" }]) {
    const root = scope().provide(elicit, () => ({ status: "accepted", content: "anything" }));
    const outcome = await root.call(elicit, { message: "?", schema: schema as JsonSchema });
    assert.deepEqual(outcome, { status: "accepted", content: "anything" });
  }
});
