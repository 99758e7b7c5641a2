/** Errors as their author wants to read them: without the frames of Node and of what ran the handler. */

import { inspect } from "node:util";
import { pathToFileURL } from "node:url";

import { RUNTIME } from "./place.js";

const MESSAGE_CHARACTERS_MAX = 500;
const CAUSES_MAX = 5;
const RUNTIME_PATH = decodeURIComponent(new URL(RUNTIME).pathname);

/** Tells of errors in the files of one folder, which are named from there. */
export class Tracer {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The error, line by line, with what caused it. */
  lines(error: unknown): string[] {
    const lines: string[] = [];
    for (let cause = error, count = 0; cause !== undefined && count < CAUSES_MAX; count += 1) {
      const own = this.#own(cause);
      lines.push(...(count === 0 ? own : [`Caused by: ${own[0] ?? ""}`, ...own.slice(1)]));
      cause = cause instanceof Error ? cause.cause : undefined;
    }
    return lines;
  }

  /** The last place in a file that an error came through. */
  lineIn(error: unknown, file: string): number | undefined {
    const text = this.#own(error).join("\n");
    const at = new RegExp(`(?:^|[\\s(])${file.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}:(\\d+)`, "m").exec(text);
    return at ? Number(at[1]) : undefined;
  }

  /** A text with the files of the folder named from there. */
  named(text: string): string {
    const url = pathToFileURL(`${this.#folder}/`).href;
    return text.replaceAll(url, "").replaceAll(`${this.#folder}/`, "");
  }

  #own(error: unknown): string[] {
    const text = error instanceof Error ? (error.stack ?? String(error)) : `${inspect(error)} was thrown`;
    return this.named(text.split("\n").filter((line) => !isForeign(line)).join("\n")).split("\n");
  }
}

function isForeign(line: string): boolean {
  return /^\s+at /.test(line) && (/\(?node:/.test(line) || line.includes(RUNTIME) || line.includes(RUNTIME_PATH));
}

/** What an error is called. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name || error.constructor.name : "Error";
}

/** What it says, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : inspect(error);
  return text.split(/\s+/).join(" ").slice(0, MESSAGE_CHARACTERS_MAX);
}
