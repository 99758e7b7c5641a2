/** What a tool and the layers around it see of a call. */

import type { Call, CallOptions } from "./call.js";
import { Caller } from "./caller.js";
import { Fault } from "./fault.js";
import type { Schema, Taken } from "./schema.js";
import type { Scope } from "./scope.js";
import { AT_ONCE, inTurns, type StepKeeper } from "./steps.js";
import type { Level, Task } from "./task.js";
import { unknownTool, WIRE, type AnyTool, type InputOf, type OutputOf, type ProgressOf } from "./tool.js";

/** How `each` goes about its steps. */
export interface EachOptions {
  /** How many go on at the same time. */
  atOnce?: number;
}

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

  /**
   * Where the call stands in its trace, as W3C Trace Context writes it: for calls to others, as the
   * header `traceparent`. Absent where nobody traces, and in operatives.
   */
  get traceparent(): string | undefined {
    return this.#task.host?.trace?.traceparent;
  }

  /** What tracing systems have added for each other: the header `tracestate`. */
  get tracestate(): string | undefined {
    return this.#task.host?.trace?.tracestate;
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

  /**
   * Calls a tool of the core as a step of a `durable` tool of an agent or a tool server: what it gave
   * is there again whenever the call is repeated, and one that was under way goes on.
   *
   * A step is known by its name and by how often the name was used, so the code has to ask for the
   * same steps each time. Steps may go on at the same time, under different names; see `each` for
   * those of one name.
   */
  step<T extends AnyTool>(name: string, tool: T, input: InputOf<T>): Promise<OutputOf<T>>;
  step(name: string, tool: string, input: unknown): Promise<unknown>;
  async step(name: string, tool: AnyTool | string, input: unknown): Promise<unknown> {
    const steps = this.#steps();
    const work = stepOf(steps, name, tool, input);
    return steps.names.during(name, work);
  }

  /**
   * Calls a tool with each of these inputs as a step, sixteen at once unless `atOnce` says another
   * number, and gives what came out in their order. Of those that fail the first one's fault is
   * thrown when all are over.
   */
  each<T extends AnyTool>(name: string, tool: T, inputs: Iterable<InputOf<T>>, options?: EachOptions): Promise<OutputOf<T>[]>;
  each(name: string, tool: string, inputs: Iterable<unknown>, options?: EachOptions): Promise<unknown[]>;
  async each(name: string, tool: AnyTool | string, inputs: Iterable<unknown>, options: EachOptions = {}): Promise<unknown[]> {
    const steps = this.#steps();
    const works = Array.from(inputs, (input) => stepOf(steps, name, tool, input));
    const all = (first: number): Promise<unknown[]> =>
      inTurns(works.map((work, place) => () => work(first + place)), options.atOnce ?? AT_ONCE);
    return steps.names.during(name, all, works.length);
  }

  /**
   * What some code of the tool's own gives, kept as JSON: it runs until that is kept, and not when
   * the call is repeated afterwards. What it does may so be done twice, if it is cut off before.
   * Time, chance and requests of the tool's own belong in here.
   */
  async local<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    const steps = this.#steps();
    return steps.names.during(name, async (n) => {
      const known = (await steps.keep(name, n)) ?? (await steps.keep(name, n, { value: (await work()) ?? null }));
      return known?.value as T;
    });
  }

  /** The moment it was when the code came here first. */
  async now(): Promise<Date> {
    return new Date(await this.local("wharf.now", () => (this.#task.host?.now?.() ?? new Date()).getTime()));
  }

  #steps(): StepKeeper {
    const steps = this.#task.host?.steps;
    if (!steps) throw new Fault("tool.unavailable", "Only tools of agents and of tool servers have steps, and only durable ones.");
    return steps;
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

/** A step that is asked for once its number is known. */
function stepOf(steps: StepKeeper, name: string, tool: AnyTool | string, input: unknown): (n: number) => Promise<unknown> {
  const wire = (typeof tool === "string" ? unknownTool(tool) : tool)[WIRE];
  const { type, payload } = wire.request(input);
  return async (n) => wire.read({ status: "accepted", content: await steps.call(name, n, type, payload ?? {}) });
}
