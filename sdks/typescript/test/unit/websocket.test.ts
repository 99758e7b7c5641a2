import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";

import { connect, connectOperative, scope, tool, webSocket, type OperativeState } from "wharf-sdk";
import { z } from "zod";
import { encode, FrameReader, PING, PINGS_MAX, TEXT } from "../../src/node/frames.js";
import { webSocketServer } from "../support/servers.js";
import { fails, Gate, until } from "../support/waiting.js";

const Ask = tool({ name: "ask", description: "Asks.", input: z.string(), output: z.string() });

test("k032_the_token_and_the_protocol_are_offered_as_subprotocols", async () => {
  const seen: string[] = [];
  const server = await webSocketServer({
    protocol: "wharf.tool.v1",
    onHandshake: ({ url, headers }) => seen.push(String(url), String(headers["sec-websocket-protocol"])),
  });
  const transport = await connect(server.url, { token: "t0ken", world: "blue", detach: true });
  assert.equal(transport.own, true);
  assert.deepEqual(seen, ["/v1/tool/ws?role=principal&world=blue&detach=true", "wharf.tool.v1, wharf.bearer.t0ken"]);
  await transport.close();
  await server.close();
});

test("k028_a_server_that_chooses_no_protocol_is_a_plain_peer", async () => {
  const server = await webSocketServer();
  const transport = await webSocket(server.url, { plain: true });
  assert.equal(transport.own, false);
  await transport.close();
  await server.close();
});

test("a_message_that_comes_with_the_handshake_is_not_lost", async () => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1", greeting: '{"type":"cancel"}' });
  const transport = await webSocket(server.url);
  await until(() => transport.counters.malformed === 1);
  await transport.close();
  await server.close();
});

test("k032_a_refused_handshake_says_why", async () => {
  let body = JSON.stringify({ error: { code: "auth.invalid", message: "The token is not known." } });
  const server = await webSocketServer({ refuse: () => ({ status: 401, body }) });
  assert.equal((await fails(webSocket(server.url), "auth.invalid")).message, "The token is not known.");
  body = "";
  await fails(webSocket(server.url), "auth.required");
  await server.close();
  assert.equal((await fails(webSocket(server.url), "transport.lost")).retryable, true);
});

