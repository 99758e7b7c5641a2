/** Definitions of tools: what a tool is called, takes and gives. They hold no state. */

import type { Cx } from "./context.js";
import { Fault } from "./fault.js";
import type { JsonSchema } from "./json-schema.js";
import { jsonSchemaOf, type Given, type Schema, type Taken } from "./schema.js";
import type { Ask, Outcome } from "./wire.js";

/** What an implementation is: a function from the input to the output. */
export type Run<I extends Schema, O extends Schema, P extends Schema | undefined> = (
  input: Taken<I>,
  cx: Cx<P extends Schema ? Taken<P> : never>,
) => Given<O> | Promise<Given<O>>;

/** What every definition has. */
export interface Definition<
  I extends Schema = any,
  O extends Schema = any,
  P extends Schema | undefined = any,
> {
  readonly name: string;
  readonly description: string;
  readonly input: I;
  readonly output: O;
  readonly progress: P;
  /** Whether it acts on the world, if that was said. */
  readonly sideEffects: boolean | undefined;
  /** Whether it can pretend. */
  readonly mock: boolean;
  /** Whether it says that it never costs anything. */
  readonly free: boolean;
  /** Whether its code finds its steps again. */
  readonly durable: boolean;
  /** The JSON Schemas that others are told. */
  readonly schemas: ToolSchemas;
  /** @internal How the tool looks on a wire. */
  readonly [WIRE]: WireForm;
  /** @internal The same tool with other words about it. */
  readonly [REMADE]: (more: { name?: string; schemas?: Partial<ToolSchemas> }) => AnyTool;
}

/** A definition without an implementation: one may be given to it, or calls go to a transport. */
export interface Tool<
  I extends Schema = any,
  O extends Schema = any,
  P extends Schema | undefined = any,
> extends Definition<I, O, P> {
  readonly run?: undefined;
  /** The same tool with an implementation. */
  implement(run: Run<I, O, P>): ImplementedTool<I, O, P>;
}

/** A definition that has its implementation. Layers change what it does; nothing replaces it. */
export interface ImplementedTool<
  I extends Schema = any,
  O extends Schema = any,
  P extends Schema | undefined = any,
> extends Definition<I, O, P> {
  readonly run: Run<I, O, P>;
}

/** A definition of either kind. */
export type AnyTool = Definition<any, any, any> & { readonly run?: Run<any, any, any> | undefined };

/** What a caller gives to a tool. */
export type InputOf<T> = T extends Definition<infer I, any, any> ? Given<I> : never;
/** What a caller gets from a tool. */
export type OutputOf<T> = T extends Definition<any, infer O, any> ? Taken<O> : never;
/** What a tool tells on its way. */
export type ProgressOf<T> = T extends Definition<any, any, infer P> ? (P extends Schema ? Taken<P> : never) : never;
/** A function that can implement a tool. */
export type RunOf<T> = T extends Definition<infer I, infer O, infer P> ? Run<I, O, P> : never;

/** The JSON Schemas of a tool. */
export interface ToolSchemas {
  readonly input: JsonSchema;
  readonly output: JsonSchema;
  readonly progress?: JsonSchema;
}

/** What a tool is made of. */
export interface ToolOptions<I extends Schema, O extends Schema, P extends Schema | undefined> {
  /** Its name, as callers write it. In a handler's file it may be left out: it is the name under which the tool is exported. */
  name?: string;
  /** What it does, in a sentence for people and models. */
  description?: string;
  /** What it takes. */
  input: I;
  /** What it gives; anything if it is left out. */
  output?: O;
  /** What it tells on its way. */
  progress?: P;
  /** Whether it acts on the world. Wharf repeats a call that was lost only if this is `false`. */
  sideEffects?: boolean;
  /** Whether it can pretend: an agent is then called in mode `mock` too (`cx.isMock`), and acts on nothing. */
  mock?: boolean;
  /** Whether it never costs anything: an agent is then called even where no money is left. */
  free?: boolean;
  /** Whether its work is done in steps (`cx.step`, `cx.local`): an agent's call that fails is then repeated, whatever the reason. */
  durable?: boolean;
  /** JSON Schemas to show others, where the library of a schema cannot make one. */
  schemas?: Partial<ToolSchemas>;
  /** Its implementation. Without one, calls go to an implementation in a scope or to a transport. */
  run?: Run<I, O, P> | undefined;
}

/** @internal */
export const WIRE: unique symbol = Symbol("wharf.wire");
/** @internal */
export const REMADE: unique symbol = Symbol("wharf.remade");

