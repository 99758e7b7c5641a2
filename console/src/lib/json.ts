// JSON in which numbers stay as they were written and keys stay in their order, so that what is shown is what was sent.

/** A number with its own digits. */
export class Num {
  constructor(readonly text: string) {}
}

export type Json = null | boolean | string | Num | Json[] | Obj;

/** An object as its entries; a key may be any text. */
export class Obj {
  constructor(readonly entries: [string, Json][]) {}
  get(key: string): Json | undefined {
    for (const [k, v] of this.entries) if (k === key) return v;
    return undefined;
  }
}

const DEPTH_MAX = 512;

/** Reads JSON; throws a SyntaxError with the place where it does not fit. */
export function parse(text: string): Json {
  let i = 0;
  const fail = (what: string): never => {
    throw new SyntaxError(`${what} at character ${i + 1}.`);
  };
  const space = () => {
    while (i < text.length && " \t\n\r".includes(text[i]!)) i += 1;
  };
  const string = (): string => {
    const from = i;
    i += 1;
    while (i < text.length && text[i] !== '"') {
      if (text.charCodeAt(i) < 0x20) fail("A text contains a line break or control character");
      i += text[i] === "\\" ? 2 : 1;
    }
    if (i >= text.length) fail("A text has no end");
    i += 1;
    try {
      return JSON.parse(text.slice(from, i)) as string;
    } catch {
      i = from;
      return fail("A text has an escape that does not exist");
    }
  };
  const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
  const value = (depth: number): Json => {
    if (depth > DEPTH_MAX) fail("It is nested too deeply");
    space();
    const c = text[i];
    if (c === undefined) return fail("Something is missing");
    if (c === "{") {
      i += 1;
      const entries: [string, Json][] = [];
      const seen = new Set<string>();
      space();
      if (text[i] === "}") { i += 1; return new Obj(entries); }
      for (;;) {
        space();
        if (text[i] !== '"') fail("A key in quotes is expected");
        const key = string();
        if (seen.has(key)) fail(`The key ${JSON.stringify(key)} stands twice`);
        seen.add(key);
        space();
        if (text[i] !== ":") fail("A colon is expected");
        i += 1;
        entries.push([key, value(depth + 1)]);
        space();
        if (text[i] === ",") { i += 1; continue; }
        if (text[i] === "}") { i += 1; return new Obj(entries); }
        fail("A comma or } is expected");
      }
    }
    if (c === "[") {
      i += 1;
      const items: Json[] = [];
      space();
      if (text[i] === "]") { i += 1; return items; }
      for (;;) {
        items.push(value(depth + 1));
        space();
        if (text[i] === ",") { i += 1; continue; }
        if (text[i] === "]") { i += 1; return items; }
        fail("A comma or ] is expected");
      }
    }
    if (c === '"') return string();
    for (const [word, v] of [["true", true], ["false", false], ["null", null]] as const) {
      if (text.startsWith(word, i)) { i += word.length; return v; }
    }
    NUMBER.lastIndex = i;
    const m = NUMBER.exec(text);
    if (!m) return fail("This is no JSON");
    i += m[0].length;
    return new Num(m[0]);
  };
  const out = value(0);
  space();
  if (i < text.length) fail("There is something after the end");
  return out;
}

/** Writes JSON with the numbers' own digits. */
export function write(v: Json, indent = 2): string {
  const pad = (n: number) => (indent ? "\n" + " ".repeat(indent * n) : "");
  const go = (x: Json, n: number): string => {
    if (x === null || typeof x === "boolean") return String(x);
    if (typeof x === "string") return JSON.stringify(x);
    if (x instanceof Num) return x.text;
    const items = Array.isArray(x) ? x.map((e) => go(e, n + 1)) : x.entries.map(([k, e]) => `${JSON.stringify(k)}:${indent ? " " : ""}${go(e, n + 1)}`);
    const [open, close] = Array.isArray(x) ? "[]" : "{}";
    return items.length ? `${open}${pad(n + 1)}${items.join(`,${pad(n + 1)}`)}${pad(n)}${close}` : `${open}${close}`;
  };
  return go(v, 0);
}

/** What JSON.parse would have made of it. */
export function toJs(v: Json): unknown {
  if (v instanceof Num) return Number(v.text);
  if (Array.isArray(v)) return v.map(toJs);
  if (v instanceof Obj) return Object.fromEntries(v.entries.map(([k, e]) => [k, toJs(e)]));
  return v;
}

/** The other way round. */
export function fromJs(v: unknown): Json {
  if (v === null || v === undefined) return null;
  if (typeof v === "boolean" || typeof v === "string") return v;
  if (typeof v === "number") return new Num(String(v));
  if (v instanceof Num) return v;
  if (Array.isArray(v)) return v.map(fromJs);
  return new Obj(Object.entries(v as object).map(([k, e]) => [k, fromJs(e)]));
}
