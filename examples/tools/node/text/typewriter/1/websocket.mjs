// The server's half of a WebSocket (RFC 6455) on a socket that was upgraded.

import { createHash } from "node:crypto";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10;
const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const UNSENT_BYTES_MAX = 4 * 1024 * 1024;
const LINGER_MS = 2_000;

/** Answers the handshake. `handlers` has `message(text)` and `gone()`. */
export function accept(request, socket, head, subprotocol, handlers) {
  const key = request.headers["sec-websocket-key"];
  const proof = createHash("sha1").update(key + MAGIC).digest("base64");
  socket.setNoDelay(true);
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${proof}\r\nSec-WebSocket-Protocol: ${subprotocol}\r\n\r\n`,
  );
  return new WebSocket(socket, head, handlers);
}

class WebSocket {
  #socket;
  #handlers;
  #buffer;
  #parts = [];
  #closing = false;

  constructor(socket, head, handlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#buffer = head;
    socket.on("data", (data) => {
      if (this.#closing) return; // Read on, or the close frame is lost with the connection.
      this.#buffer = this.#buffer.length ? Buffer.concat([this.#buffer, data]) : data;
      this.#read();
    });
    socket.on("error", () => {});
    socket.on("close", () => handlers.gone());
    setImmediate(() => this.#read());
  }

  /** Sends a text. A reader that is too slow is let go. */
  send(text) {
    if (this.#closing) return;
    if (this.#socket.writableLength > UNSENT_BYTES_MAX) return this.close(1013, "too slow");
    this.#write(TEXT, Buffer.from(text));
  }

  close(code, reason) {
    if (this.#closing) return;
    const body = Buffer.alloc(2 + Buffer.byteLength(reason));
    body.writeUInt16BE(code);
    body.write(reason, 2);
    this.#write(CLOSE, body);
    this.#closing = true;
    this.#buffer = Buffer.alloc(0);
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  #write(opcode, body) {
    const length = body.length;
    let header;
    if (length < 126) {
      header = Buffer.from([0x80 | opcode, length]);
    } else if (length < 65_536) {
      header = Buffer.from([0x80 | opcode, 126, length >> 8, length & 255]);
    } else {
      header = Buffer.alloc(10);
      header[0] = 0x80 | opcode;
      header[1] = 127;
      header.writeBigUInt64BE(BigInt(length), 2);
    }
    this.#socket.write(Buffer.concat([header, body]));
  }

  #read() {
    while (!this.#closing) {
      const buffer = this.#buffer;
      if (buffer.length < 2) return;
      let length = buffer[1] & 127;
      let at = 2;
      if (length === 126) {
        if (buffer.length < 4) return;
        length = buffer.readUInt16BE(2);
        at = 4;
      } else if (length === 127) {
        if (buffer.length < 10) return;
        length = Number(buffer.readBigUInt64BE(2));
        at = 10;
      }
      if (!(buffer[1] & 128)) return this.close(1002, "a frame is not masked");
      const held = this.#parts.reduce((sum, part) => sum + part.length, 0);
      if (held + length > MESSAGE_BYTES_MAX) return this.close(1009, "a frame is too large");
      if (buffer.length < at + 4 + length) return;
      const mask = buffer.subarray(at, at + 4);
      const body = Buffer.from(buffer.subarray(at + 4, at + 4 + length));
      for (let i = 0; i < length; i++) body[i] ^= mask[i & 3];
      this.#buffer = buffer.subarray(at + 4 + length);
      this.#take(buffer[0] & 15, Boolean(buffer[0] & 128), body);
    }
  }

  #take(opcode, last, body) {
    if (opcode === CLOSE) return this.close(1000, "");
    if (opcode === PING) return this.#write(PONG, body);
    if (opcode === PONG) return;
    if (opcode === BINARY) return this.close(1003, "only text is understood");
    this.#parts.push(body);
    if (!last) return;
    const whole = Buffer.concat(this.#parts.splice(0));
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(whole);
    } catch {
      return this.close(1007, "a frame is not UTF-8");
    }
    this.#handlers.message(text);
  }
}
