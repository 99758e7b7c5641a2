// What form a JSON Schema asks for, and whether a value fits it. The page checks type, required, enum and range to help
// while typing; the core decides. What no form fits is written as JSON.
import { Num, Obj, write, type Json } from "./json";

export type Schema = Record<string, unknown>;
export type Option = { value: Json; name: string };
export type Plan =
  | { kind: "text"; long: boolean; format?: string | undefined }
  | { kind: "number"; whole: boolean }
  | { kind: "boolean" }
  | { kind: "choice"; options: Option[] }
  | { kind: "choices"; options: Option[] }
  | { kind: "fixed"; value: Json }
  | { kind: "list"; item: Field }
  | { kind: "object"; fields: Field[]; open: boolean }
  | { kind: "file" }
  | { kind: "json" };
export type Field = { name: string; title: string; hint?: string | undefined; required: boolean; nullable: boolean; schema: Schema; plan: Plan };

/** Text that is being typed and is no value yet. */
export class Draft {
  constructor(readonly text: string, readonly fault: string) {}
}
/** What a field holds: a value, nothing, or what is being typed. Objects and lists hold fields again. */
export type Val = Json | undefined | Draft | Val[] | Map<string, Val>;
/** Said of a field without which a form is not whole. */
export const NEEDED = "This is needed.";

export type Fault = { path: string; message: string };

const DEPTH_MAX = 8;
/** More fields than anybody fills in; beyond them the rest is a field of JSON. */
const FIELDS_MAX = 300;

/** A document that fields are made of, and how many more may be. */
type Making = { root: Schema; left: number };

const isObject = (v: unknown): v is Schema => typeof v === "object" && v !== null && !Array.isArray(v);

/** Follows `$ref` within the document and takes `allOf` of one apart. */
function resolve(schema: unknown, root: Schema, depth = 0): Schema {
  if (schema === true || schema === undefined) return {};
  if (!isObject(schema) || depth > 16) return {};
  let s = schema;
  const ref = s["$ref"];
  if (typeof ref === "string") {
    if (!ref.startsWith("#")) return { "x-unknown": true };
    let at: unknown = root;
    for (const part of ref.slice(1).split("/").filter(Boolean)) {
      const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      at = isObject(at) || Array.isArray(at) ? (at as Record<string, unknown>)[key] : undefined;
    }
    const { $ref: _, ...rest } = s;
    s = { ...resolve(at, root, depth + 1), ...rest };
  }
  const all = s["allOf"];
  if (Array.isArray(all) && all.length === 1) {
    const { allOf: _, ...rest } = s;
    s = { ...resolve(all[0], root, depth + 1), ...rest };
  }
  return s;
}

