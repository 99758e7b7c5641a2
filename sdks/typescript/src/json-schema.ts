/**
 * A small validator for JSON Schema 2020-12: the keywords that tools use.
 *
 * Unknown keywords are ignored, as the standard says. References lead only into the schema itself.
 * Missing properties that have a `default` get it.
 */

import { Fault } from "./fault.js";

/** A JSON Schema: an object of keywords, or a boolean inside one. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What is wrong with a value, and where. */
export interface Issue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

const DEPTH_MAX = 100;

type Path = readonly (string | number)[];
type Keywords = Record<string, unknown>;

/** Checks a value. Gives it with defaults filled in, or what is wrong with it. */
export function checkJson(schema: JsonSchema | boolean, value: unknown): { value: unknown; issues: Issue[] } {
  const check = new Check(schema);
  const filled = check.value(schema, value, [], 0);
  return { value: filled, issues: check.issues };
}

class Check {
  issues: Issue[] = [];
  readonly #root: JsonSchema | boolean;

  constructor(root: JsonSchema | boolean) {
    this.#root = root;
  }

  value(schema: unknown, value: unknown, path: Path, depth: number): unknown {
    if (schema === false) return this.#wrong(path, "nothing is allowed here", value);
    if (typeof schema !== "object" || schema === null) return value;
    if (depth > DEPTH_MAX) return this.#wrong(path, "the schema or the value is nested too deeply", value);
    const keywords = schema as Keywords;
    if (typeof keywords["$ref"] === "string") {
      value = this.value(this.#lookUp(keywords["$ref"]), value, path, depth + 1);
    }
    // A file stands where JSON has no form for it.
    if (keywords["format"] === "binary" && value instanceof Blob) return value;
    if (!this.#kind(keywords, value, path)) return value;
    this.#scalars(keywords, value, path);
    this.#combined(keywords, value, path, depth);
    if (Array.isArray(value)) return this.#array(keywords, value, path, depth);
    if (typeof value === "object" && value !== null) {
      return this.#object(keywords, value as Record<string, unknown>, path, depth);
    }
    return value;
  }

  #wrong<T>(path: Path, message: string, value: T): T {
    this.issues.push({ path, message });
    return value;
  }

  #lookUp(reference: string): unknown {
    if (!reference.startsWith("#")) return true;
    let found: unknown = this.#root;
    for (const part of reference.slice(1).split("/").slice(1)) {
      const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      found = typeof found === "object" && found !== null ? (found as Keywords)[key] : undefined;
    }
    return found;
  }

