// A run as commands to type. Quoting is for a POSIX shell; no token is ever written.
import { Num, Obj, write, type Json } from "./json";

function quote(text: string): string {
  return /^[A-Za-z0-9_./:@=,+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function asWharf(tool: string, world: string, inputs: Json): string {
  const parts = ["wharf", "run", quote(tool)];
  const entries = inputs instanceof Obj ? inputs.entries : [];
  const simple = entries.every(([k, v]) => /^[A-Za-z0-9_]+$/.test(k) && (typeof v === "boolean" || v instanceof Num || (typeof v === "string" && v !== "" && !v.includes("\n"))));
  if (simple) for (const [k, v] of entries) parts.push(quote(`${k}=${v instanceof Num ? v.text : String(v)}`));
  else parts.push("--input", quote(write(inputs, 0)));
  if (world !== "default") parts.push("--world", quote(world));
  return parts.join(" ");
}

export function asCurl(origin: string, tool: string, world: string, inputs: Json): string {
  const body = new Obj([["tool", tool], ["world", world], ["inputs", inputs]]);
  return `curl -s ${quote(`${origin}/v1/runs`)} -H "Authorization: Bearer $WHARF_TOKEN" -H 'Content-Type: application/json' -d ${quote(write(body, 0))}`;
}
