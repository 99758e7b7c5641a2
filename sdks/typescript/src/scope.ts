/**
 * Scopes: where tools are implemented, wrapped and called.
 *
 * A child scope sees everything of its parents, also what is added to them later. What is added to
 * a scope is seen by nobody beside or above it, and is gone when the scope is closed.
 */

import type { Agent } from "./agent.js";
import { elicit, notify, sample } from "./builtins.js";
import { Call, type CallOptions } from "./call.js";
import { Caller } from "./caller.js";
import { Cx } from "./context.js";
import { Fault } from "./fault.js";
import { arrange, type Layer, type LayerOptions, type Registered } from "./layers.js";
import { check, type Schema, type Taken } from "./schema.js";
import { Task, type Cancellation } from "./task.js";
import { keyOf, unknownTool, WIRE, type AnyTool, type ImplementedTool, type InputOf, type OutputOf, type ProgressOf, type RunOf, type Tool } from "./tool.js";
import type { Answering, Requester, Transport } from "./transport.js";
import type { Outcome, Request } from "./wire.js";

const CLOSE_GRACE_MS = 5_000;

type AnyRun = (input: any, cx: Cx<any>) => unknown;

/** A place where tools are called. Made by `scope()` and `child()`. */
export class Scope extends Caller {
  readonly parent: Scope | undefined;
  /** This scope and those around it, from the inside out. */
  readonly #upwards: readonly Scope[];
  readonly #known = new Map<string, AnyTool>();
  readonly #implementations = new Map<string, AnyRun>();
  readonly #routes = new Map<string, Requester>();
  readonly #layers = new Map<string, Registered[]>();
  readonly #configs = new Map<Schema, unknown>();
  readonly #live = new Set<Call<any, any>>();
  /** Children that have calls or such children. Others need not be known, and may be forgotten. */
  readonly #busy = new Set<Scope>();
  #transport: Requester | undefined;
  #lastResort: Requester | undefined;
  #agent: Agent<any, any> | undefined;
  #closed = false;

  /** @internal */
  constructor(parent?: Scope) {
    super();
    this.parent = parent;
    this.#upwards = parent ? [this, ...parent.#upwards] : [this];
  }

  /** A scope inside this one. */
  child(): Scope {
    return new Scope(this);
  }

  /** Sends calls that have no implementation to a transport: all of them, or those of one tool. */
  route(transport: Transport): this;
  route(tool: AnyTool, transport: Transport): this;
  route(first: Transport | AnyTool, second?: Transport): this {
    if (second) {
      this.#routes.set(this.#know(first as AnyTool), second);
    } else {
      this.#transport = first as Transport;
    }
    return this;
  }

