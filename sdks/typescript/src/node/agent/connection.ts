/** Frames of the agent protocol: four bytes of length, then that many bytes of JSON. */

import { randomUUID } from "node:crypto";
import { connect, Socket } from "node:net";

const VERSION = 1;
const FRAME_BYTES_MAX = 4 * 1024 * 1024;
const HELLO_BYTES_MAX = 64 * 1024;
const ECHOED = ["request_id", "correlation_id", "causation_id", "traceparent"] as const;

/** A message of the protocol. */
export interface Message {
  v: number;
  type: string;
  id: string;
  ts: string;
  payload: Record<string, unknown>;
  in_reply_to?: string;
  error?: unknown;
  [field: string]: unknown;
}

/** The core, or what it sent, leaves no way to go on. The text is safe to print. */
export class Refused extends Error {}

/** What a message is about, and what else it carries. */
export interface SendOptions {
  /** The message that this one directly replies to. */
  answers?: Message | undefined;
  /** The message whose correlation fields come back. */
  about?: Message | undefined;
  error?: Record<string, unknown>;
}

/** One connection to the core. */
export class Connection {
  receiveBytesMax = FRAME_BYTES_MAX;
  sendBytesMax = HELLO_BYTES_MAX;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Connects to where the core said: a path, `tcp:HOST:PORT`, or `fd:NUMBER`. */
  static async open(address: string): Promise<Connection> {
    if (address.startsWith("fd:")) {
      return new Connection(new Socket({ fd: Number(address.slice(3)), readable: true, writable: true }));
    }
    const tcp = /^tcp:(.*):(\d+)$/.exec(address);
    const socket = tcp ? connect(Number(tcp[2]), tcp[1]) : connect(address);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", () => reject(new Refused("The core cannot be reached.")));
    });
    if (tcp) socket.setNoDelay(true);
    return new Connection(socket);
  }

  /** Sends a message; `false` when it would be larger than the core allows. Throws when it is not JSON. */
  send(type: string, payload: Record<string, unknown>, { answers, about, error }: SendOptions = {}): boolean {
    const message: Record<string, unknown> = { v: VERSION, type, id: randomUUID(), ts: new Date().toISOString() };
    const source = about ?? answers;
    for (const name of ECHOED) if (source?.[name] != null) message[name] = source[name];
    if (answers) message["in_reply_to"] = answers.id;
    if (error) message["error"] = error;
    message["payload"] = payload;
    const body = Buffer.from(JSON.stringify(message));
    if (body.length > this.sendBytesMax) return false;
    const frame = Buffer.alloc(4 + body.length);
    frame.writeUInt32BE(body.length);
    body.copy(frame, 4);
    if (this.#socket.writable) this.#socket.write(frame);
    return true;
  }

  /** How many bytes the core has not taken yet. */
  get unsent(): number {
    return this.#socket.writableLength;
  }

  /** The messages of the core, until the connection is over. */
  async *messages(): AsyncGenerator<Record<string, unknown>> {
    let held: Buffer = Buffer.alloc(0);
    const pieces: AsyncIterable<Buffer> = this.#socket;
    try {
      for await (const piece of pieces) {
        held = held.length === 0 ? piece : Buffer.concat([held, piece]);
        while (held.length >= 4) {
          const length = held.readUInt32BE(0);
          if (length === 0 || length > this.receiveBytesMax) throw new Refused("The core sent a frame of a forbidden size.");
          if (held.length < 4 + length) break;
          const body = held.subarray(4, 4 + length);
          held = held.subarray(4 + length);
          yield parse(body);
        }
      }
    } catch (error) {
      // A connection that breaks is over, as one that was ended is.
      if (error instanceof Refused) throw error;
    }
  }

  /** Sends what waits, and ends. */
  close(): void {
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), 1_000).unref();
  }
}

function parse(body: Buffer): Record<string, unknown> {
  let message: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    message = JSON.parse(text);
    // Half of a surrogate pair is no text; JSON writes it as an escape.
    if (/\\ud/i.test(text) && /\\ud[89a-f]/i.test(JSON.stringify(message))) throw new SyntaxError();
  } catch {
    throw new Refused("The core sent a frame that is not JSON.");
  }
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    throw new Refused("The core sent JSON that is not an object.");
  }
  return message as Record<string, unknown>;
}

/** What is wrong with an envelope, if anything is. */
export function faultOf(message: Record<string, unknown>): string | undefined {
  const { v, type, id, ts, payload } = message;
  if (!Number.isInteger(v)) return "`v` is missing or has the wrong form.";
  if (v !== VERSION) throw new Refused("The core changed the version of the protocol.");
  for (const [name, value] of Object.entries({ type, id, ts })) {
    if (typeof value !== "string" || value === "") return `\`${name}\` is missing or has the wrong form.`;
  }
  const isObject = typeof payload === "object" && payload !== null && !Array.isArray(payload);
  return isObject ? undefined : "`payload` is missing or has the wrong form.";
}
