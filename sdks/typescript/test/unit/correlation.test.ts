import assert from "node:assert/strict";
import { test } from "node:test";

import { Fault, memoryPair, scope, serve, Transport } from "wharf-sdk";
import { z } from "zod";
import { accept, Ask, Raw, raw } from "../support/raw.js";
import { fails, Gate, timed, until } from "../support/waiting.js";

test("k023_requests_have_exactly_the_keys_that_all_peers_know", async () => {
  const { link, transport } = raw();
  const root = scope(transport);
  void root.call(Ask, { q: 1 });
  void root.ask("Name?", z.string(), { type: "confirmation" });
  void root.elicit("Name?", z.string(), { type: "confirmation" });
  void root.notify("Done");
  void root.sample({ prompt: "Say" });
  await until(() => link.sent.length === 5);
  const bodies = link.sent.map((message) => {
    assert.deepEqual(Object.keys(message), ["type", "payload"]);
    assert.equal(message.type, "request");
    const { id, ...rest } = message.payload;
    assert.equal(typeof id, "string");
    return rest;
  });
  assert.deepEqual(bodies, [
    { kind: "elicit", type: "ask", payload: { q: 1 } },
    { kind: "elicit", type: "confirmation", payload: { message: "Name?", schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "string" } } },
    { kind: "elicit", type: "confirmation", payload: { message: "Name?", schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "string" } } },
    { kind: "notify", type: "notification", payload: { message: "Done", level: "info" } },
    { kind: "elicit", type: "sample", payload: { prompt: "Say" } },
  ]);
});

test("k023_on_links_without_envelopes_requests_are_bare", async () => {
  const { link, transport } = raw(true, true);
  void scope(transport).call(Ask, undefined);
  await until(() => link.sent.length === 1);
  assert.deepEqual({ ...link.sent[0], id: "" }, { id: "", kind: "elicit", type: "ask", payload: null });
});

test("k023_statuses_mean_refused_canceled_and_failed_for_a_tool", async () => {
  const cases: [unknown, string][] = [
    [{ status: "declined" }, "tool.declined"],
    [{ status: "denied" }, "permission.denied"],
    [{ status: "cancelled" }, "tool.canceled"],
    [{ status: "other", content: "Ask later." }, "tool.failed"],
    [{ status: "sideways" }, "protocol.malformed"],
    ["nonsense", "protocol.malformed"],
  ];
  for (const [response, code] of cases) {
    const { link, transport } = raw();
    const call = scope(transport).call(Ask, {});
    link.say({ type: "response", id: (await link.request()).id, response });
    const fault = await fails(call, code);
    if (code === "tool.failed") assert.equal(fault.message, "Ask later.");
  }
});

test("k024_other_content_that_is_not_text_is_read_as_json", async () => {
  const { link, transport } = raw();
  const call = scope(transport).elicit("?", z.string());
  link.say({ type: "response", id: (await link.request()).id, response: { status: "other", content: { why: "not" } } });
  assert.deepEqual(await call, { status: "other", content: '{"why":"not"}' });
});

test("k025_answers_out_of_order_with_progress_between", async () => {
  const { link, transport } = raw();
  const root = scope(transport);
  const seen: unknown[] = [];
  const calls = [1, 2, 3].map((n) => root.call(Ask, n, { onProgress: (data) => seen.push([n, data]) }));
  await until(() => link.sent.length === 3);
  const ids = link.sent.map((message) => message.payload.id);
  assert.equal(new Set(ids).size, 3);
  link.say({ type: "progress", id: ids[2], data: "c" });
  link.say({ type: "progress", id: ids[0], data: "a" });
  link.say(accept(ids[2], "third"));
  link.say({ type: "progress", id: ids[1], data: "b" });
  link.say(accept(ids[0], "first"));
  link.say(accept(ids[1], "second"));
  assert.deepEqual(await Promise.all(calls), ["first", "second", "third"]);
  assert.deepEqual(seen, [[3, "c"], [1, "a"], [2, "b"]]);
  assert.equal(transport.pending, 0);
});

test("k025_unknown_and_repeated_answers_are_counted_and_ignored", async () => {
  const { link, transport } = raw();
  const call = scope(transport).call(Ask, {});
  const { id } = await link.request();
  link.say(accept("nobody", 0));
  link.say({ type: "progress", id: "nobody", data: 0 });
  link.say(accept(id, "first"));
  link.say(accept(id, "second"));
  link.say({ type: "progress", id, data: "late" });
  assert.equal(await call, "first");
  assert.deepEqual(transport.counters, { malformed: 0, unknown: 2, repeated: 2, progressDropped: 0 });
});

