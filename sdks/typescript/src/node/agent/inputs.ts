/** Inputs of an agent's call that are files: copied beside it by the core, or at an address it gave. */

import { readFile, stat } from "node:fs/promises";

import { Fault } from "../../fault.js";
import type { JsonSchema } from "../../json-schema.js";
import { valueOfFile } from "../values.js";

const INPUT_BYTES_MAX = 256 * 1024 * 1024;
const FETCH_MS = 30_000;

/** The input with what its references refer to. `context` says which they are. */
export async function hydrate(schema: JsonSchema, input: Record<string, unknown>, context: unknown): Promise<Record<string, unknown>> {
  const refs = (context as { refs?: unknown } | null | undefined)?.refs;
  if (!Array.isArray(refs) || refs.length === 0) return input;
  const read = { ...input };
  for (const key of refs) {
    const place = input[key];
    if (typeof place !== "string") continue;
    const text = await fetched(key, place);
    try {
      read[key] = valueOfFile(schema, key, text);
    } catch {
      throw new Fault("tool.invalid_input", `The file for ${key} is not JSON.`, { details: { path: `/${key}` } });
    }
  }
  return read;
}

async function fetched(key: string, place: string): Promise<string> {
  try {
    if (!place.includes("://")) {
      if ((await stat(place)).size > INPUT_BYTES_MAX) throw tooLarge(key);
      return await readFile(place, "utf8");
    }
    const response = await fetch(place, { signal: AbortSignal.timeout(FETCH_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    if (Number(response.headers.get("content-length") ?? 0) > INPUT_BYTES_MAX) throw tooLarge(key);
    return await response.text();
  } catch (error) {
    if (error instanceof Fault) throw error;
    // Its text may hold the address, which nobody should see.
    throw new Fault("storage.unavailable", `The file for ${key} cannot be read.`, { retryable: true });
  }
}

function tooLarge(key: string): Fault {
  return new Fault("tool.input_too_large", `The file for ${key} is too large.`);
}