  /** Implements a tool in this scope and those inside. A tool that has its implementation is made known. */
  provide(tool: ImplementedTool<any, any, any>): this;
  provide<T extends Tool<any, any, any>>(tool: T, run: RunOf<T>): this;
  provide(tool: AnyTool, run?: AnyRun): this {
    if (run && tool.run) {
      throw new Fault("tool.conflict", `${tool.name} has its implementation in its definition; use a layer to change it.`);
    }
    const found = run ?? tool.run;
    if (!found) throw new Fault("tool.not_found", `${tool.name} was given no implementation.`);
    const key = this.#know(tool);
    if (this.#implementations.has(key)) throw new Fault("tool.conflict", `${tool.name} is implemented in this scope already.`);
    this.#implementations.set(key, found);
    return this;
  }

  /** Puts a layer around a tool, or layers around the tools of an agent, for calls in this scope. */
  around<T extends AnyTool>(tool: T, layer: Layer<NoInfer<T>>, options?: LayerOptions): this;
  around<A extends Agent<any, any>>(agent: A, layers: AgentLayers<NoInfer<A>>, options?: LayerOptions): this;
  around(wrapped: AnyTool | Agent<any, any>, given: any, options: LayerOptions = {}): this {
    const lane = options.lane ?? "outer";
    if (WIRE in wrapped) {
      this.#wrap(wrapped, { layer: given, lane, agent: undefined });
      return this;
    }
    for (const [name, layer] of Object.entries<Layer<any>>(given)) {
      const tool = wrapped.tools[name] as AnyTool | undefined;
      if (!tool) throw new Fault("tool.not_found", `The agent ${wrapped.name} has no tool ${name}.`);
      this.#wrap(tool, { layer, lane, agent: wrapped });
    }
    return this;
  }

  call<T extends AnyTool>(tool: T, input: InputOf<T>, options?: CallOptions<ProgressOf<T>>): Call<OutputOf<T>, ProgressOf<T>>;
  call(name: string, input: unknown, options?: CallOptions): Call<unknown, unknown>;
  call(tool: AnyTool | string, input: unknown, options?: CallOptions<any>): Call<any, any> {
    return this.start(tool, input, options);
  }

  /** The configuration that was given with this schema, by the nearest agent. */
  config<S extends Schema>(schema: S): Taken<S> {
    for (const scope of this.#upwards) {
      if (scope.#configs.has(schema)) return scope.#configs.get(schema) as Taken<S>;
    }
    throw new Fault("config.invalid", "There is no configuration here: this is not inside an agent that has it.");
  }

  /** Cancels every call in this scope and those inside, and waits until they have cleaned up. */
  async close(options: { graceMs?: number } = {}): Promise<void> {
    this.#closed = true;
    const working: Promise<void>[] = [];
    this.#stop(working);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, options.graceMs ?? CLOSE_GRACE_MS)));
    await Promise.race([Promise.all(working), patience]);
    clearTimeout(timer);
  }

  /** @internal Starts a call, perhaps on behalf of another one. */
  start(named: AnyTool | string, input: unknown, options: CallOptions<any> = {}, parent?: Cancellation): Call<any, any> {
    const tool = typeof named === "string" ? (this.lookUp(named) ?? unknownTool(named)) : named;
    const task = new Task(parent, options.signal);
    const closed = this.#upwards.some((scope) => scope.#closed);
    if (closed) task.cancel(Fault.canceled("The scope is closed."));
    const call = new Call<any, any>(task, (tell) => this.#execute(tool, input, task, tell), options.onProgress);
    if (closed) return call;
    this.#live.add(call);
    this.#join();
    void call.worked.then(() => {
      this.#live.delete(call);
      this.#leave();
    });
    return call;
  }

  /** @internal The definition of a tool that is known here by its name. */
  lookUp(name: string): AnyTool | undefined {
    for (const scope of this.#upwards) {
      const tool = scope.#known.get(name);
      if (tool) return tool;
    }
    return undefined;
  }

  /** @internal Whether a call of a tool would stay in this process. */
  isLocal(tool: AnyTool): boolean {
    return typeof this.#target(tool) === "function";
  }

  /** @internal The scope of an agent's instance. */
  childOfAgent(agent: Agent<any, any>, schema: Schema | undefined, config: unknown): Scope {
    const inside = this.child();
    inside.#agent = agent;
    if (schema) inside.#configs.set(schema, config);
    return inside;
  }

  /** @internal A scope for a request from elsewhere: what is nowhere to be found is asked there. */
  childOfRequest(lastResort: Requester): Scope {
    const inside = this.child();
    inside.#lastResort = lastResort;
    return inside;
  }

  /** @internal Answers a request of the other side with the tools that are here. */
  async answer(request: Request, tool: AnyTool | undefined, answering: Answering): Promise<Outcome> {
    const { found, input } = tool ? { found: tool, input: request.payload } : this.#builtinFor(request);
    if (!this.isLocal(found)) throw new Fault("tool.not_found", `There is no tool ${request.type} here.`);
    const inside = this.childOfRequest(answering.back);
    const call = inside.start(found, input, { onProgress: (data) => answering.progress(data) }, answering.task);
    try {
      return found[WIRE].write(await call);
    } finally {
      await call.worked;
    }
  }

  #builtinFor(request: Request): { found: AnyTool; input: unknown } {
    if (request.kind === "notify") return { found: notify, input: request.payload };
    if (request.type === "sample") return { found: sample, input: request.payload };
    const payload = request.payload;
    const isQuestion = typeof payload === "object" && payload !== null && "message" in payload;
    if (!isQuestion) throw new Fault("tool.not_found", `There is no tool ${request.type} here.`);
    return { found: elicit, input: { ...payload, type: request.type } };
  }

  async #execute(tool: AnyTool, input: unknown, task: Task, tell: (progress: any) => void): Promise<unknown> {
    const taken = await check(tool.input, input, "input", tool.name);
    task.check();
    const cx = new Cx<any>(this, tool, task, tell);
    const layers = this.#layersFor(tool);
    if (layers.length === 0) return this.#reach(tool, input, taken, cx, task, tell);
    const step = async (index: number, value: unknown): Promise<unknown> => {
      task.check();
      const layer = layers[index];
      if (layer) return layer(value, (next) => step(index + 1, next), cx);
      // A layer may have changed it, also in place.
      const changed = await check(tool.input, value, "input", tool.name);
      return this.#reach(tool, value, changed, cx, task, tell);
    };
    return step(0, input);
  }

  /** The innermost step: the implementation, or the way to it. */
  async #reach(tool: AnyTool, input: unknown, taken: unknown, cx: Cx<any>, task: Task, tell: (progress: any) => void): Promise<unknown> {
    const target = this.#target(tool);
    if (!target) {
      const name = tool.name;
      throw new Fault("tool.unavailable", `${name} cannot be called: it has no implementation here, and there is no transport.`, { details: { tool: name } });
    }
    const wire = tool[WIRE];
    let output: unknown;
    if (typeof target === "function") {
      output = await target(taken, cx);
    } else {
      const onProgress = (data: unknown): void => tellChecked(tool, data, tell);
      const serve = (request: Request, answering: Answering): Promise<Outcome> => this.#answerChild(request, answering);
      const onCost = task.elsewhere();
      output = wire.read(await target.request(wire.request(input), { task, onProgress, onCost, serve }));
    }
    const valid = await check(tool.output, output, "output", tool.name);
    return wire.settle ? wire.settle(valid, taken) : valid;
  }

