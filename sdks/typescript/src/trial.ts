/** Tries a tool without a core and without a wire: for tests. */

import { elicit } from "./builtins.js";
import { Scope } from "./scope.js";
import { Task, type Host, type Level } from "./task.js";
import { unknownTool, type AnyTool, type InputOf, type OutputOf, type ProgressOf, type Tool } from "./tool.js";

/** What a tool that is tried meets. */
export interface TrialOptions {
  /** Answers what it calls, by id. */
  tools?: Record<string, (input: any) => unknown>;
  /** Answers what it asks; without it questions are declined. */
  answer?: (message: string) => unknown;
  /** Outputs that are wanted as files. */
  outputs?: readonly string[];
  /** Whether it only pretends. */
  mock?: boolean;
  signal?: AbortSignal;
}

/** What became of a tool that was tried. */
export interface Trial<T> {
  /** What it gave. */
  readonly output: OutputOf<T>;
  /** What it was doing, and how far it was. */
  readonly status: readonly { readonly text: string; readonly fraction: number | undefined }[];
  readonly progress: readonly ProgressOf<T>[];
  readonly logs: readonly { readonly level: Level; readonly text: string }[];
  /** What it wrote while it ran, by output. */
  readonly written: Readonly<Record<string, unknown>>;
  /** Text that grew, by output. */
  readonly text: Readonly<Record<string, string>>;
  /** In millionths of a dollar. */
  readonly cost: number;
}

/**
 * Runs a tool with this input, which is checked as the real one is; faults are thrown as they are told.
 *
 * ```ts
 * const { output, cost } = await tryTool(count, { text: "one two" });
 * ```
 */
export function tryTool<T extends AnyTool>(tool: T, input: InputOf<T>, options: TrialOptions = {}): Promise<Trial<T>> {
  return tryWith(tool, input, options, {});
}

/** @internal Tries a tool with more than its test says. */
export async function tryWith<T extends AnyTool>(tool: T, input: InputOf<T>, options: TrialOptions, more: Pick<Host, "steps" | "now">): Promise<Trial<T>> {
  const { tools = {}, answer, outputs = [], mock = false, signal } = options;
  const scope = new Scope();
  for (const [name, give] of Object.entries(tools)) scope.provide(unknownTool(name) as Tool, async (given) => give(given));
  scope.provide(elicit, async ({ message }) =>
    answer === undefined ? { status: "declined" } : { status: "accepted", content: await answer(message) },
  );
  const status: { text: string; fraction: number | undefined }[] = [];
  const progress: ProgressOf<T>[] = [];
  const logs: { level: Level; text: string }[] = [];
  const written: Record<string, unknown> = {};
  const text: Record<string, string> = {};
  const task = new Task(undefined, signal);
  if (mock) task.pretend();
  task.serveBy({
    ...more,
    outputs,
    status: (words, fraction) => void status.push({ text: words, fraction }),
    log: (words, level) => void logs.push({ level, text: words }),
    text: (piece, output) => void (text[output] = (text[output] ?? "") + piece),
    async write(output, data) {
      written[output] = data;
      return `/artifacts/${output}`;
    },
  });
  const call = scope.start(tool, input, { onProgress: (piece: ProgressOf<T>) => void progress.push(piece) }, task);
  try {
    return { output: await call, status, progress, logs, written, text, cost: task.spent };
  } finally {
    await call.worked;
    task.end();
  }
}
