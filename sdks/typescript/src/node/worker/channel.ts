/** The worker's end of the channel to its server: JSON lines over one socket. */

import { Socket } from "node:net";

import { Fault } from "../../fault.js";

/** A message of either side. */
export type Message = Record<string, unknown> & { kind: string };

/** The run, as the server tells it first. */
export interface Start {
  payload: { run_id: string; mode: string; inputs?: Record<string, unknown>; outputs?: Record<string, string>; attempt?: number; traceparent?: string; tracestate?: string; steps?: boolean };
  refs?: string[];
  folder?: string;
  line_bytes_max?: number;
}

const LINE_BYTES_MAX = 8 * 1024 * 1024;

/** The channel of one run. */
export class Channel {
  lineBytesMax = LINE_BYTES_MAX;
  /** Is told when the run is called off. */
  onCancel: () => void = () => {};
  readonly #socket: Socket;
  readonly #answers = new Map<number, (message: Message) => void>();
  #asked = 0;
  #held: Buffer[] = [];
  #start!: (start: Start) => void;
  /** The first message. */
  readonly started = new Promise<Start>((resolve) => (this.#start = resolve));

  constructor(fd: number) {
    this.#socket = new Socket({ fd, readable: true, writable: true });
    this.#socket.on("data", (piece: Buffer) => this.#take(piece));
    // Without a server there is nobody to work for.
    this.#socket.on("error", () => process.exit(1));
    this.#socket.on("end", () => process.exit(1));
  }

  /** Sends a message; one that is too long is a fault that names what it holds. */
  send(message: Message, what = "outputs"): void {
    const line = Buffer.from(`${JSON.stringify(message)}\n`);
    if (line.length > this.lineBytesMax) {
      throw new Fault("ERR_LIMIT", `The output \`${what}\` makes the answer larger than ${this.lineBytesMax} bytes; give it a place of its own.`);
    }
    this.#socket.write(line);
  }

  /** Sends a request and waits for its answer; a refusal is thrown. */
  async ask(message: Message): Promise<Message> {
    const id = (this.#asked += 1);
    const answered = new Promise<Message>((resolve) => this.#answers.set(id, resolve));
    this.send({ ...message, id });
    const answer = await answered;
    if (answer.kind === "refused") throw new Fault(String(answer["code"]), String(answer["message"]));
    return answer;
  }

  /** Kept when all that was sent has left this process. */
  flushed(): Promise<void> {
    return new Promise((resolve) => this.#socket.write("", () => resolve()));
  }

  #take(piece: Buffer): void {
    this.#held.push(piece);
    if (!piece.includes(10)) return;
    const lines = Buffer.concat(this.#held).toString("utf8").split("\n");
    const rest = lines.pop() ?? "";
    this.#held = rest === "" ? [] : [Buffer.from(rest)];
    for (const line of lines) this.#hear(JSON.parse(line) as Message);
  }

  #hear(message: Message): void {
    if (message.kind === "start") return this.#start(message as unknown as Start);
    if (message.kind === "cancel") return this.onCancel();
    const answer = this.#answers.get(Number(message["id"]));
    this.#answers.delete(Number(message["id"]));
    answer?.(message);
  }
}
