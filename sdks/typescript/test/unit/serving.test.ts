import assert from "node:assert/strict";
import { test } from "node:test";

import { elicit, Fault, memoryPair, notify, sample, scope, serve, tool } from "wharf-sdk";
import { Ask, raw } from "../support/raw.js";
import { fails, Gate, stopped, until } from "../support/waiting.js";

test("k024_reading_is_lenient", async () => {
  const { link, transport } = raw();
  serve(transport, [Ask.implement((input) => ({ got: input }))], { scope: scope().provide(notify, () => {}) });
  link.say({ id: "1", kind: "elicit", type: "ask", more: true });
  link.say({ type: "request", extra: 1, payload: { id: "2", kind: "elicit", type: "ask", payload: 7 } });
  link.say({ type: "weather", forecast: "rain" });
  link.say({ id: "3", kind: "notify", type: "notification", payload: { message: "x" } });
  await until(() => link.sent.length === 3);
  const byId = Object.fromEntries(link.sent.map((message) => [message.id, message.response]));
  assert.deepEqual(byId, {
    1: { status: "accepted", content: { got: null } },
    2: { status: "accepted", content: { got: 7 } },
    3: { ok: true },
  });
  assert.equal(transport.counters.malformed, 0);
  const call = scope(transport).call(Ask, {});
  link.sent.length = 0;
  const { id } = await link.request();
  link.say({ type: "progress", id });
  link.say({ type: "response", id, response: { status: "accepted" }, late: false });
  assert.equal(await call, null);
});

test("k025_an_id_in_use_is_not_served_twice", async () => {
  const { link, transport } = raw();
  const gate = new Gate();
  let ran = 0;
  serve(transport, [Ask.implement(async () => ((ran += 1), await gate.opened, ran))]);
  link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
  link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
  await until(() => ran === 1);
  gate.open();
  await until(() => link.sent.length === 1);
  assert.equal(ran, 1);
  assert.equal(transport.counters.repeated, 1);
});

test("k026_the_serving_side_stops_its_handler_and_a_late_cancel_is_harmless", async () => {
  const { link, transport } = raw();
  let cleaned = false;
  const started = new Gate();
  serve(transport, [
    Ask.implement(async (_, cx) => {
      started.open();
      await stopped(cx.signal);
      cleaned = true;
    }),
  ]);
  link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
  await started.opened;
  link.say({ type: "cancel", id: "1" });
  await until(() => link.sent.length === 1);
  assert.ok(cleaned, "the answer follows the clean-up");
  assert.deepEqual(link.sent[0], { type: "response", id: "1", response: { status: "cancelled" } });
  link.say({ type: "cancel", id: "1" });
  link.say({ type: "cancel", id: "never" });
  assert.equal(transport.serving, 0);
  assert.equal(link.sent.length, 1);
});

test("k026_a_lost_peer_stops_the_handlers_that_worked_for_it", async () => {
  const { link, transport } = raw();
  const signals = new Gate<AbortSignal>();
  serve(transport, [Ask.implement(async (_, cx) => (signals.open(cx.signal), stopped(cx.signal)))]);
  link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
  const signal = await signals.opened;
  link.end();
  assert.ok(signal.aborted);
});

test("k027_closing_answers_everything_in_flight", async () => {
  const { link, transport } = raw();
  const gate = new Gate();
  const started: unknown[] = [];
  const served = serve(transport, [
    Ask.implement(async (which, cx) => {
      started.push(which);
      if (which === "polite") await stopped(cx.signal);
      if (which === "stubborn") await gate.opened;
    }),
  ]);
  link.say({ id: "1", kind: "elicit", type: "ask", payload: "polite" });
  link.say({ id: "2", kind: "elicit", type: "ask", payload: "stubborn" });
  await until(() => started.length === 2);
  const closed = served.close({ graceMs: 20 });
  link.say({ id: "3", kind: "elicit", type: "ask", payload: "late" });
  await closed;
  const byId = Object.fromEntries(link.sent.map((message) => [message.id, message.response]));
  assert.deepEqual(byId["1"], { status: "cancelled" });
  assert.deepEqual(byId["2"], { status: "cancelled" });
  assert.equal(byId["3"].fault.code, "tool.busy");
  gate.open();
});

