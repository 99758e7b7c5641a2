import assert from "node:assert/strict";
import { test } from "node:test";

import { agent, Fault, memoryPair, sample, scope, serve, tool, type Layer } from "wharf-sdk";
import { z } from "zod";
import { fails, Gate, stopped } from "../support/waiting.js";

const Echo = tool({ name: "echo", description: "", input: z.string(), output: z.string(), run: (text) => text });
const Remote = tool({ name: "echo", description: "", input: z.string(), output: z.string() });

/** A layer that writes its name on the way in and out. */
const mark = (name: string): Layer<typeof Echo> => async (input, next) => `${await next(`${input}${name}`)}${name.toUpperCase()}`;

test("k008_a_layer_changes_input_and_output", async () => {
  const root = scope().around(Echo, mark("a"));
  assert.equal(await root.call(Echo, "x"), "xaA");
});

test("k008_a_layer_may_answer_without_going_on", async () => {
  let ran = 0;
  const Count = tool({ name: "count", description: "", input: {}, output: z.number(), run: () => (ran += 1) });
  assert.equal(await scope().around(Count, () => 42).call(Count, {}), 42);
  assert.equal(ran, 0);
});

test("k008_a_layer_may_go_on_ten_times", async () => {
  let ran = 0;
  const Flaky = tool({
    name: "flaky",
    description: "",
    input: {},
    output: z.number(),
    run() {
      ran += 1;
      if (ran < 10) throw new Fault("tool.busy", "Not yet.", { retryable: true });
      return ran;
    },
  });
  const root = scope().around(Flaky, async (input, next) => {
    for (;;) {
      try {
        return await next(input);
      } catch (error) {
        if (!(error instanceof Fault && error.retryable)) throw error;
      }
    }
  });
  assert.equal(await root.call(Flaky, {}), 10);
});

test("k008_a_layer_sees_errors_and_its_own_reach_the_caller", async () => {
  const seen: string[] = [];
  const Bad = tool({ name: "bad", description: "", input: {}, output: {}, run: () => Promise.reject(Fault.declined()) });
  const root = scope().around(Bad, async (input, next) => {
    try {
      return await next(input);
    } catch (error) {
      seen.push((error as Fault).code);
      throw new Fault("tool.failed", "Translated.");
    }
  });
  const fault = await fails(root.call(Bad, {}), "tool.failed");
  assert.equal(fault.message, "Translated.");
  assert.deepEqual(seen, ["tool.declined"]);
});

test("k009_outer_parent_outer_child_inner_child_inner_parent", async () => {
  const root = scope();
  const inside = root.child();
  inside.around(Echo, mark("i"), { lane: "inner" }).around(Echo, mark("c"));
  root.around(Echo, mark("n"), { lane: "inner" }).around(Echo, mark("p"));
  assert.equal(await inside.call(Echo, ""), "pcinNICP");
});

test("k009_within_a_scope_the_first_is_outermost_and_in_the_inner_lane_innermost", async () => {
  const root = scope();
  root.around(Echo, mark("1")).around(Echo, mark("2"));
  root.around(Echo, mark("3"), { lane: "inner" }).around(Echo, mark("4"), { lane: "inner" });
  assert.equal(await root.call(Echo, ""), "12433421");
});

test("k010_a_layer_added_later_applies_to_live_children_once", async () => {
  const root = scope();
  const inside = root.child().child();
  assert.equal(await inside.call(Echo, ""), "");
  root.around(Echo, mark("l"));
  assert.equal(await inside.call(Echo, ""), "lL");
});

test("k010_layers_are_unseen_beside_and_above", async () => {
  const root = scope();
  const [left, right] = [root.child(), root.child()];
  left.around(Echo, mark("l"));
  assert.equal(await left.call(Echo, ""), "lL");
  assert.equal(await right.call(Echo, ""), "");
  assert.equal(await root.call(Echo, ""), "");
});

test("k010_layers_are_inherited_by_calls_from_within_a_tool", async () => {
  const Twice = tool({
    name: "twice",
    description: "",
    input: z.string(),
    output: z.string(),
    run: async (text, cx) => (await cx.call(Echo, text)) + (await cx.call(Echo, text)),
  });
  const root = scope();
  root.child().around(Echo, mark("unseen"));
  const inside = root.child().around(Echo, mark("s"));
  assert.equal(await inside.call(Twice, "x"), "xsSxsS");
});

test("k011_layers_around_an_agent_only_meet_that_agent", async () => {
  const One = agent({ name: "one", description: "", tools: { say: Echo } });
  const Two = agent({ name: "two", description: "", tools: { say: Echo } });
  const root = scope().around(One, { say: mark("o") });
  const [first, second] = [One.activate(root), Two.activate(root)];
  assert.equal(await first.tools.say(""), "oO");
  assert.equal(await second.tools.say(""), "");
  assert.equal(await root.call(Echo, ""), "");
});

test("k011_several_tools_of_an_instance_at_once", async () => {
  const Shout = tool({ name: "shout", description: "", input: z.string(), output: z.string(), run: (text) => `${text}!` });
  const Both = agent({ name: "both", description: "", tools: { say: Echo, shout: Shout } });
  const root = scope();
  const [wrapped, plain] = [Both.activate(root), Both.activate(root)];
  wrapped.around({ say: mark("s"), shout: (input, next) => next(input.toUpperCase()) });
  assert.equal(await wrapped.tools.say(""), "sS");
  assert.equal(await wrapped.tools.shout("hey"), "HEY!");
  assert.equal(await plain.tools.shout("hey"), "hey!");
  await fails(() => root.around(Both, { none: mark("x") } as object), "tool.not_found");
});

test("k011_built_ins_are_wrapped_like_tools", async () => {
  const root = scope()
    .provide(sample, ({ prompt }) => ({ text: `said ${String(prompt)}` }))
    .around(sample, (input, next) => next({ ...input, prompt: String(input.prompt).replace("secret", "***") }));
  assert.equal((await root.sample({ prompt: "my secret" })).text, "said my ***");
});

test("k012_layers_wrap_calls_that_go_to_a_transport", async () => {
  const [near, far] = memoryPair();
  serve(far, [Echo]);
  const root = scope(near).around(Remote, mark("r"));
  assert.equal(await root.call(Remote, "x"), "xrR");
});

test("k012_layers_of_the_serving_side_apply_there", async () => {
  const [near, far] = memoryPair();
  serve(far, [Echo], { scope: scope().around(Echo, mark("s")) });
  assert.equal(await scope(near).call(Remote, ""), "sS");
});

test("k012_cancel_reaches_a_layer_that_never_goes_on", async () => {
  const waiting = new Gate();
  let cleaned = false;
  const root = scope().around(Echo, async (_, __, cx) => {
    waiting.open();
    await stopped(cx.signal);
    cleaned = true;
    return "late";
  });
  const call = root.call(Echo, "x");
  await waiting.opened;
  await call.cancel();
  assert.ok(cleaned);
  await fails(call, "tool.canceled");
});

test("k012_a_canceled_call_goes_no_further", async () => {
  let ran = 0;
  const Count = tool({ name: "count", description: "", input: {}, output: {}, run: () => (ran += 1) });
  const waiting = new Gate();
  const root = scope().around(Count, async (input, next, cx) => {
    waiting.open();
    await stopped(cx.signal);
    return next(input);
  });
  const call = root.call(Count, {});
  await waiting.opened;
  await call.cancel();
  assert.equal(ran, 0);
});