test("a_server_that_never_answers_is_given_up", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const url = `ws://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  await fails(webSocket(url, { openMs: 20 }), "transport.lost");
  silent.close();
});

test("frames_are_read_from_pieces_of_any_size", () => {
  for (const masked of [true, false]) {
    const texts = ["", "short", "x".repeat(200), "ü".repeat(40_000)];
    const bytes = Buffer.concat(texts.map((text) => encode(TEXT, Buffer.from(text), masked)));
    for (const size of [1, 7, 4096, bytes.length]) {
      const reader = new FrameReader(masked, 1 << 20);
      const read: string[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        for (const { body } of reader.push(bytes.subarray(at, at + size))) read.push(body.toString());
      }
      assert.deepEqual(read, texts);
    }
  }
});

test("a_flood_of_pings_is_refused", () => {
  const pings = (count: number) => Buffer.concat(Array.from({ length: count }, () => encode(PING, Buffer.alloc(125), true)));
  const reader = new FrameReader(true, 1_000);
  assert.equal([...reader.push(pings(PINGS_MAX))].length, PINGS_MAX);
  assert.throws(() => [...reader.push(pings(1))], { code: 1008 });
});

test("frames_that_break_the_rules_are_refused", () => {
  const read = (bytes: Buffer, max = 1_000): void => void [...new FrameReader(false, max).push(bytes)];
  assert.throws(() => read(encode(TEXT, Buffer.alloc(2_000), false)), { code: 1009 });
  assert.throws(() => read(encode(TEXT, Buffer.alloc(1), true)), { code: 1002 });
  assert.throws(() => read(Buffer.from([0xf1, 0])), { code: 1002 });
  assert.throws(() => read(Buffer.from([0x80, 0])), { code: 1002 });
});

test("k032_an_operative_stays_offered_across_lost_connections", async () => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1" });
  const states: OperativeState["name"][] = [];
  const asked: unknown[] = [];
  const operative = connectOperative(server.url, {
    provider: "browser",
    token: "t",
    tools: [Ask.implement((text) => `${text}!`)],
    backoff: { firstMs: 1, maxMs: 5 },
    onState: ({ name }) => states.push(name),
    onRequest: (request) => asked.push(request),
  });
  for (let round = 0; round < 3; round += 1) {
    const peer = await server.peer();
    const offer = await peer.next();
    assert.equal(offer.type, "offer");
    assert.deepEqual(offer.tools.map(({ name, description }: { name: string; description: string }) => [name, description]), [["ask", "Asks."]]);
    peer.say({ type: "offered", tools: ["browser/ask"] });
    assert.deepEqual(await operative.ready, ["browser/ask"]);
    peer.say({ type: "request", payload: { id: "1", kind: "elicit", type: "ask", payload: `round ${round}` } });
    assert.deepEqual(await peer.next(), { type: "response", id: "1", response: { status: "accepted", content: `round ${round}!` } });
    await peer.close();
  }
  await operative.close();
  assert.deepEqual(operative.state, { name: "closed", fault: undefined });
  assert.deepEqual(states.slice(0, 4), ["connecting", "offered", "waiting", "connecting"]);
  assert.equal(asked.length, 3);
  await server.close();
});

test("k032_an_operative_waits_for_a_name_that_another_one_holds", async () => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1" });
  const operative = connectOperative(server.url, { provider: "p", tools: [Ask.implement((text) => text)], backoff: { firstMs: 1 } });
  const first = await server.peer();
  await first.next();
  first.say({ type: "offered", error: { code: "tool.conflict", message: "The name is taken." } });
  const second = await server.peer();
  await second.next();
  second.say({ type: "offered", tools: ["p/ask"] });
  assert.deepEqual(await operative.ready, ["p/ask"]);
  await operative.close();
  await server.close();
});

test("k032_an_operative_that_is_not_allowed_gives_up", async () => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1" });
  const operative = connectOperative(server.url, { provider: "p", tools: [Ask.implement((text) => text)], backoff: { firstMs: 1 } });
  const peer = await server.peer();
  await peer.next();
  peer.say({ type: "offered", error: { code: "permission.denied", message: "The name is not yours." } });
  await fails(operative.ready, "permission.denied");
  await until(() => operative.state.name === "closed");
  await operative.close();
  await server.close();
});

test("k032_an_operative_that_lost_its_name_or_its_right_does_not_come_back", async () => {
  for (const code of [1000, 1008]) {
    const server = await webSocketServer({ protocol: "wharf.tool.v1" });
    const operative = connectOperative(server.url, { provider: "p", tools: [Ask.implement((text) => text)], backoff: { firstMs: 1 } });
    const peer = await server.peer();
    await peer.next();
    peer.say({ type: "offered", tools: ["p/ask"] });
    await operative.ready;
    await peer.close(code, "another connection serves p");
    await until(() => operative.state.name === "closed");
    assert.ok(operative.state.name === "closed" && operative.state.fault);
    assert.match(operative.state.fault.message, /another connection serves p/);
    assert.deepEqual(operative.state.fault.details, { close: code });
    await operative.close();
    await server.close();
  }
});

test("k027_an_operative_answers_what_is_in_flight_before_it_goes", async () => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1" });
  const inside = new Gate();
  const operative = connectOperative(server.url, {
    provider: "p",
    tools: [Ask.implement((_, cx) => (inside.open(), new Promise((resolve) => cx.signal.addEventListener("abort", () => resolve("late")))))],
  });
  const peer = await server.peer();
  await peer.next();
  peer.say({ type: "offered", tools: ["p/ask"] });
  peer.say({ type: "request", payload: { id: "1", kind: "elicit", type: "ask", payload: "x" } });
  await inside.opened;
  await operative.close();
  assert.deepEqual(await peer.next(), { type: "response", id: "1", response: { status: "cancelled" } });
  await server.close();
});

test("an_operative_can_be_closed_while_it_connects", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const sockets: Socket[] = [];
  silent.on("connection", (socket) => sockets.push(socket));
  const url = `ws://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const operative = connectOperative(url, { provider: "p", tools: [Ask.implement((text) => text)] });
  await until(() => sockets.length === 1, "the connection");
  await operative.close();
  assert.equal(operative.state.name, "closed");
  await fails(operative.ready, "tool.canceled");
  sockets.forEach((socket) => socket.destroy());
  silent.close();
});

test("what_cannot_be_served_is_said_at_once", async () => {
  await fails(() => connectOperative("http://127.0.0.1:1", { provider: "p", tools: [Ask] }), "tool.not_found");
});

test("k026_a_server_that_vanishes_fails_what_was_pending", async () => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1" });
  const transport = await webSocket(server.url);
  const call = scope(transport).call(Ask, "x");
  await (await server.peer()).next();
  await server.close();
  await fails(call, "transport.lost");
});