test("k027_closing_with_a_drain_lets_work_end_by_itself", async () => {
  const { link, transport } = raw();
  const gate = new Gate();
  const started = new Gate();
  const served = serve(transport, [Ask.implement(async () => (started.open(), await gate.opened, "whole"))]);
  link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
  await started.opened;
  const closed = served.close({ drainMs: 10_000 });
  gate.open();
  await closed;
  assert.deepEqual(link.sent[0].response, { status: "accepted", content: "whole" });
});

test("k027_what_cannot_be_read_is_counted_and_answered_when_it_has_an_id", async () => {
  const { link, transport } = raw();
  serve(transport, [Ask.implement(() => 1)]);
  for (const text of ["{", "[]", "7", "null", "{}"]) link.say(text);
  assert.equal(link.sent.length, 0);
  link.say({ type: "request", payload: { id: "9", kind: "shout", type: "ask" } });
  link.say({ type: "request", id: "8" });
  assert.deepEqual(link.sent.map((message) => [message.id, message.response.fault.code]), [["9", "protocol.malformed"], ["8", "protocol.malformed"]]);
  assert.equal(transport.counters.malformed, 7);
});

test("k028_our_own_peers_get_faults_and_strangers_plain_text", async () => {
  const broken = Ask.implement(() => {
    throw new Fault("tool.limit", "Too many.", { retryable: true, details: { max: 3 } });
  });
  for (const own of [true, false]) {
    const { link, transport } = raw(own);
    serve(transport, [broken]);
    link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
    link.say({ id: "2", kind: "elicit", type: "nowhere", payload: null });
    await until(() => link.sent.length === 2);
    const [failed, unknown] = [1, 2].map((id) => link.sent.find((message) => message.id === String(id)).response);
    const fault = { code: "tool.limit", message: "Too many.", retryable: true, details: { max: 3 } };
    assert.deepEqual(failed, own ? { status: "other", content: "Too many.", fault } : { status: "other", content: "Too many." });
    assert.equal(unknown.fault?.code, own ? "tool.not_found" : undefined);
    assert.match(unknown.content, /nowhere/);
  }
});

test("k028_what_went_wrong_inside_stays_inside", async () => {
  const [near, far] = memoryPair();
  serve(far, [Ask.implement(() => Promise.reject(new Error("password is hunter2")))]);
  const fault = await fails(scope(near).call(Ask, {}), "tool.internal");
  assert.equal(fault.message, "The tool failed inside.");
});

test("k005_output_that_is_not_json_is_a_fault", async () => {
  const [near, far] = memoryPair();
  serve(far, [Ask.implement(() => 10n)]);
  await fails(scope(near).call(Ask, {}), "tool.invalid_output");
  await fails(scope(near).call(Ask, 10n), "tool.invalid_input");
});

/** A peer that drops what has one key more than it knows, as some do, and ignores unknown types. */
class StrictPeer {
  readonly kept: any[] = [];
  dropped = 0;

  take(message: any): void {
    const known = ["request", "progress", "response", "cancel"].includes(message.type) || "kind" in message;
    if (!known) return;
    if (!this.#fits(message)) this.dropped += 1;
    else this.kept.push(message);
  }

  #fits(message: any): boolean {
    const only = (value: object, keys: string[]): boolean => Object.keys(value).sort().join() === keys.sort().join();
    if ("kind" in message) return only(message, ["id", "kind", "type", "payload"]);
    switch (message.type) {
      case "request":
        return only(message, ["type", "payload"]) && only(message.payload, ["id", "kind", "type", "payload"]);
      case "progress":
        return only(message, ["type", "id", "data"]);
      case "cancel":
        return only(message, ["type", "id"]);
      default: {
        if (!only(message, ["type", "id", "response"])) return false;
        const { response } = message;
        if ("ok" in response) return only(response, ["ok"]);
        const content = ["accepted", "other"].includes(response.status);
        return only(response, content ? ["status", "content"] : ["status"]);
      }
    }
  }
}