  /** The other side asks something while it works for a call that was made here. */
  #answerChild(request: Request, answering: Answering): Promise<Outcome> {
    const tool = request.kind === "elicit" ? this.lookUp(request.type) : undefined;
    return this.answer(request, tool, answering);
  }

  /** Who executes a tool: the nearest implementation or route, its own, or the nearest transport. */
  #target(tool: AnyTool): AnyRun | Requester | undefined {
    const key = keyOf(tool);
    const scopes = this.#upwards;
    for (const scope of scopes) {
      const found = scope.#implementations.get(key) ?? scope.#routes.get(key);
      if (found) return found;
    }
    if (tool.run) return tool.run;
    const first = (of: (scope: Scope) => Requester | undefined): Requester | undefined => {
      for (const scope of scopes) {
        const found = of(scope);
        if (found) return found;
      }
      return undefined;
    };
    return first((scope) => scope.#transport) ?? first((scope) => scope.#lastResort);
  }

  #layersFor(tool: AnyTool): Layer<any>[] {
    const key = keyOf(tool);
    const scopes = this.#upwards;
    if (!scopes.some((scope) => scope.#layers.size > 0)) return [];
    const agents = scopes.map((scope) => scope.#agent);
    return arrange(scopes.map((scope) => scope.#layers.get(key)), agents.find((agent) => agent?.has(tool)));
  }

  #wrap(tool: AnyTool, registered: Registered): void {
    const key = this.#know(tool);
    const layers = this.#layers.get(key);
    if (layers) layers.push(registered);
    else this.#layers.set(key, [registered]);
  }

  /** Remembers a definition. One name can mean only one tool in a scope. */
  #know(tool: AnyTool): string {
    const key = keyOf(tool);
    const known = this.#known.get(key);
    if (known && known[WIRE] !== tool[WIRE]) {
      throw new Fault("tool.conflict", `Two tools with the name ${tool.name} were defined for one scope.`);
    }
    if (!known || tool.run) this.#known.set(key, tool);
    return key;
  }

  #stop(working: Promise<void>[]): void {
    for (const call of this.#live) working.push(call.cancel(Fault.canceled("The scope was closed.")));
    for (const inside of this.#busy) inside.#stop(working);
  }

  #join(): void {
    const { parent } = this;
    if (!parent || parent.#busy.has(this)) return;
    parent.#busy.add(this);
    parent.#join();
  }

  #leave(): void {
    if (this.#live.size > 0 || this.#busy.size > 0 || !this.parent) return;
    this.parent.#busy.delete(this);
    this.parent.#leave();
  }
}

/** Layers around some tools of an agent, by the names they have in it. */
export type AgentLayers<A> = A extends Agent<any, infer Tools>
  ? { [Name in keyof Tools]?: Tools[Name] extends AnyTool ? Layer<Tools[Name]> : never }
  : never;

/**
 * A new scope, with a transport for what has no implementation if one is given.
 *
 * ```ts
 * const root = scope(await connect("http://127.0.0.1:7420", { token }));
 * ```
 */
export function scope(transport?: Transport): Scope {
  const made = new Scope();
  return transport ? made.route(transport) : made;
}

/** Progress from elsewhere is looked at too; what does not fit is left out. */
function tellChecked(tool: AnyTool, data: unknown, tell: (progress: unknown) => void): void {
  if (tool.progress === undefined) return tell(data);
  try {
    const taken = check(tool.progress, data, "progress", tool.name);
    if (taken instanceof Promise) void taken.then(tell, () => {});
    else tell(taken);
  } catch {
    // A listener is promised its type.
  }
}
