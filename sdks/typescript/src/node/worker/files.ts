/** Files of a run, which the server of the worker fetches and writes. */

import { createWriteStream, openAsBlob } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { Fault } from "../../fault.js";
import type { JsonSchema } from "../../json-schema.js";
import { valueOfFile } from "../values.js";
import type { Channel, Start } from "./channel.js";

const UTF8 = new TextDecoder("utf-8", { fatal: true });
/** Larger texts go to the server as a file instead of inside a message. */
const INLINE_CHARACTERS_MAX = 64 * 1024;

/** The files of one run. */
export class Files {
  /** Where outputs go, by key. */
  readonly places: Readonly<Record<string, string>>;
  readonly written = new Map<string, string>();
  readonly #channel: Channel;
  readonly #start: Start;
  #count = 0;

  constructor(channel: Channel, start: Start) {
    this.#channel = channel;
    this.#start = start;
    this.places = start.payload.outputs ?? {};
  }

  /** The inputs with what they refer to, in the form that the schema says. */
  async inputs(schema: JsonSchema): Promise<Record<string, unknown>> {
    const { payload, refs = [] } = this.#start;
    const read: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(payload.inputs ?? {})) {
      const isFile = isBinary(schema, key);
      if (refs.includes(key) && typeof value === "string") read[key] = await this.#fetched(schema, key, isFile);
      else read[key] = isFile && typeof value === "string" ? new File([value], key) : value;
    }
    return read;
  }

  async #fetched(schema: JsonSchema, key: string, isFile: boolean): Promise<unknown> {
    const { path } = await this.#channel.ask({ kind: "fetch", key });
    // It is read when it is used, and costs no memory.
    if (isFile) return new File([await openAsBlob(String(path))], key);
    let text: string;
    try {
      text = UTF8.decode(await readFile(String(path)));
    } catch {
      throw new Fault("tool.invalid_input", `The file of \`${key}\` is not text; take it as a file: \`format: "binary"\` in its schema, or \`z.file()\`.`);
    }
    try {
      return valueOfFile(schema, key, text);
    } catch {
      throw new Fault("tool.invalid_input", `The file of \`${key}\` is not JSON.`);
    }
  }

  /** Writes an output to its place, and gives the place. */
  async write(key: string, data: unknown): Promise<string> {
    const place = this.places[key];
    if (place === undefined) throw new Fault("ERR_HANDLER", `The run has no place for the output \`${key}\`.`);
    if (typeof data === "string" && data.length <= INLINE_CHARACTERS_MAX) {
      await this.#channel.ask({ kind: "put", key, value: data });
    } else {
      const folder = this.#start.folder;
      if (folder === undefined) throw new Fault("ERR_STORAGE", "The run has no folder for files.");
      const path = join(folder, `.put-${(this.#count += 1)}`);
      try {
        await fill(path, data, key);
        await this.#channel.ask({ kind: "put", key, path });
      } finally {
        await rm(path, { force: true });
      }
    }
    this.written.set(key, place);
    return place;
  }

  /** Outputs as the answer has them: what is bytes or long goes to its place first. */
  async settle(outputs: Record<string, unknown>): Promise<Record<string, unknown>> {
    const settled: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(outputs)) {
      if (value === undefined) continue;
      const isLong = typeof value === "string" && value.length > INLINE_CHARACTERS_MAX;
      if (!this.written.has(key) && key in this.places && (isLong || isBytes(value))) await this.write(key, value);
      settled[key] = this.written.get(key) ?? value;
    }
    for (const [key, place] of this.written) settled[key] ??= place;
    return settled;
  }
}

/** Whether a tool wants an input as a file. */
function isBinary(schema: JsonSchema, key: string): boolean {
  const properties = schema["properties"] as Record<string, JsonSchema> | undefined;
  return properties?.[key]?.["format"] === "binary";
}

/** Whether only a file can hold it. */
export function isBytes(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return value instanceof Blob || value instanceof ArrayBuffer || ArrayBuffer.isView(value) || value instanceof ReadableStream || value instanceof Readable;
}

async function fill(path: string, data: unknown, key: string): Promise<void> {
  if (typeof data === "string") return writeFile(path, data);
  if (data instanceof ArrayBuffer) return writeFile(path, new Uint8Array(data));
  if (ArrayBuffer.isView(data)) return writeFile(path, data as Uint8Array);
  const stream = data instanceof Blob ? data.stream() : data;
  if (stream instanceof Readable || stream instanceof ReadableStream) {
    const source = stream instanceof Readable ? stream : Readable.fromWeb(stream as never);
    return pipeline(source, createWriteStream(path));
  }
  return writeFile(path, toJson(data, key));
}

/** A value as JSON; what JSON has no form for is a fault that names the output, never its value. */
export function toJson(value: unknown, key: string): string {
  const unfit = (why: string): Fault => new Fault("ERR_HANDLER", `The output \`${key}\` ${why}.`);
  const look = (_: string, one: unknown): unknown => {
    if (typeof one === "number" && !Number.isFinite(one)) throw unfit("holds a number that JSON cannot express (NaN or infinite)");
    if (typeof one === "bigint") throw unfit("holds a bigint, which JSON cannot express");
    if (isBytes(one)) throw unfit("holds bytes, which only an output with a place of its own can be");
    return one;
  };
  try {
    return JSON.stringify(value, look) ?? "null";
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw unfit("contains itself, or is nothing that JSON has");
  }
}
