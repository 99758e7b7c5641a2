/** A tool server by itself: what it says while a run goes on, and what it takes for an error. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Fault, tool } from "wharf-sdk";
import { serveTool, type ToolServer } from "wharf-sdk/toolserver";

import { NodeWebSocket } from "../../src/node/websocket.js";

const UPSTREAM = new URL("../../../../../crates/kernel/wire/testdata/run_v1/upstream/", import.meta.url);

type Frame = Record<string, any>;

/** Serves a tool of this work, as long as the body takes. */
async function served(run: (input: any, cx: any) => unknown, body: (server: ToolServer) => Promise<void>): Promise<void> {
  const made = tool({ name: "made", description: "", input: {}, output: {}, run });
  const server = await serveTool("test/made@1", made as never, { args: ["--port", "0"] });
  try {
    await body(server);
  } finally {
    await server.close();
  }
}

/** Everything that a request brings, until the server closes. `seen` may send more. */
async function ask(server: ToolServer, request: Frame, seen: (frame: Frame, socket: NodeWebSocket) => void = () => {}): Promise<Frame[]> {
  const socket = new NodeWebSocket(`${server.url.replace("http", "ws")}/run`, ["theory.run.v1"]);
  const frames: Frame[] = [];
  socket.onopen = () => socket.send(JSON.stringify(request));
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(String(data)) as Frame;
    frames.push(frame);
    seen(frame, socket);
  };
  await new Promise((resolve) => (socket.onclose = () => resolve(undefined)));
  return frames;
}

const request = (run_id: unknown): Frame => ({ kind: "Request", control: { run_id, mode: "mock" }, inputs: {}, outputs: {} });
const last = (frames: Frame[]): Frame => frames.find((frame) => frame["control"].final === true) ?? assert.fail(JSON.stringify(frames));

test("t011_costs_are_told_as_they_are_made", async () => {
  const spend = async (_: unknown, cx: any): Promise<unknown> => {
    cx.cost(300);
    cx.cost(0);
    cx.cost(400);
    await new Promise((resolve) => cx.signal.addEventListener("abort", resolve));
    return {};
  };
  await served(spend, async (server) => {
    const told: number[] = [];
    const frames = await ask(server, request("r1"), (frame, socket) => {
      if (frame["kind"] === "Event" && frame["control"].cost_micro !== undefined) told.push(frame["control"].cost_micro);
      if (told.length === 2 && frame["control"].cost_micro === 700) socket.send(JSON.stringify({ kind: "Cancel", control: { run_id: "r1" } }));
    });
    assert.deepEqual(told, [300, 700]);
    assert.equal(last(frames)["error"].code, "ERR_CANCELED");
    assert.equal(last(frames)["control"].cost_micro, 700);
  });
});

test("t016_a_reported_error_is_never_a_success", async () => {
  for (const name of ["envelope.error.meta", "envelope.error.execution_id"]) {
    const envelope: unknown = JSON.parse(readFileSync(new URL(`${name}.json`, UPSTREAM), "utf8"));
    await served(() => envelope, async (server) => {
      const { control, error } = last(await ask(server, request("r1")));
      assert.equal(control.status, "error", name);
      assert.deepEqual(error, { code: "ERR_PROVIDER", message: "rate limited" });
    });
  }
  await served(() => ({ status: "success", outputs: { a: 1 }, meta: {}, execution_id: "x" }), async (server) => {
    const { control, outputs } = last(await ask(server, request("r1")));
    assert.equal(control.status, "success");
    assert.deepEqual(outputs, { a: 1 });
  });
  await served(() => ({ status: "error", message: "a tool may say so" }), async (server) => {
    assert.equal(last(await ask(server, request("r1")))["control"].status, "success");
  });
});

