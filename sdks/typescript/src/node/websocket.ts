/** A WebSocket client for Node, as small as the package needs it. */

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";

import { Fault } from "../fault.js";
import type { WebSocketLike } from "../links/websocket.js";
import type { Trust } from "./trust.js";
import { BINARY, CLOSE, closeBody, encode, FrameError, FrameReader, PING, PONG, TEXT } from "./frames.js";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
const LINGER_MS = 1_000;
const REFUSAL_BYTES_MAX = 64 * 1024;
const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

/** @internal */
export class NodeWebSocket implements WebSocketLike {
  protocol = "";
  readyState: number = CONNECTING;
  onopen: WebSocketLike["onopen"] = null;
  onmessage: WebSocketLike["onmessage"] = null;
  onclose: WebSocketLike["onclose"] = null;
  onerror: WebSocketLike["onerror"] = null;
  readonly #reader = new FrameReader(false, MESSAGE_BYTES_MAX);
  readonly #abort: () => void;
  #request: ClientRequest | undefined;
  #socket: Socket | undefined;
  #broken = false;
  #code = 1006;
  #reason = "";

  constructor(url: string, protocols: string[] = [], trust?: Trust) {
    const address = new URL(url);
    const secure = address.protocol === "wss:" || address.protocol === "https:";
    const key = randomBytes(16).toString("base64");
    const headers: Record<string, string> = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": key,
    };
    if (protocols.length > 0) headers["sec-websocket-protocol"] = protocols.join(", ");
    address.protocol = secure ? "https:" : "http:";
    this.#abort = () => this.#request?.destroy();
    if (!trust || !secure) {
      this.#ask((secure ? httpsRequest : httpRequest)(address, { headers }), key, protocols);
      return;
    }
    trust.connect(address).then(
      (socket) => {
        if (this.readyState !== CONNECTING) return socket.destroy();
        return this.#ask(httpsRequest(address, { headers, createConnection: () => socket }), key, protocols);
      },
      (error: Error) => this.#fail(error),
    );
  }

  /** Sends the handshake and takes its answer. */
  #ask(request: ClientRequest, key: string, protocols: string[]): void {
    this.#request = request;
    request.on("error", (error) => this.#fail(unopened(error)));
    request.on("response", (response) => void this.#refused(response));
    request.on("upgrade", (response, socket, head) => {
      const proof = createHash("sha1").update(key + MAGIC).digest("base64");
      const chosen = response.headers["sec-websocket-protocol"] ?? "";
      const wrong = response.headers["sec-websocket-accept"] !== proof || (chosen !== "" && !protocols.includes(chosen));
      if (wrong || this.readyState !== CONNECTING) {
        socket.destroy();
        return this.#fail(new Error("The handshake was not answered properly."));
      }
      this.#opened(socket as Socket, chosen, head);
    });
    request.end();
  }

  get bufferedAmount(): number {
    return this.#socket?.writableLength ?? 0;
  }

  send(text: string): void {
    if (this.readyState === OPEN) this.#write(TEXT, Buffer.from(text));
  }

  close(code = 1000, reason = ""): void {
    if (this.readyState === CONNECTING) {
      this.#abort();
      return this.#over();
    }
    if (this.readyState !== OPEN) return;
    this.readyState = CLOSING;
    this.#write(CLOSE, closeBody(code, reason));
    // The other side ends the connection; if it does not, it is ended here.
    setTimeout(() => this.#socket?.destroy(), LINGER_MS).unref();
  }

  #opened(socket: Socket, protocol: string, head: Buffer): void {
    this.#socket = socket;
    this.protocol = protocol;
    this.readyState = OPEN;
    socket.setNoDelay(true);
    socket.setTimeout(0);
    socket.on("data", (data) => this.#read(data));
    socket.on("error", () => {});
    socket.on("close", () => this.#over());
    socket.on("end", () => socket.end());
    this.onopen?.({});
    if (head.length > 0) this.#read(head);
  }

  #read(data: Buffer): void {
    if (this.#broken) return;
    try {
      for (const { opcode, body } of this.#reader.push(data)) this.#take(opcode, body);
    } catch (error) {
      const { code, message } = error instanceof FrameError ? error : new FrameError(1007, "a message is not UTF-8");
      // What comes after it is read and dropped, or the close is lost with the connection.
      this.#broken = true;
      this.close(code, message);
    }
  }

  #take(opcode: number, body: Buffer): void {
    if (opcode === PING) return this.#write(PONG, body);
    if (opcode === CLOSE) {
      if (body.length >= 2) this.#code = body.readUInt16BE(0);
      this.#reason = body.subarray(2).toString();
      if (this.readyState === OPEN) this.#write(CLOSE, body);
      this.readyState = CLOSING;
      this.#socket?.end();
      return;
    }
    if (this.readyState !== OPEN) return;
    if (opcode === TEXT) this.onmessage?.({ data: new TextDecoder("utf-8", { fatal: true }).decode(body) });
    else if (opcode === BINARY) this.onmessage?.({ data: body });
  }

  #write(opcode: number, body: Buffer): void {
    this.#socket?.write(encode(opcode, body, true));
  }

  /** The server answered, but not with a WebSocket: what it says is worth more than that. */
  async #refused(response: IncomingMessage): Promise<void> {
    let text = "";
    try {
      for await (const piece of response) {
        if (text.length < REFUSAL_BYTES_MAX) text += String(piece);
      }
    } catch {
      // What came is enough.
    }
    this.#fail(faultOf(response.statusCode ?? 0, text));
  }

  #fail(error: Error): void {
    if (this.readyState === CLOSED) return;
    this.onerror?.({ error });
    this.#over();
  }

  #over(): void {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.onclose?.({ code: this.#code, reason: this.#reason });
  }
}

function unopened(error: Error): Fault {
  return new Fault("transport.lost", `The connection could not be opened: ${error.message}.`, { retryable: true });
}

function faultOf(status: number, text: string): Fault {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "object" && error !== null) return Fault.read(error);
  } catch {
    // It has no words of its own.
  }
  if (status === 401) return new Fault("auth.required", "The other side wants a token.");
  if (status === 403) return new Fault("permission.denied", "The other side does not allow it.");
  return new Fault("transport.lost", `The other side answered with status ${status}.`, { retryable: true });
}
