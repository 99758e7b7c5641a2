/** What a tool and the layers around it see of a call. */

import type { Call, CallOptions } from "./call.js";
import { Caller } from "./caller.js";
import { Fault } from "./fault.js";
import type { Schema, Taken } from "./schema.js";
import type { Scope } from "./scope.js";
import type { Level, Task } from "./task.js";
import type { AnyTool, InputOf, OutputOf, ProgressOf } from "./tool.js";

/**
 * The context of one call.
 *
 * Calls made through it belong to the call: they pass the layers of its scope, and end with it.
 */
export class Cx<P = unknown> extends Caller {
  /** Where the call was made. */
  readonly scope: Scope;
  /** The tool that is called. */
  readonly tool: AnyTool;
  readonly #task: Task;
  readonly #tell: (progress: P) => void;

  /** @internal */
  constructor(scope: Scope, tool: AnyTool, task: Task, tell: (progress: P) => void) {
    super();
    this.scope = scope;
    this.tool = tool;
    this.#task = task;
    this.#tell = tell;
  }

  /** Says when to stop. */
  get signal(): AbortSignal {
    return this.#task.signal;
  }

  /** Whether the call only pretends: a tool that says `mock` makes something up then, and acts on nothing. */
  get isMock(): boolean {
    return this.#task.isMock;
  }

  /** Tells the caller how it goes. It costs nothing when nobody listens. */
  progress(progress: P): void {
    this.#tell(progress);
  }

  /**
   * Says what it is doing, and how far it is: from 0 to 1. Only the latest counts, and it is no line
   * of a log.
   */
  status(text: string, fraction?: number): void {
    const { host } = this.#task;
    const far = fraction === undefined || Number.isNaN(fraction) ? undefined : Math.min(Math.max(fraction, 0), 1);
    if (host) return host.status(text, far);
    void this.notify(text, far === undefined ? {} : { progress: far });
  }

  /** Writes a line to the run's log. */
  log(text: string, level: Level = "info"): void {
    const { host } = this.#task;
    if (host) return host.log(text, level);
    void this.notify(text, { level: level === "warn" ? "warning" : level });
  }

  /** Adds text to an output that grows while others watch; without another value it is the output at the end. */
  text(piece: string, output = "text"): void {
    this.#task.host?.text(piece, output);
  }

  /** The outputs that are wanted as files. */
  get outputs(): readonly string[] {
    return this.#task.host?.outputs ?? [];
  }

  /**
   * Writes an output to its file at once: text, bytes, a `Blob`, a stream of bytes, or JSON. What it
   * gives stands for the output; where nobody wants a file that is what was given.
   */
  async write(output: string, data: unknown): Promise<unknown> {
    const { host } = this.#task;
    return host?.outputs.includes(output) ? host.write(output, data) : data;
  }

  /**
   * Adds to what the call has cost, in whole millionths of a dollar. Whoever serves the tool is
   * told at once: agents, tool servers and operatives tell the core, so that a budget can stop the
   * run. What other tools cost that are called through transports is counted with them.
   */
  cost(micro: number): void {
    if (!Number.isSafeInteger(micro) || micro < 0) throw new Fault("tool.invalid_output", "A cost must be a whole number of micro-dollars.");
    this.#task.spend(micro);
  }

  /** The configuration of the agent that the tool runs in, by its schema. */
  config<S extends Schema>(schema: S): Taken<S> {
    return this.scope.config(schema);
  }

  call<T extends AnyTool>(tool: T, input: InputOf<T>, options?: CallOptions<ProgressOf<T>>): Call<OutputOf<T>, ProgressOf<T>>;
  call(name: string, input: unknown, options?: CallOptions): Call<unknown, unknown>;
  call(tool: AnyTool | string, input: unknown, options?: CallOptions<any>): Call<any, any> {
    return this.scope.start(tool, input, options, this.#task);
  }
}