  #kind(keywords: Keywords, value: unknown, path: Path): boolean {
    const wanted = keywords["type"];
    const names = Array.isArray(wanted) ? wanted : wanted === undefined ? [] : [wanted];
    if (names.length > 0 && !names.some((name) => isOfType(name, value))) {
      this.#wrong(path, `value is not of type ${names.map((name) => `"${name}"`).join(" or ")}`, value);
      return false;
    }
    if ("const" in keywords && !same(keywords["const"], value)) {
      this.#wrong(path, `value is not ${JSON.stringify(keywords["const"])}`, value);
    }
    const options = keywords["enum"];
    if (Array.isArray(options) && !options.some((option) => same(option, value))) {
      this.#wrong(path, `value is none of ${options.map((option) => JSON.stringify(option)).join(", ")}`, value);
    }
    return true;
  }

  #scalars(keywords: Keywords, value: unknown, path: Path): void {
    const limit = (name: string, holds: (bound: number) => boolean, words: string): void => {
      const bound = keywords[name];
      if (typeof bound === "number" && !holds(bound)) this.#wrong(path, `value ${words} ${bound}`, value);
    };
    if (typeof value === "number") {
      limit("minimum", (bound) => value >= bound, "is less than");
      limit("maximum", (bound) => value <= bound, "is greater than");
      limit("exclusiveMinimum", (bound) => value > bound, "is not greater than");
      limit("exclusiveMaximum", (bound) => value < bound, "is not less than");
      limit("multipleOf", (bound) => isMultiple(value, bound), "is not a multiple of");
    } else if (typeof value === "string") {
      const length = [...value].length;
      limit("minLength", (bound) => length >= bound, "has fewer characters than");
      limit("maxLength", (bound) => length <= bound, "has more characters than");
      const pattern = keywords["pattern"];
      if (typeof pattern === "string" && !expression(pattern).test(value)) {
        this.#wrong(path, `value does not match ${pattern}`, value);
      }
    }
  }

  /** Schemas that speak of the same value. They see it as it came: what they fill in is not kept. */
  #combined(keywords: Keywords, value: unknown, path: Path, depth: number): void {
    const fits = (schema: unknown): boolean => {
      const check = new Check(this.#root);
      check.value(schema, value, path, depth + 1);
      return check.issues.length === 0;
    };
    const list = (name: string): unknown[] | undefined => {
      const schemas = keywords[name];
      return Array.isArray(schemas) ? schemas : undefined;
    };
    for (const schema of list("allOf") ?? []) this.value(schema, value, path, depth + 1);
    const any = list("anyOf");
    if (any && !any.some(fits)) this.#wrong(path, "value fits none of the allowed forms", value);
    const one = list("oneOf");
    if (one && one.filter(fits).length !== 1) {
      this.#wrong(path, "value does not fit exactly one of the allowed forms", value);
    }
    if ("not" in keywords && fits(keywords["not"])) this.#wrong(path, "value has a form that is excluded", value);
    if ("if" in keywords) {
      const branch = fits(keywords["if"]) ? keywords["then"] : keywords["else"];
      if (branch !== undefined) this.value(branch, value, path, depth + 1);
    }
  }

  #array(keywords: Keywords, value: unknown[], path: Path, depth: number): unknown[] {
    const { minItems, maxItems, uniqueItems, items } = keywords;
    if (typeof minItems === "number" && value.length < minItems) {
      this.#wrong(path, `list has fewer items than ${minItems}`, value);
    }
    if (typeof maxItems === "number" && value.length > maxItems) {
      this.#wrong(path, `list has more items than ${maxItems}`, value);
    }
    if (uniqueItems === true && value.some((item, index) => value.slice(0, index).some((other) => same(other, item)))) {
      this.#wrong(path, "list has an item twice", value);
    }
    const first = Array.isArray(keywords["prefixItems"]) ? keywords["prefixItems"] : [];
    return value.map((item, index) => {
      const schema = index < first.length ? first[index] : items;
      return schema === undefined ? item : this.value(schema, item, [...path, index], depth + 1);
    });
  }

  #object(keywords: Keywords, value: Record<string, unknown>, path: Path, depth: number): unknown {
    const { required, minProperties, maxProperties, additionalProperties } = keywords;
    const own = (record: object, key: string): boolean => Object.hasOwn(record, key);
    const properties = (keywords["properties"] ?? {}) as Record<string, unknown>;
    const patterns = Object.entries((keywords["patternProperties"] ?? {}) as Record<string, unknown>);
    for (const key of Array.isArray(required) ? required : []) {
      if (!own(value, key)) this.#wrong([...path, key], `"${key}" is a required property`, value);
    }
    const count = Object.keys(value).length;
    if (typeof minProperties === "number" && count < minProperties) {
      this.#wrong(path, `object has fewer properties than ${minProperties}`, value);
    }
    if (typeof maxProperties === "number" && count > maxProperties) {
      this.#wrong(path, `object has more properties than ${maxProperties}`, value);
    }
    const filled: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      const schemas = patterns.filter(([pattern]) => expression(pattern).test(key)).map(([, schema]) => schema);
      if (own(properties, key)) schemas.push(properties[key]);
      if (schemas.length === 0 && additionalProperties !== undefined) schemas.push(additionalProperties);
      const at = [...path, key];
      filled.push([key, schemas.reduce((now, schema) => this.value(schema, now, at, depth + 1), item)]);
    }
    for (const [key, schema] of Object.entries(properties)) {
      const fallback = typeof schema === "object" && schema !== null ? (schema as Keywords)["default"] : undefined;
      if (fallback !== undefined && !own(value, key)) filled.push([key, structuredClone(fallback)]);
    }
    return Object.fromEntries(filled);
  }
}

function isOfType(name: unknown, value: unknown): boolean {
  switch (name) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    default:
      return typeof value === name;
  }
}

function expression(pattern: string): RegExp {
  try {
    return new RegExp(pattern, "u");
  } catch (error) {
    throw new Fault("tool.schema_invalid", `A schema has a pattern that cannot be read: ${pattern}`, { cause: error });
  }
}

function isMultiple(value: number, of: number): boolean {
  const ratio = value / of;
  return Math.abs(ratio - Math.round(ratio)) < 1e-9;
}

/** Whether two JSON values are the same; the order of properties does not matter. */
function same(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && same((left as Keywords)[key], (right as Keywords)[key]))
  );
}
