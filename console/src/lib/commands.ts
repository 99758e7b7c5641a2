// A run as commands to type. Quoting is for a POSIX shell; no token is ever written.
import { Num, Obj, parse, write, type Json } from "./json";

/** A run as it can be asked for again. Its files are inputs such as `text.world`. */
export type Typed = {
  tool: string;
  world: string;
  inputs: Json;
  mode?: string | null | undefined;
  /** How long an attempt may run, and the most that the run may cost. */
  timeout_ms?: number | null | undefined;
  budget_micro?: number | null | undefined;
  /** The run whose own files it reads. */
  continues?: string | null | undefined;
  /** The files it wrote: where its outputs went is known from them alone. */
  outputs?: { key?: string | null; path: string; world: string }[];
};

function quote(text: string): string {
  return /^[A-Za-z0-9_./:@=,+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Where the outputs went, by their names; what went elsewhere than into the run's world is left out. */
function targets(of: Typed): [string, string][] {
  return (of.outputs ?? []).flatMap((a): [string, string][] => (a.key && a.world === of.world ? [[`${a.key}.world`, a.path]] : []));
}

/** A pair that the command line reads as what it is, whatever the tool's schema says. */
function isSimple([key, value]: [string, Json]): boolean {
  return /^[A-Za-z0-9_]+(\.(world|local))?$/.test(key) && (typeof value === "boolean" || value instanceof Num || (typeof value === "string" && value !== "" && !/[\n\r]/.test(value)));
}

export function asWharf(of: Typed): string {
  const parts = ["wharf", "run", quote(of.tool)];
  const entries = of.inputs instanceof Obj ? of.inputs.entries : [];
  if (entries.every(isSimple)) for (const [k, v] of entries) parts.push(quote(`${k}=${v instanceof Num ? v.text : String(v)}`));
  else parts.push("--input", quote(write(of.inputs, 0)));
  for (const [k, path] of targets(of)) parts.push("--out", quote(`${k}=${path}`));
  if (of.world !== "default") parts.push("--world", quote(of.world));
  if (of.mode && of.mode !== "real") parts.push("--mode", quote(of.mode));
  if (of.continues) parts.push("--continues", quote(of.continues));
  if (of.timeout_ms != null) parts.push("--timeout", lengthOf(of.timeout_ms));
  if (of.budget_micro != null) parts.push("--budget-micro", String(of.budget_micro));
  return parts.join(" ");
}

export function asCurl(origin: string, of: Typed): string {
  const body: [string, Json][] = [["tool", of.tool], ["world", of.world], ["inputs", of.inputs]];
  const to = targets(of);
  if (to.length) body.push(["outputs", new Obj(to)]);
  if (of.mode && of.mode !== "real") body.push(["mode", of.mode]);
  if (of.continues) body.push(["continues", of.continues]);
  if (of.timeout_ms != null) body.push(["timeout_ms", parse(String(of.timeout_ms))]);
  if (of.budget_micro != null) body.push(["budget_micro", parse(String(of.budget_micro))]);
  return `curl -s ${quote(`${origin}/v1/runs`)} -H "Authorization: Bearer $WHARF_TOKEN" -H 'Content-Type: application/json' -d ${quote(write(new Obj(body), 0))}`;
}

/** A length of time as the command line takes it: in the largest unit it is a whole number of. */
function lengthOf(ms: number): string {
  const [unit, name] = ([[3_600_000, "h"], [60_000, "m"], [1000, "s"]] as const).find(([u]) => ms > 0 && ms % u === 0) ?? [1, "ms"];
  return `${ms / unit}${name}`;
}

/** What a command leaves out, since the core shows it to nobody; nothing where it is whole. */
export function notTyped(of: Typed): string | undefined {
  const addresses = (json: Json): boolean => (typeof json === "string" ? /^[a-z][a-z0-9+.-]*:\/\//i.test(json) && !json.startsWith("world://") : json instanceof Obj ? json.entries.some(([, v]) => addresses(v)) : Array.isArray(json) && json.some(addresses));
  return addresses(of.inputs) ? "credentials that stood in addresses" : undefined;
}