test("k026_the_end_of_the_connection_fails_everything_pending", async () => {
  const { link, transport } = raw();
  const calls = [1, 2, 3].map((n) => scope(transport).call(Ask, n));
  await until(() => link.sent.length === 3);
  link.end();
  for (const call of calls) await fails(call, "transport.lost");
  assert.equal(transport.pending, 0);
  await fails(scope(transport).call(Ask, 4), "transport.lost");
  assert.equal((await transport.ended).code, "transport.lost");
});

test("k026_cancel_and_timeout_send_a_cancel_and_late_answers_are_harmless", async () => {
  const { link, transport } = raw();
  const root = scope(transport);
  const call = root.call(Ask, {});
  const { id } = await link.request();
  void call.cancel();
  await fails(call, "tool.canceled");
  assert.deepEqual(link.sent.shift(), { type: "cancel", id });
  link.say(accept(id, "too late"));
  assert.equal(transport.counters.repeated, 1);
  await fails(root.call(Ask, {}, { signal: timed(5) }), "tool.timeout");
  const late = link.sent.shift();
  assert.deepEqual(link.sent.shift(), { type: "cancel", id: late.payload.id });
});

test("k026_a_call_that_was_never_sent_is_not_canceled_on_the_wire", async () => {
  const { link, transport } = raw();
  await fails(scope(transport).call(Ask, {}, { signal: AbortSignal.abort() }), "tool.canceled");
  assert.deepEqual(link.sent, []);
});

test("k026_cancel_racing_the_answer_gives_one_end_in_every_interleaving", async () => {
  for (let steps = 0; steps < 40; steps += 1) {
    const [near, far] = memoryPair();
    serve(far, [
      Ask.implement(async () => {
        for (let i = 0; i < 10; i += 1) await null;
        return "done";
      }),
    ]);
    const call = scope(near).call(Ask, {});
    let ends = 0;
    const end = call.then(
      (value) => ((ends += 1), assert.equal(value, "done")),
      (fault: Fault) => ((ends += 1), assert.equal(fault.code, "tool.canceled")),
    );
    for (let i = 0; i < steps; i += 1) await null;
    await call.cancel();
    await end;
    assert.equal(ends, 1);
    await until(() => far.serving === 0 && near.pending === 0);
  }
});

test("k028_a_fault_crosses_whole_and_off_script_is_no_fault", async () => {
  const { link, transport } = raw();
  const call = scope(transport).elicit("?", z.string());
  const fault = { code: "tool.limit", message: "Too many.", retryable: true, details: { max: 3 } };
  link.say({ type: "response", id: (await link.request()).id, response: { status: "other", content: "Too many.", fault } });
  const met = await fails(call, "tool.limit");
  assert.deepEqual(met.toJSON(), fault);
});

test("k030_what_is_held_is_bounded", async () => {
  const link = new Raw();
  const transport = new Transport(link, { pendingMax: 2, servingMax: 2 });
  const root = scope(transport);
  const calls = [1, 2].map((n) => root.call(Ask, n));
  await until(() => link.sent.length === 2);
  assert.equal((await fails(root.call(Ask, 3), "tool.busy")).retryable, true);
  link.sent.forEach((message) => link.say(accept(message.payload.id, null)));
  await Promise.all(calls);
  const gate = new Gate();
  serve(transport, [Ask.implement(() => gate.opened)]);
  link.sent.length = 0;
  for (const id of ["1", "2", "3"]) link.say({ id, kind: "elicit", type: "ask", payload: null });
  assert.deepEqual(link.sent.map((message) => [message.id, message.response.fault.code]), [["3", "tool.busy"]]);
  gate.open();
  await until(() => transport.serving === 0);
});

test("k030_many_calls_leave_nothing_behind", async () => {
  const [near, far] = memoryPair();
  serve(far, [Ask.implement((n) => n)]);
  const root = scope(near);
  const round = async (count: number): Promise<number> => {
    for (let done = 0; done < count; done += 100) await Promise.all(Array.from({ length: 100 }, (_, n) => root.call(Ask, n)));
    (globalThis as { gc?: () => void }).gc?.();
    return process.memoryUsage().heapUsed;
  };
  await round(5_000);
  const before = await round(1_000);
  const after = await round(30_000);
  assert.ok(after - before < 8_000_000, `${after - before} bytes more`);
  assert.equal(near.pending + far.serving, 0);
});