/** @internal What a tool is called that was given no name. */
export const UNNAMED = "unnamed";

/** @internal How calls of a tool are written, and how answers are read. */
export interface WireForm {
  /** Keeps names of built-in tools apart from those of users. */
  readonly builtin: boolean;
  request(input: any): Ask;
  /** What an answer means: the output, not yet checked, or a fault. */
  read(outcome: Outcome): unknown;
  /** What an output means as an answer. */
  write(output: any): Outcome;
  /** Looks at an output that is valid by itself, beside the input. */
  settle?(output: any, input: any): unknown;
}

/** Names that mean something else on the wire. */
const RESERVED = new Set(["form", "confirmation", "sample", "notification"]);
const NAME_CHARACTERS_MAX = 200;

/**
 * Defines a tool.
 *
 * ```ts
 * const Add = tool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   output: z.number(),
 *   run: ({ a, b }) => a + b,
 * });
 * ```
 */
export function tool<const I extends Schema, const O extends Schema = JsonSchema, const P extends Schema | undefined = undefined>(
  options: ToolOptions<I, O, P> & { run: Run<I, O, P> },
): ImplementedTool<I, O, P>;
export function tool<const I extends Schema, const O extends Schema = JsonSchema, const P extends Schema | undefined = undefined>(
  options: ToolOptions<I, O, P> & { run?: undefined },
): Tool<I, O, P>;
export function tool(options: ToolOptions<Schema, Schema, Schema | undefined>): AnyTool {
  const { name = UNNAMED } = options;
  if (typeof name !== "string" || name === "" || name.length > NAME_CHARACTERS_MAX || /[\s\p{Cc}]/u.test(name)) {
    throw new Fault("tool.schema_invalid", "A tool needs a name without spaces.");
  }
  if (RESERVED.has(name)) throw new Fault("tool.conflict", `The name ${name} is reserved.`);
  return define({ ...options, name }, ordinary(name));
}

/** @internal Makes a definition of any kind. */
export function define(options: ToolOptions<any, any, any> & { name: string }, wire: WireForm): AnyTool {
  const { name, description = "", input, output = {}, progress, sideEffects, mock = false, free = false, durable = false, run } = options;
  let schemas: ToolSchemas | undefined;
  const base = {
    name,
    description,
    input,
    output,
    progress,
    sideEffects,
    mock,
    free,
    durable,
    get schemas(): ToolSchemas {
      return (schemas ??= schemasOf(options));
    },
    [WIRE]: wire,
    [REMADE]: (more: { name?: string; schemas?: Partial<ToolSchemas> }): AnyTool =>
      define({ ...options, ...more }, more.name === undefined ? wire : ordinary(more.name)),
  };
  if (run) return Object.freeze(Object.defineProperty(base, "run", { value: run, enumerable: true })) as AnyTool;
  const implement = (given: Run<any, any, any>): AnyTool => define({ ...options, run: given }, wire);
  return Object.freeze(Object.defineProperty(base, "implement", { value: implement })) as unknown as AnyTool;
}

function schemasOf({ input, output = {}, progress, schemas }: ToolOptions<any, any, any>): ToolSchemas {
  const told = {
    input: schemas?.input ?? jsonSchemaOf(input, "input"),
    output: schemas?.output ?? jsonSchemaOf(output, "output"),
  };
  if (progress === undefined) return told;
  return { ...told, progress: schemas?.progress ?? jsonSchemaOf(progress, "output") };
}

/** How an ordinary tool is called on a wire. */
function ordinary(name: string): WireForm {
  return {
    builtin: false,
    request: (input) => ({ kind: "elicit", type: name, payload: input }),
    write: (output) => ({ status: "accepted", content: output }),
    read: (outcome) => {
      switch (outcome.status) {
        case "accepted":
          return outcome.content;
        case "declined":
          throw Fault.declined(`The call of ${name} was declined.`);
        case "denied":
          throw Fault.denied(`The call of ${name} was denied.`);
        case "cancelled":
          throw new Fault("tool.canceled", `The call of ${name} was canceled by the other side.`);
        case "other":
          throw new Fault("tool.failed", outcome.content);
      }
    },
  };
}

/** @internal A tool that is only known by its name. */
export function unknownTool(name: string): AnyTool {
  return define({ name, description: "", input: {}, output: {} }, ordinary(name));
}

/** @internal What a tool is filed under. No user's name has a space in it. */
export function keyOf(definition: Definition): string {
  return definition[WIRE].builtin ? `built-in ${definition.name}` : definition.name;
}