test("t005_a_whole_number_is_the_text_of_its_digits", async () => {
  const numeric = JSON.parse(readFileSync(new URL("request.numeric.json", UPSTREAM), "utf8")) as Frame;
  await served(() => ({}), async (server) => {
    const frames = await ask(server, numeric);
    assert.deepEqual(frames[0], { kind: "Ack", control: { run_id: "7" } });
    assert.equal(last(frames)["control"].run_id, "7");
    assert.deepEqual(await ask(server, request(7.5)), []);
  });
});

test("a_request_for_another_tool_is_refused_and_its_work_is_not_done", async () => {
  let done = 0;
  await served(() => ({ done: ++done }), async (server) => {
    const asks = (run_id: string, tool: unknown): Frame => ({ ...request(run_id), control: { run_id, mode: "real", tool } });
    const refused = await ask(server, asks("r1", { ref: "bank/transfer@1", digest: "aa" }));
    assert.equal(last(refused)["error"].code, "ERR_WRONG_TOOL");
    assert.equal(refused[0]?.["tool"], undefined);
    assert.equal(done, 0);
    const own = await ask(server, asks("r1", { ref: "test/made@1", digest: "aa" }));
    assert.deepEqual(own[0]?.["tool"], { ref: "test/made@1" });
    assert.equal(last(own)["control"].status, "success");
    const again = await ask(server, asks("r1", { ref: "bank/transfer@1" }));
    assert.equal(last(again)["error"].code, "ERR_WRONG_TOOL");
    assert.equal(done, 1);
    const silent = await ask(server, request("r2"));
    assert.deepEqual(silent[0], { kind: "Ack", control: { run_id: "r2" } });
  });
});

test("t048_f022_f028_steps_go_to_whoever_watches_and_come_back", async () => {
  const walk = async (_: unknown, cx: any): Promise<unknown> => {
    const page = await cx.step("fetch", "web/fetch", { url: "u" });
    const dice = await cx.local("dice", () => 4);
    const failed = await cx.step("none", "web/none", {}).catch((fault: Fault) => fault.code);
    return { size: page.size, dice, failed };
  };
  await served(walk, async (server) => {
    const asked: Frame[] = [];
    const answers: Frame[] = [{ outputs: { size: 7 } }, {}, { value: 9 }, { error: { code: "tool.not_found", message: "None." } }];
    const durable = request("r1");
    durable["control"].steps = true;
    const frames = await ask(server, durable, (frame, socket) => {
      if (frame["kind"] !== "Step") return;
      const answer = { kind: "Stepped", control: { run_id: "r1" }, step: frame["step"], ...answers[asked.length] };
      asked.push(frame);
      // An answer to no open step changes nothing.
      socket.send(JSON.stringify({ ...answer, step: { name: "other", n: 1 } }));
      socket.send(JSON.stringify(answer));
    });
    assert.deepEqual(last(frames)["outputs"], { size: 7, dice: 9, failed: "tool.not_found" });
    const [fetch, look, keep] = asked;
    assert.deepEqual([fetch?.["tool"], fetch?.["inputs"], fetch?.["step"]], ["web/fetch", { url: "u" }, { name: "fetch", n: 1 }]);
    assert.deepEqual(["value" in (look ?? {}), keep?.["value"], keep?.["control"].seq], [false, 4, undefined]);
  });
  // Whoever does no steps is not asked for any.
  await served(walk, async (server) => {
    assert.equal(last(await ask(server, request("r2")))["error"].code, "tool.unavailable");
  });
});

test("t048_a_step_without_an_answer_is_said_to_the_next_connection", async () => {
  await served((_, cx) => cx.local("dice", () => 4).then((dice: number) => ({ dice })), async (server) => {
    const durable = request("r1");
    durable["control"].steps = true;
    const first = await ask(server, durable, (frame, socket) => frame["kind"] === "Step" && socket.close());
    assert.ok(first.some((frame) => frame["kind"] === "Step"));
    const frames = await ask(server, durable, (frame, socket) => {
      if (frame["kind"] === "Step") socket.send(JSON.stringify({ kind: "Stepped", step: frame["step"], value: 8 }));
    });
    assert.deepEqual(last(frames)["outputs"], { dice: 8 });
  });
});
