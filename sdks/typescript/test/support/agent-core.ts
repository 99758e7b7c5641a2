/** The agent's end of a session with a core that a test plays by hand. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { AnyTool } from "wharf-sdk";
import { Connection } from "../../src/node/agent/connection.js";
import { Session } from "../../src/node/agent/session.js";
import { Desk, type Servable } from "../../src/serve.js";

export type Message = { id: string; type: string; payload: Record<string, any>; [field: string]: any };

const EXAMPLES = fileURLToPath(new URL("../../../../../crates/kernel/wire/testdata/agent_v1/", import.meta.url));

/** An example message of the wire, as both ends in Rust read and write it. */
export async function example(name: string): Promise<Message> {
  return JSON.parse(await readFile(join(EXAMPLES, `${name}.json`), "utf8")) as Message;
}

/** A core played by the test. */
export class Core {
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

/** Runs a test with a session, its core, and what the session registered. */
export async function withSession(tools: readonly AnyTool[], work: (core: Core, registered: Message) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "wharf-agent-"));
  const server = createServer();
  const met = new Promise<Socket>((resolve) => server.once("connection", resolve));
  await new Promise<void>((resolve) => server.listen(join(folder, "s"), resolve));
  const connection = await Connection.open(join(folder, "s"));
  const session = new Session(connection, { id: "dev.example.agent", version: "0.1.0", callsMax: 4 }, new Desk(tools as readonly Servable[], {}));
  const running = session.run("token");
  const core = new Core(await met);
  try {
    await core.hear("agent.hello");
    const welcome = await example("core.welcome");
    welcome.payload["capabilities"] = ["invoke", "ask", "notify", "steps"];
    core.say(welcome);
    await work(core, await core.hear("agent.tools.register"));
  } finally {
    session.stop();
    await running;
    core.socket.destroy();
    server.close();
    await rm(folder, { recursive: true });
  }
}
