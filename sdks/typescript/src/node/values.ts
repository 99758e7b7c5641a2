/**
 * Values that are no objects.
 *
 * Inside Wharf every tool takes and gives an object. A tool of another type has its value in an
 * object with the one key `value`, and its schema has a mark that says so.
 */

import type { JsonSchema } from "../json-schema.js";

const MARK = "x-wharf-value";

/** Whether values of a schema travel as they are. A schema that says nothing is taken for an object. */
function isObject(schema: JsonSchema): boolean {
  if (schema["type"] !== undefined) return schema["type"] === "object";
  const says = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not", "items", "prefixItems"];
  return !says.some((keyword) => keyword in schema);
}

/** The schema that others are told. */
export function objectSchema(schema: JsonSchema): JsonSchema {
  if (isObject(schema)) return { type: "object", ...schema };
  const { $defs, $schema, ...value } = schema;
  const wrapped: Record<string, unknown> = { type: "object", properties: { value }, required: ["value"], [MARK]: true };
  if ($schema !== undefined) wrapped["$schema"] = $schema;
  if ($defs !== undefined) wrapped["$defs"] = $defs;
  return wrapped;
}

/** A tool's own value of what came. */
export function unpack(schema: JsonSchema, value: Record<string, unknown>): unknown {
  return isObject(schema) ? value : value["value"];
}

/** What a tool gave, as it travels. */
export function pack(schema: JsonSchema, value: unknown): Record<string, unknown> {
  const plain = typeof value === "object" && value !== null && !Array.isArray(value);
  if (isObject(schema) && plain) return value as Record<string, unknown>;
  if (isObject(schema) && (value === null || value === undefined)) return {};
  return { value: value ?? null };
}

/** What a file holds for an input: text where the tool wants text, otherwise JSON. */
export function valueOfFile(schema: JsonSchema, key: string, text: string): unknown {
  const properties = schema["properties"] as Record<string, JsonSchema> | undefined;
  const type = properties?.[key]?.["type"];
  return type === undefined || type === "string" ? text : JSON.parse(text);
}
