/** The server's half of a WebSocket, on a socket that is to be upgraded. */

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

import { BINARY, CLOSE, closeBody, encode, FrameError, FrameReader, PING, PONG, TEXT } from "./frames.js";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const UNSENT_BYTES_MAX = 4 * 1024 * 1024;
const LINGER_MS = 2_000;

/** What a connection tells. */
export interface Handlers {
  message(text: string): void;
  gone(): void;
}

/** A connection that was accepted. */
export class Accepted {
  readonly #socket: Duplex;
  readonly #handlers: Handlers;
  readonly #reader = new FrameReader(true, MESSAGE_BYTES_MAX);
  #closing = false;

  /** Answers the handshake. */
  constructor(request: IncomingMessage, socket: Duplex, head: Buffer, subprotocol: string, handlers: Handlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    const proof = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${MAGIC}`).digest("base64");
    request.socket.setNoDelay(true);
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        `Sec-WebSocket-Accept: ${proof}\r\nSec-WebSocket-Protocol: ${subprotocol}\r\n\r\n`,
    );
    socket.on("data", (data: Buffer) => this.#read(data));
    socket.on("error", () => {});
    socket.on("close", () => handlers.gone());
    if (head.length > 0) setImmediate(() => this.#read(head));
  }

  /** Sends a text. A reader that is too slow is let go. */
  send(text: string): void {
    if (this.#closing) return;
    if (this.#socket.writableLength > UNSENT_BYTES_MAX) return this.close(1013, "too slow");
    this.#socket.write(encode(TEXT, Buffer.from(text), false));
  }

  close(code: number, reason: string): void {
    if (this.#closing) return;
    this.#socket.write(encode(CLOSE, closeBody(code, reason), false));
    this.#closing = true;
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  #read(data: Buffer): void {
    // What comes after the close is read and dropped, or the close is lost with the connection.
    if (this.#closing) return;
    try {
      for (const { opcode, body } of this.#reader.push(data)) {
        if (!this.#closing) this.#take(opcode, body);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.close(error.code, error.message);
    }
  }

  #take(opcode: number, body: Buffer): void {
    if (opcode === CLOSE) return this.close(1000, "");
    if (opcode === PING) return void this.#socket.write(encode(PONG, body, false));
    if (opcode === PONG) return;
    if (opcode === BINARY) return this.close(1003, "only text is understood");
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    } catch {
      return this.close(1007, "a frame is not UTF-8");
    }
    this.#handlers.message(text);
  }
}
