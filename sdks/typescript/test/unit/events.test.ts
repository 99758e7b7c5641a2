import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, eventStream, scope, tool } from "wharf-sdk";
import { z } from "zod";
import { EventParser, type StreamEvent } from "../../src/links/event-parser.js";
import { eventServer } from "../support/servers.js";
import { fails, until } from "../support/waiting.js";

const Ask = tool({ name: "ask", description: "", input: z.string(), output: z.string() });

function parse(text: string, size: number): StreamEvent[] {
  const parser = new EventParser();
  const events: StreamEvent[] = [];
  for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
  return events;
}

test("k029_events_are_read_with_any_line_ends_and_cut_anywhere", () => {
  const lines = [": hello", "", "id: 1", "data: one", "", "id:2", "data:two", "data: lines", "event: x", "retry: 5", "", "data", "", "id: 3", ""];
  const expected = [
    { id: "1", data: "one" },
    { id: "2", data: "two\nlines" },
    { id: "2", data: "" },
  ];
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = `\uFEFF${lines.map((line) => line + end).join("")}`;
    for (let size = 1; size <= text.length; size += 1) {
      assert.deepEqual(parse(text, size), expected, `${JSON.stringify(end)} in pieces of ${size}`);
    }
  }
});

test("k029_an_event_that_was_not_ended_is_not_an_event", () => {
  assert.deepEqual(parse("data: half", 3), []);
  assert.deepEqual(parse("data: half\n", 3), []);
  assert.deepEqual(parse("id: a\0b\ndata: x\n\n", 99), [{ id: "", data: "x" }]);
});

test("k029_servers_with_crlf_and_letters_cut_in_half_are_understood", async () => {
  const server = await eventServer({ write: (id, data) => `id: ${id}\r\ndata: ${data}\r\n\r\n` });
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  const call = scope(transport).call(Ask, "ü");
  const { id, payload } = await peer.next();
  assert.equal(payload, "ü");
  peer.say({ type: "response", id, response: { status: "accepted", content: "grüße 🚢" } });
  assert.equal(await call, "grüße 🚢");
  await transport.close();
  await server.close();
});

test("k029_a_stream_that_broke_off_goes_on_where_it_was", async () => {
  const seen: string[] = [];
  const server = await eventServer({ onRequest: ({ method, headers }) => method === "GET" && seen.push(String(headers["last-event-id"])) });
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  const heard: unknown[] = [];
  const call = scope(transport).call(Ask, "x", { onProgress: (data) => heard.push(data) });
  const { id } = await peer.next();
  peer.say({ type: "progress", id, data: 1 });
  await until(() => heard.length === 1);
  server.breakOff();
  peer.say({ type: "progress", id, data: 2 });
  peer.say({ type: "response", id, response: { status: "accepted", content: "done" } });
  assert.equal(await call, "done");
  assert.deepEqual(heard, [1, 2]);
  assert.deepEqual(seen, ["undefined", "1"]);
  await transport.close();
  await server.close();
});

test("k026_a_stream_that_cannot_be_resumed_is_lost", async () => {
  let refused = false;
  const server = await eventServer({ refuse: () => (refused ? 410 : undefined) });
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  const call = scope(transport).call(Ask, "x");
  await peer.next();
  refused = true;
  server.breakOff();
  await fails(call, "transport.lost");
  await server.close();
});

test("k026_a_request_that_cannot_be_posted_fails_alone", async () => {
  let refused = 0;
  const server = await eventServer({ refuse: ({ method }) => (method === "POST" && refused > 0 ? ((refused -= 1), 503) : undefined) });
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  refused = 1;
  await fails(scope(transport).call(Ask, "lost"), "transport.lost");
  const call = scope(transport).call(Ask, "kept");
  const { id, payload } = await peer.next();
  assert.equal(payload, "kept");
  peer.say({ type: "response", id, response: { status: "accepted", content: "ok" } });
  assert.equal(await call, "ok");
  await transport.close();
  await server.close();
});

test("k032_the_core_is_told_token_protocol_and_session", async () => {
  const seen: string[] = [];
  const server = await eventServer({ onRequest: ({ method, url, headers }) => seen.push(`${method} ${url} ${headers.authorization}`) });
  const transport = await connect(server.url, { token: "t0ken", via: "events" });
  void scope(transport).call(Ask, "x").catch(() => {});
  await (await server.peer()).next();
  const session = /session=([0-9a-f]{32})/.exec(seen[0] ?? "")?.[1];
  const query = `/v1/tool/sse?role=principal&protocol=wharf.tool.v1&session=${session}`;
  assert.deepEqual(seen, [`GET ${query} Bearer t0ken`, `POST ${query} Bearer t0ken`]);
  await transport.close();
  await server.close();
});

test("k029_who_leaves_says_so_and_whoever_is_left_knows", async () => {
  const server = await eventServer();
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  const call = scope(transport).call(Ask, "x");
  await peer.next();
  peer.say({ type: "closed", code: 1008, reason: "the token is not good any more" });
  const fault = await fails(call, "transport.lost");
  assert.equal(fault.retryable, false);
  assert.equal((await peer.next()).type, "closed", "it says goodbye");
  await server.close();
});

test("k029_a_gap_fails_what_may_have_been_answered_in_it", async () => {
  const server = await eventServer();
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  const call = scope(transport).call(Ask, "x");
  await peer.next();
  peer.say({ type: "gap", from: 2, to: 5 });
  assert.equal((await fails(call, "transport.lost")).retryable, true);
  await server.close();
});

test("k029_messages_are_posted_in_order", async () => {
  const server = await eventServer();
  const transport = await eventStream(server.url);
  const peer = await server.peer();
  const calls = Array.from({ length: 20 }, (_, n) => scope(transport).call(Ask, String(n)));
  for (let n = 0; n < 20; n += 1) {
    const { id, payload } = await peer.next();
    assert.equal(payload, String(n));
    peer.say({ type: "response", id, response: { status: "accepted", content: payload } });
  }
  assert.equal((await Promise.all(calls)).length, 20);
  await transport.close();
  await server.close();
});

test("a_stream_that_is_refused_says_why", async () => {
  const server = await eventServer({ refuse: () => 404 });
  const fault = await fails(eventStream(server.url), "transport.lost");
  assert.match(fault.message, /404/);
  assert.equal(fault.retryable, false);
  await server.close();
});
