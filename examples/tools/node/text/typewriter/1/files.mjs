// What inputs refer to, and where outputs go: files beneath /artifacts, nothing else.

import { open, readFile, realpath, rename, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";

import { Fault } from "./tool.mjs";

const FOLDER = process.env.TOOL_ARTIFACTS ?? "/artifacts";
const PREFIX = "/artifacts/";

/** Reads the inputs that are references: those listed, or without a list those that look like it. */
export async function hydrate(inputs, refs) {
  const looksLikeOne = (value) =>
    typeof value === "string" && (value.startsWith("https://") || value.startsWith(PREFIX));
  const read = {};
  for (const [key, value] of Object.entries(inputs)) {
    const isReference = refs ? refs.includes(key) : looksLikeOne(value);
    read[key] = isReference ? await readReference(value) : value;
  }
  return read;
}

async function readReference(value) {
  if (typeof value !== "string" || !value.startsWith(PREFIX)) {
    throw new Fault("ERR_EGRESS", "This tool fetches nothing from the network.");
  }
  try {
    const path = await realpath(place(value));
    if (!path.startsWith((await realpath(FOLDER)) + "/")) throw badPath();
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault("ERR_NOT_FOUND", "An input file is not there.");
  }
}

/** Refuses destinations that cannot be written, before anything starts. */
export function checkDestinations(outputs) {
  for (const [key, target] of Object.entries(outputs)) {
    if (/^https?:/.test(target)) {
      throw new Fault("ERR_EGRESS", "This tool writes nothing to the network.");
    }
    if (typeof target !== "string" || !target.startsWith(PREFIX)) {
      throw new Fault("ERR_OUTPUTS", `The destination of ${key} is unknown.`);
    }
    place(target);
  }
}

/** Writes an output whole or not at all. */
export async function write(target, value) {
  const path = place(target);
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  if (!((await realpath(folder)) + "/").startsWith((await realpath(FOLDER)) + "/")) throw badPath();
  const unfinished = `${path}.unfinished`;
  const file = await open(unfinished, "w");
  try {
    await file.writeFile(typeof value === "string" ? value : JSON.stringify(value));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
}

function place(path) {
  const names = path.slice(PREFIX.length).split("/");
  const wrong = (name) => name === "" || name === "." || name === ".." || name.includes("\0");
  if (names.some(wrong)) throw badPath();
  return join(FOLDER, ...names);
}

function badPath() {
  return new Fault("ERR_PATH", "A path leads out of the folder of artifacts.");
}
