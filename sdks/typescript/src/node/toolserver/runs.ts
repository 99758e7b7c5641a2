/** The runs that a tool server knows, and who may attach to them. */

import { createHash } from "node:crypto";

import { RunError } from "./error.js";
import { Run, type RunRequest, type Watcher, type Work } from "./run.js";

const RUNS_MAX = 64;
const KEPT_MAX = 1_000;
const KEPT_MS = 3_600_000;

/** All runs of a server. */
export class Runs {
  readonly #work: Work;
  readonly #runs = new Map<string, { run: Run; name: string; attempt: number }>();
  draining = false;

  constructor(work: Work) {
    this.#work = work;
  }

  /** How many runs are under way. */
  get working(): number {
    return [...this.#runs.values()].filter(({ run }) => !run.done).length;
  }

  stopAll(): void {
    for (const { run } of this.#runs.values()) run.stop("ERR_CANCELED");
  }

  /** Attaches a connection to the run it asks for, and starts the run if it is new. */
  attach(request: RunRequest, watcher: Watcher): Run | undefined {
    const { run_id: id, world = null, attempt: given, after } = request.control;
    const attempt = Number.isInteger(given) ? (given as number) : 1;
    const name = JSON.stringify([world, id]);
    const key = JSON.stringify([name, attempt]);
    const digest = digestOf(request);
    const named = toolOf(request);
    const fits = named === undefined || named === this.#work.reference;
    const known = fits ? this.#runs.get(key)?.run : undefined;
    if (known && known.digest !== digest) return void watcher.close(1008, "run_id conflict");
    const others = [...this.#runs.values()].filter((other) => other.name === name);
    if (!known && others.some((other) => other.attempt > attempt)) return void watcher.close(1008, "a newer attempt is known");
    // Who names a tool is told which one is served; a refusal says enough.
    const tool = fits && named !== undefined ? { tool: { ref: named } } : {};
    watcher.send(JSON.stringify({ kind: "Ack", control: { run_id: id }, ...tool }));
    const run = known ?? this.#start(key, name, attempt, request, digest);
    run.watch(watcher, Number.isInteger(after) ? (after as number) : 0);
    return run;
  }

  #start(key: string, name: string, attempt: number, request: RunRequest, digest: string): Run {
    const refusal = this.#refusal(request);
    const run = new Run(request, digest, this.#work);
    if (!refusal) {
      for (const other of this.#runs.values()) if (other.name === name) other.run.stop("ERR_CANCELED");
      // What is refused is not kept: the same may be asked again.
      this.#runs.set(key, { run, name, attempt });
      this.#forget();
    }
    void run.execute(request, refusal);
    return run;
  }

  #refusal(request: RunRequest): RunError | undefined {
    const { control } = request;
    const named = toolOf(request);
    if (named !== undefined && named !== this.#work.reference) {
      return new RunError("ERR_WRONG_TOOL", "The request is for another tool than the one that is served here.");
    }
    // Whoever has seen frames of the run knows that it began; it must not begin twice.
    if (control["after"] !== undefined) return new RunError("ERR_WORKER", "The run was lost with the server that had it.");
    if (this.draining || this.working >= RUNS_MAX) return new RunError("ERR_BUSY", "Too many runs at once.");
    return undefined;
  }

  /** Lets go of runs that ended long ago, or of the oldest when there are many. */
  #forget(): void {
    for (const [key, { run }] of this.#runs) {
      const old = run.done && (this.#runs.size > KEPT_MAX || Date.now() - run.endedAt > KEPT_MS);
      if (old) this.#runs.delete(key);
    }
  }
}

/** The tool that a request names, if it names one. */
function toolOf({ control }: RunRequest): string | undefined {
  const named = control["tool"] as { ref?: unknown } | null | undefined;
  return named === undefined || named === null ? undefined : String(named.ref);
}

/** What two requests must have in common to be one; addresses may be signed anew. */
function digestOf({ control, inputs, outputs }: RunRequest): string {
  const plain = (_: string, value: unknown): unknown => {
    if (typeof value === "string" && /^https?:\/\//.test(value)) return value.split("?")[0];
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  const asked = [control["mode"] ?? "mock", inputs ?? {}, outputs ?? {}];
  return createHash("sha256").update(JSON.stringify(asked, plain)).digest("hex");
}
