/** The example files of the wires, the same that the core's own tests read. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { Fault, scope, serve, tool } from "wharf-sdk";
import { readMessage, writeCancel, writeChild, writeCost, writeOffer, writeOffered, writeProgress, writeRequest, writeResponse, type Message, type Offer, type Outcome } from "../../src/wire.js";
import { Ask, raw } from "../support/raw.js";
import { until } from "../support/waiting.js";

const FOLDER = new URL("../../../../../crates/kernel/wire/testdata/tool_v1/", import.meta.url);

function examples(folder: URL): Map<string, string> {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return new Map(names.sort().map((name) => [name.slice(0, -".json".length), readFileSync(new URL(name, folder), "utf8").trim()]));
}

/** A message as it is written again. */
function written(message: Message, bare: boolean, text: string): string {
  switch (message.type) {
    case "request":
      return writeRequest(message.request, bare);
    case "child":
      return writeChild(message.of, message.request);
    case "progress":
      if (!("data" in message)) return writeCost(message.id, message.cost ?? 0);
      return writeProgress(message.id, message.data);
    case "response": {
      const kind = text.includes('"ok":true') ? "notify" : "elicit";
      return writeResponse(message.id, kind, message.outcome, true, message.cost);
    }
    case "cancel":
      return writeCancel(message.id);
    case "offer":
      return writeOffer(message.tools as Offer[]);
    case "offered":
      return writeOffered(message.fault ?? message.tools);
    default:
      throw new Error(`${message.type} is no example`);
  }
}

test("k023_every_example_is_read_and_written_again_as_it_was", () => {
  const all = examples(FOLDER);
  assert.ok(all.size > 20, "the examples are found");
  for (const [name, text] of all) {
    const message = readMessage(text);
    assert.equal(message.type, name.split(".")[0], name);
    // This side never tells both at once; it reads them all the same.
    if (name === "progress.data_and_cost") {
      assert.deepEqual(message, { type: "progress", id: "r1", data: 0.5, cost: 900 });
      continue;
    }
    assert.deepEqual(JSON.parse(written(message, name.endsWith(".bare"), text)), JSON.parse(text), name);
  }
});

test("k023_k024_the_original_frames_are_understood_word_by_word", async () => {
  const frames = examples(new URL("seed/", FOLDER));
  const { link, transport } = raw(false);
  const Locate = tool({ name: "get-location", description: "", input: {}, output: {}, progress: {} });
  const call = scope(transport).call(Locate, { accuracy: "high" });
  const seen: unknown[] = [];
  const heard = (async () => {
    for await (const piece of call.progress) seen.push(piece);
  })();
  const { id, ...asked } = await link.request();
  const { id: _, ...original } = JSON.parse(frames.get("request")!);
  assert.deepEqual(asked, original);
  for (const name of ["progress.requesting", "progress.acquired", "response.accepted"]) {
    link.say({ ...JSON.parse(frames.get(name)!), id });
  }
  await heard;
  assert.deepEqual(seen, [{ status: "requesting-permission" }, { status: "acquired" }]);
  assert.deepEqual(await call, { lat: 40.7128, lng: -74.006 });

  const other = raw(false);
  const implemented = Locate.implement((_input, cx) => {
    cx.progress({ status: "requesting-permission" });
    cx.cost(25);
    cx.progress({ status: "acquired" });
    return { lat: 40.7128, lng: -74.006 };
  });
  serve(other.transport, [implemented]);
  other.link.say(frames.get("request.enveloped"));
  await until(() => other.link.sent.length === 3);
  const wanted = ["progress.requesting", "progress.acquired", "response.accepted"].map((name) => JSON.parse(frames.get(name)!));
  assert.deepEqual(other.link.sent, wanted, "a plain peer is told nothing of costs");
});

test("k036_what_a_call_costs_is_told_as_it_is_spent_and_with_the_answer", async () => {
  const { link, transport } = raw();
  const Buy = tool({ name: "buy", description: "", input: {}, output: {} }).implement(async (fail, cx) => {
    cx.cost(300);
    await cx.call(Price, {});
    if (fail) throw new Fault("shop.closed", "Closed.");
    return "bought";
  });
  const Price = tool({ name: "price", description: "", input: {}, output: {} }).implement((_input, cx) => {
    cx.cost(200);
    return 1;
  });
  serve(transport, [Buy]);
  for (const fail of [false, true]) {
    link.sent.length = 0;
    link.say({ id: "r1", kind: "elicit", type: "buy", payload: fail });
    await until(() => link.sent.length === 3);
    assert.deepEqual(link.sent.slice(0, 2), [
      { type: "progress", id: "r1", cost_micro: 300 },
      { type: "progress", id: "r1", cost_micro: 500 },
    ]);
    assert.equal(link.sent[2].type, "response");
    assert.equal(link.sent[2].cost_micro, 500);
  }
});

test("k036_a_caller_sees_what_its_call_costs_elsewhere", async () => {
  const { link, transport } = raw();
  const call = scope(transport).call(Ask, {});
  const { id } = await link.request();
  assert.equal(call.cost, 0);
  link.say({ type: "progress", id, cost_micro: 500 });
  link.say({ type: "progress", id, cost_micro: 200 });
  assert.equal(call.cost, 500, "what was spent stays spent");
  link.say({ type: "progress", id, data: 1, cost_micro: 600 });
  link.say({ type: "response", id, response: { status: "accepted", content: "x" }, cost_micro: 900 });
  assert.equal(await call, "x");
  assert.equal(call.cost, 900);

  const plain = raw(false);
  const believed = scope(plain.transport).call(Ask, {});
  const request = await plain.link.request();
  plain.link.say({ type: "response", id: request.id, response: { status: "accepted", content: 1 }, cost_micro: 5 });
  await believed;
  assert.equal(believed.cost, 0, "a plain peer has no costs");
});

test("k036_answers_without_a_cost_or_with_nonsense_cost_nothing", () => {
  for (const cost of [-1, 0.5, "12", null, {}]) {
    const outcome: Outcome = { status: "declined" };
    const message = readMessage(JSON.stringify({ type: "response", id: "r1", response: outcome, cost_micro: cost }));
    assert.deepEqual(message, { type: "response", id: "r1", outcome, cost: undefined });
  }
});
