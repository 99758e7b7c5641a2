/** What inputs refer to, and where outputs go: files beneath one folder, and storage that is allowed. */

import { mkdir, open, readFile, realpath, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

import { RunError } from "./error.js";

const PREFIX = "/artifacts/";
const INPUT_BYTES_MAX = 256 * 1024 * 1024;
const FETCH_MS = 30_000;

/** What a server may reach. */
export interface Reach {
  /** The folder that stands for `/artifacts`. */
  artifacts: string;
  /** Origins of storage. */
  origins: readonly string[];
}

/** Whether a value that no list speaks of looks like a reference. */
export function looksLikeReference(value: unknown): boolean {
  return typeof value === "string" && (value.startsWith("https://") || value.startsWith(PREFIX));
}

/** Reads what a value refers to. */
export async function readReference(reach: Reach, value: unknown): Promise<string> {
  if (typeof value !== "string") throw new RunError("ERR_INPUTS", "A reference must be a text.");
  if (isUrl(value)) return fetchText(reach, value);
  try {
    const path = await realpath(place(reach, value));
    if (!path.startsWith(`${await realpath(reach.artifacts)}/`)) throw badPath();
    if ((await stat(path)).size > INPUT_BYTES_MAX) throw new RunError("ERR_LIMIT", "An input file is too large.");
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof RunError) throw error;
    throw new RunError("ERR_NOT_FOUND", "An input file is not there.");
  }
}

/** Refuses destinations that cannot be written, before anything starts. */
export function checkDestinations(reach: Reach, outputs: Record<string, unknown>): Record<string, string> {
  for (const [key, target] of Object.entries(outputs)) {
    if (typeof target !== "string") throw new RunError("ERR_OUTPUTS", `The destination of ${key} is unknown.`);
    if (isUrl(target)) checkOrigin(reach, target);
    else if (!target.startsWith(PREFIX)) throw new RunError("ERR_OUTPUTS", `The destination of ${key} is unknown.`);
    else place(reach, target);
  }
  return outputs as Record<string, string>;
}

/** Writes an output whole or not at all. */
export async function write(reach: Reach, target: string, value: unknown): Promise<void> {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  if (isUrl(target)) return upload(reach, target, body);
  const path = place(reach, target);
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  if (!`${await realpath(folder)}/`.startsWith(`${await realpath(reach.artifacts)}/`)) throw badPath();
  const unfinished = `${path}.unfinished`;
  const file = await open(unfinished, "w");
  try {
    await file.writeFile(body);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
}

async function fetchText(reach: Reach, url: string): Promise<string> {
  const response = await reached(checkOrigin(reach, url), {});
  const size = Number(response.headers.get("content-length") ?? 0);
  if (size > INPUT_BYTES_MAX) throw new RunError("ERR_LIMIT", "An input file is too large.");
  return response.text();
}

async function upload(reach: Reach, url: string, body: string): Promise<void> {
  const headers = { "content-type": "application/octet-stream" };
  const response = await reached(checkOrigin(reach, url), { method: "PUT", headers, body });
  await response.arrayBuffer();
}

async function reached(url: URL, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(FETCH_MS) });
  } catch {
    throw new RunError("ERR_STORAGE", "The storage cannot be reached.");
  }
  if (response.ok) return response;
  if (response.status === 403) throw new RunError("ERR_STORAGE_DENIED", "The storage does not allow it.");
  if (response.status === 404) throw new RunError("ERR_NOT_FOUND", "An input file is not there.");
  throw new RunError("ERR_STORAGE", `The storage answered with status ${response.status}.`);
}

function isUrl(value: string): boolean {
  return /^https?:\/\//i.test(value);
}

function checkOrigin(reach: Reach, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const allowed = reach.origins.some((origin) => URL.canParse(origin) && new URL(origin).origin === url?.origin);
  if (!url || !allowed) throw new RunError("ERR_EGRESS", "This tool may not reach that address.");
  return url;
}

function place(reach: Reach, path: string): string {
  if (!path.startsWith(PREFIX)) throw badPath();
  const names = path.slice(PREFIX.length).split("/");
  if (names.some((name) => name === "" || name === "." || name === ".." || name.includes("\0"))) throw badPath();
  return join(reach.artifacts, ...names);
}

function badPath(): RunError {
  return new RunError("ERR_PATH", "A path leads out of the folder of artifacts.");
}
