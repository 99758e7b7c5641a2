import assert from "node:assert/strict";
import { test } from "node:test";

import { memoryPair, scope, serve, tool } from "wharf-sdk";
import { z } from "zod";
import { fails, Gate, stopped, until } from "../support/waiting.js";

const Count = tool({
  name: "count",
  description: "",
  input: z.number(),
  output: z.string(),
  progress: z.number(),
  run(n, cx) {
    for (let i = 1; i <= n; i += 1) cx.progress(i);
    return "counted";
  },
});
const Remote = tool({ name: "count", description: "", input: z.number(), output: z.string(), progress: z.number() });

test("k020_progress_comes_in_order_before_the_output_here_and_there", async () => {
  const [near, far] = memoryPair();
  serve(far, [Count]);
  for (const start of [() => scope().call(Count, 5), () => scope(near).call(Remote, 5)]) {
    const call = start();
    const seen: unknown[] = [];
    void call.then((output) => seen.push(output));
    const listened: number[] = [];
    for await (const n of call.progress) listened.push(n);
    assert.deepEqual(listened, [1, 2, 3, 4, 5]);
    assert.equal(await call, "counted");
  }
});

test("k020_a_slow_listener_holds_nobody_up_and_misses_the_oldest", async () => {
  const call = scope().call(Count, 1_000);
  const { progress } = call;
  assert.equal(await call, "counted");
  const seen: number[] = [];
  for await (const n of progress) seen.push(n);
  assert.equal(seen.length, 256);
  assert.equal(seen.at(-1), 1_000);
  assert.equal(progress.missed, 744);
});

test("k020_progress_that_does_not_fit_is_left_out", async () => {
  const [near, far] = memoryPair();
  const Loose = tool({ name: "count", description: "", input: {}, output: {}, progress: {} });
  serve(far, [
    Loose.implement((_, cx) => {
      cx.progress("one");
      cx.progress(2);
      return "counted";
    }),
  ]);
  const seen: number[] = [];
  await scope(near).call(Remote, 0, { onProgress: (n) => seen.push(n) });
  assert.deepEqual(seen, [2]);
});

test("k020_progress_ends_when_a_call_fails_and_is_empty_when_it_is_over", async () => {
  const Bad = tool({ name: "bad", description: "", input: {}, output: {}, progress: {}, run: () => Promise.reject(new Error("x")) });
  const call = scope().call(Bad, {});
  for await (const _ of call.progress) assert.fail("there is none");
  await fails(call, "tool.internal");
  const done = scope().call(Count, 3);
  await done;
  for await (const _ of done.progress) assert.fail("nobody listened in time");
});

test("k021_close_cancels_what_is_inside_and_waits_for_its_clean_up", async () => {
  const order: string[] = [];
  const started = new Gate();
  const Long = tool({
    name: "long",
    description: "",
    input: {},
    output: {},
    async run(_, cx) {
      started.open();
      await stopped(cx.signal);
      await new Promise((resolve) => setTimeout(resolve, 5));
      order.push("cleaned");
    },
  });
  const root = scope();
  const call = root.child().child().call(Long, {});
  await started.opened;
  await root.close();
  order.push("closed");
  assert.deepEqual(order, ["cleaned", "closed"]);
  await fails(call, "tool.canceled");
  await fails(root.child().call(Long, {}), "tool.canceled");
});

test("k021_close_does_not_wait_for_ever", async () => {
  const Stuck = tool({ name: "stuck", description: "", input: {}, output: {}, run: () => new Promise(() => {}) });
  const root = scope();
  const call = root.call(Stuck, {});
  await root.close({ graceMs: 10 });
  await fails(call, "tool.canceled");
});

test("a_thousand_scopes_opened_and_closed_leave_their_parent_usable", async () => {
  const root = scope();
  for (let i = 0; i < 1_000; i += 1) {
    const inside = root.child().around(Count, (n, next) => next(n));
    assert.equal(await inside.call(Count, 1), "counted");
    await inside.close();
  }
  assert.equal(await root.call(Count, 1), "counted");
});

test("a_failure_that_nobody_awaits_ends_nothing_else", async () => {
  const Bad = tool({ name: "bad", description: "", input: {}, output: {}, run: () => Promise.reject(new Error("x")) });
  let ended = false;
  void scope().call(Bad, {}).finally(() => (ended = true)).catch(() => {});
  scope().call(Bad, {});
  await until(() => ended);
});