/** A part of a reference; what is not well encoded stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function fieldOf(schema: unknown, name = "", required = true, making?: Making, depth = 0): Field {
  const all = making ?? { root: isObject(schema) ? schema : {}, left: FIELDS_MAX };
  const top = all.root;
  let s = resolve(schema, top);
  let nullable = false;
  for (const word of ["anyOf", "oneOf"]) {
    const choices = s[word];
    if (!Array.isArray(choices)) continue;
    const rest = choices.map((c) => resolve(c, top)).filter((c) => !(c["type"] === "null" || ("const" in c && c["const"] === null)));
    if (rest.length < choices.length) nullable = true;
    if (rest.length === 1) {
      const { [word]: _, ...outer } = s;
      s = { ...rest[0], ...outer };
    } else if (rest.length < choices.length) s = { ...s, [word]: rest };
  }
  if (Array.isArray(s["type"])) {
    const types = (s["type"] as string[]).filter((t) => t !== "null");
    if (types.length < (s["type"] as string[]).length) nullable = true;
    s = { ...s, type: types.length === 1 ? types[0] : types };
  }
  return {
    name,
    title: typeof s["title"] === "string" && s["title"] ? (s["title"] as string) : name,
    hint: typeof s["description"] === "string" ? (s["description"] as string) : undefined,
    required,
    nullable,
    schema: s,
    plan: planOf(s, all, depth),
  };
}

function optionsOf(s: Schema, root: Schema): Option[] | undefined {
  const list = s["enum"];
  if (Array.isArray(list) && list.length > 0 && list.length <= 100) return list.filter((v) => v !== null).map((v) => ({ value: toJson(v), name: nameOf(v) }));
  for (const word of ["oneOf", "anyOf"]) {
    const all = s[word];
    if (!Array.isArray(all) || all.length === 0) continue;
    const parts = all.map((c) => resolve(c, root));
    if (parts.every((c) => "const" in c)) return parts.map((c) => ({ value: toJson(c["const"]), name: typeof c["title"] === "string" ? (c["title"] as string) : nameOf(c["const"]) }));
    if (parts.every((c) => Array.isArray(c["enum"]))) return parts.flatMap((c) => (c["enum"] as unknown[]).map((v) => ({ value: toJson(v), name: nameOf(v) })));
  }
  return undefined;
}

const nameOf = (v: unknown) => (typeof v === "string" ? v : JSON.stringify(v));

function toJson(v: unknown): Json {
  if (v === null || typeof v === "string" || typeof v === "boolean") return v;
  if (typeof v === "number") return new Num(String(v));
  if (Array.isArray(v)) return v.map(toJson);
  return new Obj(Object.entries(v as object).map(([k, e]) => [k, toJson(e)]));
}

function planOf(s: Schema, making: Making, depth: number): Plan {
  const { root } = making;
  if (depth > DEPTH_MAX || s["x-unknown"]) return { kind: "json" };
  if ("const" in s) return { kind: "fixed", value: toJson(s["const"]) };
  const options = optionsOf(s, root);
  if (options) return { kind: "choice", options };
  for (const word of ["anyOf", "oneOf", "allOf", "not", "if", "patternProperties", "dependentSchemas"]) if (word in s) return { kind: "json" };
  const type = s["type"] ?? ("properties" in s ? "object" : "items" in s ? "array" : undefined);
  switch (type) {
    case "string": {
      if (s["x-wharf-file"] || s["format"] === "binary" || s["contentEncoding"] === "base64") return { kind: "file" };
      const max = s["maxLength"];
      const format = typeof s["format"] === "string" ? (s["format"] as string) : undefined;
      return { kind: "text", format, long: !format && (typeof max !== "number" || max > 200) };
    }
    case "integer":
    case "number":
      return { kind: "number", whole: type === "integer" };
    case "boolean":
      return { kind: "boolean" };
    case "array": {
      if (Array.isArray(s["items"]) || "prefixItems" in s) return { kind: "json" };
      making.left -= 1;
      if (making.left < 0) return { kind: "json" };
      const item = fieldOf(s["items"], "", true, making, depth + 1);
      if (item.plan.kind === "choice" && s["uniqueItems"] === true) return { kind: "choices", options: item.plan.options };
      return { kind: "list", item };
    }
    case "object": {
      const props = isObject(s["properties"]) ? (s["properties"] as Schema) : {};
      const must = Array.isArray(s["required"]) ? (s["required"] as string[]) : [];
      const names = Object.keys(props);
      if (names.length === 0 && s["additionalProperties"] !== false) return { kind: "json" };
      // Taken before those within, so that what lies above is a form in any case.
      if (names.length > making.left) return { kind: "json" };
      making.left -= names.length;
      return { kind: "object", open: s["additionalProperties"] !== false, fields: names.sort((a, b) => Number(must.includes(b)) - Number(must.includes(a))).map((n) => fieldOf(props[n], n, must.includes(n), making, depth + 1)) };
    }
    default:
      return { kind: "json" };
  }
}

/** What a form begins with: what the schema says, or what was given. */
export function startOf(field: Field, given?: Json): Val {
  const value = given !== undefined ? given : ("default" in field.schema ? toJson(field.schema["default"]) : undefined);
  switch (field.plan.kind) {
    case "fixed":
      return field.plan.value;
    case "object": {
      if (value === undefined && !field.required) return undefined;
      const from = value instanceof Obj ? value : undefined;
      const known = new Set(field.plan.fields.map((f) => f.name));
      const out = new Map<string, Val>(field.plan.fields.map((f) => [f.name, startOf(f, from?.get(f.name))]));
      for (const [k, v] of from?.entries ?? []) if (!known.has(k)) out.set(k, v);
      return out;
    }
    case "list": {
      const item = field.plan.item;
      if (Array.isArray(value)) return value.map((v) => startOf(item, v));
      return field.required ? Array.from({ length: Math.min(Number(field.schema["minItems"] ?? 0), 20) }, () => startOf(item)) : undefined;
    }
    default:
      return value;
  }
}

