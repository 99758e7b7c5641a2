/** Agents: tools that belong together, and share a configuration. */

import type { Call, CallOptions } from "./call.js";
import { Fault } from "./fault.js";
import type { LayerOptions } from "./layers.js";
import { check, type Given, type Schema } from "./schema.js";
import type { AgentLayers, Scope } from "./scope.js";
import { keyOf, type AnyTool, type InputOf, type OutputOf, type ProgressOf, type RunOf, type Tool } from "./tool.js";

type Tools = Readonly<Record<string, AnyTool>>;

/** What an agent is made of. */
export interface AgentOptions<C extends Schema | undefined, T extends Tools> {
  name: string;
  description: string;
  /** What it is configured with. Tools read it with `cx.config(schema)`. */
  config?: C;
  /** Its tools, by the names that its users write. */
  tools: T;
}

/** Implementations for tools that have none: an agent's user gives them when it activates the agent. */
export type Implementations<T extends Tools> = {
  [Name in keyof T as T[Name] extends Tool<any, any, any> ? Name : never]?: RunOf<T[Name]>;
};

type ConfigArguments<C, T extends Tools> = C extends Schema
  ? {} extends Given<C>
    ? [config?: Given<C>, implementations?: Implementations<T>]
    : [config: Given<C>, implementations?: Implementations<T>]
  : [config?: undefined, implementations?: Implementations<T>];

/** An agent as it is defined. */
export interface Agent<C extends Schema | undefined = any, T extends Tools = any> {
  readonly name: string;
  readonly description: string;
  readonly config: C;
  readonly tools: T;
  /** Makes an instance inside a scope. The configuration is checked, and its defaults are filled in. */
  activate(scope: Scope, ...given: ConfigArguments<C, T>): AgentInstance<C, T>;
  /** @internal */
  has(tool: AnyTool): boolean;
}

/** The tools of an instance, as functions. */
export type ToolCalls<T extends Tools> = {
  readonly [Name in keyof T]: (
    input: InputOf<T[Name]>,
    options?: CallOptions<ProgressOf<T[Name]>>,
  ) => Call<OutputOf<T[Name]>, ProgressOf<T[Name]>>;
};

/** An agent with its configuration, in a scope of its own. */
export interface AgentInstance<C extends Schema | undefined = any, T extends Tools = any> {
  readonly agent: Agent<C, T>;
  /** Its own scope, inside the one it was activated in. */
  readonly scope: Scope;
  /** Its tools: `flight.tools.search({ … })`. */
  readonly tools: ToolCalls<T>;
  /** Puts layers around some of its tools, for this instance. */
  around(layers: AgentLayers<Agent<C, T>>, options?: LayerOptions): this;
  /** Cancels what it does, and waits until that has cleaned up. */
  close(options?: { graceMs?: number }): Promise<void>;
}

/**
 * Defines an agent.
 *
 * ```ts
 * const Flight = agent({ name: "flight", description: "Books flights.", config: Config, tools: { search: Search } });
 * const flight = Flight.activate(root, { apiKey });
 * await flight.tools.search({ destination: "Tokyo" });
 * ```
 */
export function agent<const T extends Tools, C extends Schema | undefined = undefined>(options: AgentOptions<C, T>): Agent<C, T> {
  const { name, description, tools } = options;
  const config = options.config as C;
  const keys = new Map<string, string>();
  for (const [called, one] of Object.entries(tools)) {
    const other = keys.get(keyOf(one));
    if (other !== undefined) throw new Fault("tool.conflict", `The tools ${other} and ${called} of the agent ${name} are both named ${one.name}.`);
    keys.set(keyOf(one), called);
  }
  const made: Agent<C, T> = {
    name,
    description,
    config,
    tools,
    has: (one) => keys.has(keyOf(one)),
    activate: (scope, ...given) => activate(made, scope, given[0], given[1] ?? {}),
  };
  return Object.freeze(made);
}

function activate<C extends Schema | undefined, T extends Tools>(
  made: Agent<C, T>,
  parent: Scope,
  given: unknown,
  implementations: Implementations<T>,
): AgentInstance<C, T> {
  const inside = parent.childOfAgent(made, made.config, configOf(made, given));
  for (const called of Object.keys(implementations)) {
    if (!made.tools[called]) throw new Fault("tool.not_found", `The agent ${made.name} has no tool ${called}.`);
  }
  const calls: Record<string, unknown> = {};
  for (const [called, tool] of Object.entries(made.tools)) {
    const run = (implementations as Record<string, any>)[called];
    if (run) inside.provide(tool as Tool, run);
    else if (tool.run) inside.provide(tool as any);
    calls[called] = (input: any, options?: CallOptions<any>) => inside.call(tool, input, options);
  }
  const instance: AgentInstance<C, T> = {
    agent: made,
    scope: inside,
    tools: Object.freeze(calls) as ToolCalls<T>,
    around(layers, options) {
      inside.around(made, layers, options);
      return instance as any;
    },
    close: (options) => inside.close(options),
  };
  return Object.freeze(instance);
}

function configOf(made: Agent<any, any>, given: unknown): unknown {
  if (!made.config) {
    if (given !== undefined) throw new Fault("config.invalid", `The agent ${made.name} takes no configuration.`);
    return undefined;
  }
  const checked = check(made.config, given ?? {}, "configuration", made.name);
  if (checked instanceof Promise) {
    checked.catch(() => {});
    throw new Fault("config.invalid", `The configuration of ${made.name} has a schema that cannot be checked at once.`);
  }
  return checked;
}
