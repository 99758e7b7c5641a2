/** Frames of a WebSocket (RFC 6455), for both ends. */

import { randomBytes } from "node:crypto";

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** Every ping is answered, and whoever reads no answers makes this end keep them: so many are enough. */
export const PINGS_MAX = 64;
const PINGS_MS = 10_000;

/** What is wrong with what came: a close code and a few words. */
export class FrameError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Makes a frame. Clients mask theirs, servers do not. */
export function encode(opcode: number, body: Buffer, masked: boolean): Buffer {
  const { length } = body;
  const extra = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const header = Buffer.alloc(2 + extra + (masked ? 4 : 0));
  header[0] = 0x80 | opcode;
  header[1] = (masked ? 0x80 : 0) | (extra === 0 ? length : extra === 2 ? 126 : 127);
  if (extra === 2) header.writeUInt16BE(length, 2);
  if (extra === 8) header.writeBigUInt64BE(BigInt(length), 2);
  if (!masked) return Buffer.concat([header, body]);
  const mask = randomBytes(4);
  mask.copy(header, 2 + extra);
  const hidden = Buffer.from(body);
  applyMask(hidden, mask);
  return Buffer.concat([header, hidden]);
}

/** The body of a close frame. */
export function closeBody(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, 120);
  const body = Buffer.alloc(2 + text.length);
  body.writeUInt16BE(code);
  text.copy(body, 2);
  return body;
}

/** A message or a control frame. */
export interface Received {
  opcode: number;
  body: Buffer;
}

/** Reads frames from pieces of any size, and puts messages together. */
export class FrameReader {
  readonly #masked: boolean;
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #held = 0;
  #parts: Buffer[] = [];
  #partBytes = 0;
  #opcode = 0;
  #pings = 0;
  #pingsSince = 0;

  /** `masked` says whether the other end is a client. */
  constructor(masked: boolean, bytesMax: number) {
    this.#masked = masked;
    this.#bytesMax = bytesMax;
  }

  *push(data: Buffer): Generator<Received> {
    this.#chunks.push(data);
    this.#held += data.length;
    for (let frame = this.#next(); frame; frame = this.#next()) {
      const whole = this.#assemble(frame);
      if (whole) yield whole;
    }
  }

  #next(): { first: number; body: Buffer } | undefined {
    if (this.#held < 2) return undefined;
    const head = this.#peek(Math.min(this.#held, 14));
    const first = head.readUInt8(0);
    const second = head.readUInt8(1);
    if (first & 0x70) throw new FrameError(1002, "a frame has unknown flags");
    if (Boolean(second & 0x80) !== this.#masked) throw new FrameError(1002, "a frame is masked the wrong way");
    const short = second & 127;
    const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
    const headerBytes = 2 + extra + (this.#masked ? 4 : 0);
    if (this.#held < headerBytes) return undefined;
    const length = extra === 0 ? short : extra === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
    if (length + this.#partBytes > this.#bytesMax) throw new FrameError(1009, "a message is too large");
    if (this.#held < headerBytes + length) return undefined;
    const frame = this.#peek(headerBytes + length);
    this.#drop(headerBytes + length);
    const body = Buffer.from(frame.subarray(headerBytes));
    if (this.#masked) applyMask(body, frame.subarray(headerBytes - 4, headerBytes));
    return { first, body };
  }

  #assemble({ first, body }: { first: number; body: Buffer }): Received | undefined {
    const opcode = first & 15;
    const last = Boolean(first & 0x80);
    if (opcode >= 8) {
      if (!last || body.length > 125) throw new FrameError(1002, "a control frame is too large");
      if (opcode === PING) this.#countPing();
      return { opcode, body };
    }
    if (opcode === 0 ? this.#opcode === 0 : this.#opcode !== 0) throw new FrameError(1002, "a message is out of order");
    if (opcode !== 0) this.#opcode = opcode;
    this.#parts.push(body);
    this.#partBytes += body.length;
    if (!last) return undefined;
    const whole = { opcode: this.#opcode, body: this.#parts.length === 1 ? body : Buffer.concat(this.#parts) };
    this.#parts = [];
    this.#partBytes = 0;
    this.#opcode = 0;
    return whole;
  }

  #countPing(): void {
    const now = performance.now();
    if (now - this.#pingsSince >= PINGS_MS) {
      this.#pingsSince = now;
      this.#pings = 0;
    }
    this.#pings += 1;
    if (this.#pings > PINGS_MAX) throw new FrameError(1008, "too many pings");
  }

  /** The first bytes, as one piece. */
  #peek(count: number): Buffer {
    const first = this.#chunks[0];
    if (first && first.length >= count) return first.subarray(0, count);
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined.subarray(0, count);
  }

  #drop(count: number): void {
    this.#held -= count;
    const first = this.#chunks[0];
    if (!first || first.length === count) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(count);
  }
}

function applyMask(body: Buffer, mask: Buffer): void {
  for (let at = 0; at < body.length; at += 1) body[at] = (body[at] as number) ^ (mask[at & 3] as number);
}