/** The JSON of what was filled in; fields that hold nothing are left out. */
export function valueOf(v: Val): Json | undefined {
  if (v === undefined || v instanceof Draft) return undefined;
  if (v instanceof Map) {
    const entries: [string, Json][] = [];
    for (const [k, e] of v) {
      const x = valueOf(e);
      if (x !== undefined) entries.push([k, x]);
    }
    return new Obj(entries);
  }
  if (Array.isArray(v)) return v.map((e) => valueOf(e as Val) ?? null);
  return v as Json;
}

const num = (v: unknown): number | undefined => (typeof v === "number" ? v : undefined);

/** All faults of what was filled in. */
export function check(field: Field, v: Val, path = ""): Fault[] {
  const s = field.schema;
  const one = (message: string): Fault[] => [{ path, message }];
  if (v instanceof Draft) return one(v.fault);
  if (v === undefined) return field.required && !(field.nullable && field.plan.kind !== "object") ? one(NEEDED) : [];
  if (v === null) return field.nullable || field.plan.kind === "json" || field.plan.kind === "fixed" || field.plan.kind === "choice" ? [] : one("This may not be null.");
  switch (field.plan.kind) {
    case "text":
    case "file": {
      if (typeof v !== "string") return one("This must be text.");
      const n = [...v].length;
      const min = num(s["minLength"]);
      const max = num(s["maxLength"]);
      if (min !== undefined && n < min) return one(min === 1 ? "This may not be empty." : `At least ${min} characters are needed; these are ${n}.`);
      if (max !== undefined && n > max) return one(`At most ${max} characters fit; these are ${n}.`);
      if (typeof s["pattern"] === "string" && !matches(s["pattern"] as string, v)) return one(`This must match ${s["pattern"]}.`);
      return [];
    }
    case "number": {
      if (!(v instanceof Num)) return one("This must be a number.");
      if (field.plan.whole && !/^-?\d+(\.0+)?$/.test(v.text)) return one("This must be a whole number.");
      return range(s, Number(v.text)).map((message) => ({ path, message }));
    }
    case "boolean":
      return typeof v === "boolean" ? [] : one("This must be yes or no.");
    case "choice": {
      const text = write(v as Json, 0);
      return field.plan.options.some((o) => write(o.value, 0) === text) ? [] : one("This is none of the choices.");
    }
    case "choices":
    case "list": {
      if (!Array.isArray(v)) return one("This must be a list.");
      const min = num(s["minItems"]);
      const max = num(s["maxItems"]);
      const out: Fault[] = [];
      if (min !== undefined && v.length < min) out.push({ path, message: `At least ${min} are needed.` });
      if (max !== undefined && v.length > max) out.push({ path, message: `At most ${max} fit.` });
      if (field.plan.kind === "list") {
        const item = field.plan.item;
        v.forEach((e, i) => out.push(...check(item, e as Val, `${path}/${i}`)));
      }
      return out;
    }
    case "object": {
      if (!(v instanceof Map)) return one("This must be an object.");
      return field.plan.fields.flatMap((f) => check(f, v.get(f.name), `${path}/${f.name.replaceAll("~", "~0").replaceAll("/", "~1")}`));
    }
    default:
      return [];
  }
}

function range(s: Schema, n: number): string[] {
  const min = num(s["minimum"]);
  const max = num(s["maximum"]);
  const above = num(s["exclusiveMinimum"]);
  const below = num(s["exclusiveMaximum"]);
  const step = num(s["multipleOf"]);
  if (min !== undefined && n < min) return [`The smallest is ${min}.`];
  if (max !== undefined && n > max) return [`The largest is ${max}.`];
  if (above !== undefined && n <= above) return [`This must be more than ${above}.`];
  if (below !== undefined && n >= below) return [`This must be less than ${below}.`];
  if (step !== undefined && step > 0 && Math.abs(n / step - Math.round(n / step)) > 1e-9) return [`This must be a multiple of ${step}.`];
  return [];
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text.slice(0, 10_000));
  } catch {
    // A pattern of another dialect: the core decides.
    return true;
  }
}
