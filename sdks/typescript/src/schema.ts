/**
 * Schemas of inputs, outputs, progress and configuration.
 *
 * Anything that keeps Standard Schema works: zod, valibot, arktype and others. A plain JSON Schema
 * works too. Nothing of these libraries is needed here.
 */

import { Fault } from "./fault.js";
import { checkJson, type JsonSchema } from "./json-schema.js";

/** The part of Standard Schema (version 1) that is used. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema, if the library has it. */
    readonly jsonSchema?: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
      readonly output: (options: { target: string }) => Record<string, unknown>;
    };
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A schema of either kind. */
export type Schema = StandardSchema<any, any> | JsonSchema;

/** What may be given where a schema stands: before defaults and transforms. */
export type Given<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer Input } ? Input : unknown
  : FromJsonSchema<S>;

/** What comes out of a schema: after defaults and transforms. */
export type Taken<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer Output } ? Output : unknown
  : FromJsonSchema<S>;

/** The type that a JSON Schema written in the code describes, as far as its common keywords say. */
export type FromJsonSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly type: "string"; readonly format: "binary" }
      ? File
      : S extends { readonly type: "string" }
      ? string
      : S extends { readonly type: "number" | "integer" }
        ? number
        : S extends { readonly type: "boolean" }
          ? boolean
          : S extends { readonly type: "null" }
            ? null
            : S extends { readonly type: "array"; readonly items: infer Item }
              ? FromJsonSchema<Item>[]
              : S extends { readonly type: "object"; readonly properties: infer Properties }
                ? Plain<FromProperties<Properties, S extends { readonly required: readonly (infer Key)[] } ? Key : never>>
                : unknown;

type FromProperties<Properties, Required> = {
  -readonly [Key in keyof Properties as Key extends Required ? Key : never]: FromJsonSchema<Properties[Key]>;
} & {
  -readonly [Key in keyof Properties as Key extends Required ? never : Key]?: FromJsonSchema<Properties[Key]>;
};

type Plain<T> = { [Key in keyof T]: T[Key] };

/**
 * A JSON Schema with the type that it describes, for when the type is not to be read from it.
 *
 * ```ts
 * const Trip = jsonSchema<{ destination: string }>({ type: "object", required: ["destination"] });
 * ```
 */
export function jsonSchema<T>(schema: JsonSchema): StandardSchema<T> {
  const convert = (): Record<string, unknown> => schema;
  return {
    "~standard": {
      version: 1,
      vendor: "wharf",
      validate: (value) => {
        const checked = checkJson(schema, value);
        return checked.issues.length > 0 ? { issues: checked.issues } : { value: checked.value as T };
      },
      jsonSchema: { input: convert, output: convert },
    },
  };
}

/** Whether a schema keeps Standard Schema; otherwise it is JSON Schema. */
export function isStandard(schema: Schema): schema is StandardSchema<any, any> {
  // Some libraries make schemas that are functions.
  return (typeof schema === "object" || typeof schema === "function") && schema !== null && "~standard" in schema;
}

/** Which side of a call a value is on, for the words of an error. */
export type Side = "input" | "output" | "progress" | "configuration" | "answer";

/**
 * Checks a value and gives what the schema makes of it, at once if the schema can.
 * Throws a fault with the path of the first thing that is wrong.
 */
export function check(schema: Schema, value: unknown, side: Side, of: string): unknown {
  if (!isStandard(schema)) {
    const { value: filled, issues } = checkJson(schema, value);
    if (issues.length > 0) throw invalid(issues, side, of);
    return filled;
  }
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then((late) => settle(late, side, of)) : settle(result, side, of);
}

function settle(result: StandardResult<unknown>, side: Side, of: string): unknown {
  if (result.issues) throw invalid(result.issues, side, of);
  return result.value;
}

const CODES: Record<Side, string> = {
  input: "tool.invalid_input",
  output: "tool.invalid_output",
  progress: "tool.invalid_output",
  configuration: "config.invalid",
  answer: "tool.invalid_output",
};

function invalid(issues: readonly StandardIssue[], side: Side, of: string): Fault {
  const paths = issues.map((issue) => pointer(issue.path ?? []));
  const path = paths[0] ?? "";
  const said = issues[0]?.message ?? "it is not valid";
  const place = path === "" ? "" : ` at ${path}`;
  const details: Record<string, unknown> = { path };
  if (issues.length > 1) {
    details["issues"] = issues.slice(0, 20).map((issue, index) => ({ path: paths[index], message: issue.message }));
  }
  return new Fault(CODES[side], `The ${side} of ${of} is not valid${place}: ${said}`, { details });
}

/** A path as a JSON pointer. */
function pointer(path: readonly (PropertyKey | { readonly key: PropertyKey })[]): string {
  const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
  return keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** The JSON Schema of a schema. `{}`, which allows everything, when the library cannot say. */
export function jsonSchemaOf(schema: Schema, direction: "input" | "output"): Record<string, unknown> {
  if (!isStandard(schema)) return { ...schema };
  try {
    const converted = schema["~standard"].jsonSchema?.[direction]({ target: "draft-2020-12" });
    return converted ?? {};
  } catch {
    return {};
  }
}
