import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { tool } from "wharf-sdk";
import { Connection } from "../../src/node/agent/connection.js";
import { Session } from "../../src/node/agent/session.js";
import { Desk } from "../../src/serve.js";
import { z } from "zod";

type Message = { id: string; type: string; payload: Record<string, any>; [field: string]: any };

const EXAMPLES = fileURLToPath(new URL("../../../../../crates/kernel/wire/testdata/agent_v1/", import.meta.url));

/** An example message of the wire, as both ends in Rust read and write it. */
async function example(name: string): Promise<Message> {
  return JSON.parse(await readFile(join(EXAMPLES, `${name}.json`), "utf8")) as Message;
}

/** A core played by the test. */
class Core {
  readonly #messages: Message[] = [];
  #held = Buffer.alloc(0);
  #wake: (() => void) | undefined;

  constructor(readonly socket: Socket) {
    socket.on("data", (piece) => {
      this.#held = Buffer.concat([this.#held, piece as Buffer]);
      while (this.#held.length >= 4 && this.#held.length >= 4 + this.#held.readUInt32BE(0)) {
        const end = 4 + this.#held.readUInt32BE(0);
        this.#messages.push(JSON.parse(this.#held.subarray(4, end).toString()) as Message);
        this.#held = this.#held.subarray(end);
      }
      this.#wake?.();
    });
  }

  say(message: Message): void {
    const body = Buffer.from(JSON.stringify(message));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length);
    this.socket.write(Buffer.concat([length, body]));
  }

  /** The next message of a type; others before it are passed over. */
  async hear(type: string): Promise<Message> {
    for (;;) {
      const message = this.#messages.shift();
      if (message?.type === type) return message;
      if (!message) await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

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

/** Runs a test with a session, its core, and what the session registered. */
async function withSession(work: (core: Core, registered: Message) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "wharf-agent-"));
  const server = createServer();
  const met = new Promise<Socket>((resolve) => server.once("connection", resolve));
  await new Promise<void>((resolve) => server.listen(join(folder, "s"), resolve));
  const connection = await Connection.open(join(folder, "s"));
  const session = new Session(connection, { id: "dev.example.agent", version: "0.1.0", callsMax: 4 }, new Desk([Spend, Look], {}));
  const running = session.run("token");
  const core = new Core(await met);
  try {
    await core.hear("agent.hello");
    core.say(await example("core.welcome"));
    await work(core, await core.hear("agent.tools.register"));
  } finally {
    session.stop();
    await running;
    core.socket.destroy();
    server.close();
    await rm(folder, { recursive: true });
  }
}

test("r165_an_agent_tells_its_cost_as_it_is_spent", async () => {
  const golden = await example("agent.tool.stream.cost");
  await withSession(async (core) => {
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
  await withSession(async (core, registered) => {
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
  await withSession(async (core) => {
    for (const name of ["core.tools.registered", "core.tools.unregistered", "core.error"]) core.say(await example(name));
    const ping = await example("core.ping");
    core.say(ping);
    assert.equal((await core.hear("agent.pong"))["in_reply_to"], ping.id);
  });
});