test("k024_a_strict_peer_drops_nothing_that_is_sent_to_it", async () => {
  const { link, transport } = raw(false);
  const peer = new StrictPeer();
  const root = scope(transport)
    .provide(elicit, () => ({ status: "accepted", content: 1, more: "than wanted" }) as { status: "accepted"; content: unknown })
    .provide(notify, () => {});
  const Work = tool({
    name: "work",
    description: "",
    input: {},
    output: {},
    run: (how, cx) => {
      cx.progress(undefined as never);
      if (how === "fault") throw new Fault("tool.limit", "Too many.", { details: { a: 1 } });
      if (how === "refuse") throw Fault.declined("No.");
      if (how === "cancel") throw Fault.canceled();
      return undefined;
    },
  });
  serve(transport, [Work], { scope: root });
  for (const [id, payload] of [["1", null], ["2", "fault"], ["3", "refuse"], ["4", "cancel"]] as const) {
    link.say({ type: "request", payload: { id, kind: "elicit", type: "work", payload } });
  }
  link.say({ type: "request", payload: { id: "5", kind: "elicit", type: "form", payload: { message: "?", schema: {} } } });
  link.say({ type: "request", payload: { id: "6", kind: "notify", type: "notification", payload: { message: "!" } } });
  link.say({ type: "request", payload: { id: "7", kind: "elicit", type: "unknown", payload: null } });
  link.say({ type: "request", payload: { id: "8", kind: "loud", type: "work" } });
  const call = root.call(Ask, {});
  await until(() => link.sent.length === 13, "everything to be sent");
  void call.cancel();
  link.sent.forEach((message) => peer.take(message));
  assert.equal(peer.dropped, 0);
  const ended = peer.kept.filter((message) => message.type === "response").map((message) => message.id);
  assert.deepEqual(ended.sort(), ["1", "2", "3", "4", "5", "6", "7", "8"]);
});

test("k020_progress_is_left_out_when_the_other_side_does_not_read", async () => {
  const { link, transport } = raw();
  serve(transport, [
    Ask.implement((_, cx) => {
      (cx as { progress(data: unknown): void }).progress("seen");
      link.unsent = 1e9;
      (cx as { progress(data: unknown): void }).progress("left out");
      return "done";
    }),
  ]);
  link.say({ id: "1", kind: "elicit", type: "ask", payload: null });
  await until(() => link.sent.length === 2);
  assert.deepEqual(link.sent.map((message) => message.data ?? message.response.content), ["seen", "done"]);
  assert.equal(transport.counters.progressDropped, 1);
});

test("an_offer_is_answered_with_names_or_a_fault", async () => {
  const { link, transport } = raw();
  const served = serve(transport, [Ask.implement(() => 1)]);
  const accepted = served.offer();
  assert.deepEqual(link.sent.shift(), { type: "offer", tools: [{ name: "ask", description: "", input: {}, output: {} }] });
  link.say({ type: "offered", tools: ["browser/ask"] });
  assert.deepEqual(await accepted, ["browser/ask"]);
  const refused = served.offer();
  link.say({ type: "offered", error: { code: "permission.denied", message: "Not yours." } });
  assert.equal((await fails(refused, "permission.denied")).message, "Not yours.");
  const lost = served.offer();
  link.end();
  await fails(lost, "transport.lost");
});

test("k019_requests_of_a_handler_are_children_of_what_it_serves", async () => {
  const { link, transport } = raw();
  serve(transport, [Ask.implement((_, cx) => cx.call("other/tool", { n: 1 }))]);
  link.say({ id: "7", kind: "elicit", type: "ask", payload: null });
  await until(() => link.sent.length === 1);
  const child = link.sent.shift();
  const { id, ...rest } = child.payload;
  assert.deepEqual({ ...child, payload: rest }, { type: "child", of: "7", payload: { kind: "elicit", type: "other/tool", payload: { n: 1 } } });
  link.say({ type: "cancel", id: "7" });
  await until(() => link.sent.length === 2);
  assert.deepEqual(link.sent[0], { type: "cancel", id }, "what it asked is called off with it");
  assert.deepEqual(link.sent[1].response, { status: "cancelled" });
});

test("k019_a_child_of_nothing_is_refused", async () => {
  const { link, transport } = raw();
  scope(transport).provide(sample, () => ({ text: "no" }));
  link.say({ type: "child", of: "nothing", payload: { id: "1", kind: "elicit", type: "sample", payload: { prompt: "x" } } });
  assert.equal(link.sent[0].response.fault.code, "tool.not_found");
});
