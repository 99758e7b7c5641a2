/** Finds a handler by its file, brings it into the process and says which tools it has. */

import { existsSync, readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { basename, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { jsonSchemaOf, isStandard, type Schema } from "../../schema.js";
import { REMADE, UNNAMED, WIRE, type AnyTool } from "../../tool.js";
import { loaded, mapped, readPlace, type Place } from "./place.js";
import { messageOf, nameOf, Tracer } from "./trace.js";

/** Why a handler cannot be served. */
export class Unusable extends Error {
  /** The whole story. */
  readonly lines: string[];

  constructor(message: string, lines: string[] = []) {
    super(message);
    this.lines = lines;
  }

  /** All of it, for whoever calls the tool. */
  get sentence(): string {
    return this.message.startsWith("The ") ? this.message : `The handler cannot be imported: ${this.message}.`;
  }
}

/** A handler that was imported: its tools by name. */
export class Handler {
  readonly tools = new Map<string, AnyTool>();
  readonly tracer: Tracer;
  readonly #name: string;

  constructor(file: string, tracer: Tracer) {
    this.#name = basename(file);
    this.tracer = tracer;
  }

  /** The one that is to be served; without a name there must be only one. */
  choose(name: string | undefined): AnyTool {
    const has = `It has ${[...this.tools.keys()].map((one) => `\`${one}\``).join(", ")}.`;
    const found = name === undefined ? [...this.tools.values()][0] : this.tools.get(name);
    if (name === undefined && this.tools.size > 1) {
      throw new Unusable(`The handler file ${this.#name} has several tools; name the one to serve. ${has}`);
    }
    if (found === undefined) throw new Unusable(`The handler file ${this.#name} exports no tool \`${name}\`. ${has}`);
    return found;
  }
}

/** Imports a handler's file; `known` says what is known of the files beside it. */
export async function load(file: string, known: string): Promise<Handler> {
  const place = readPlace(known);
  if (!existsSync(file)) throw new Unusable(`The handler file ${basename(file)} does not exist.`);
  hook(known, place);
  const handler = new Handler(file, new Tracer(place.folder));
  let exported: Record<string, unknown>;
  try {
    exported = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (error) {
    throw explained(error, file, place, handler.tracer);
  }
  await collect(handler, file, exported);
  return handler;
}

/** Lets imports find this package, and files without their types. */
function hook(known: string, place: Place): void {
  const { registerHooks } = nodeModule as unknown as { registerHooks?: (hooks: object) => void };
  if (registerHooks === undefined) {
    nodeModule.register("./hooks.js", { parentURL: import.meta.url, data: known });
    return hookRequire(place);
  }
  type Next = (to: string, context: unknown) => unknown;
  registerHooks({
    resolve: (specifier: string, context: { parentURL?: string }, next: Next) => next(mapped(specifier, context.parentURL) ?? specifier, context),
    load: (url: string, context: unknown, next: Next) => loaded(place, url) ?? next(url, context),
  });
}

/** The same for `require`, which asks no hooks in older Nodes. */
function hookRequire(place: Place): void {
  type Loading = { filename?: string; _compile(source: string, filename: string): void };
  const modules = nodeModule.Module as unknown as {
    _resolveFilename: (request: string, parent: Loading | undefined, ...rest: unknown[]) => string;
    _extensions: Record<string, (module: Loading, filename: string) => void>;
  };
  const usual = modules._resolveFilename;
  modules._resolveFilename = (request, parent, ...rest) => {
    const found = parent?.filename === undefined ? undefined : mapped(request, pathToFileURL(parent.filename).href);
    return found === undefined ? usual.call(modules, request, parent, ...rest) : fileURLToPath(found);
  };
  for (const ending of [".ts", ".cts"]) {
    modules._extensions[ending] = (module, filename) => {
      const known = loaded(place, pathToFileURL(filename).href);
      module._compile(known?.source ?? readFileSync(filename, "utf8"), filename);
    };
  }
}

async function collect(handler: Handler, file: string, exported: Record<string, unknown>): Promise<void> {
  const name = basename(file);
  const all = isTools(exported["default"]) ? { ...exported["default"], ...exported } : exported;
  // The default comes last: it may be a tool that has a name of its own.
  const entries = Object.entries(all).sort(([one], [two]) => Number(one === "default") - Number(two === "default"));
  const seen = new Set<unknown>();
  for (const [key, value] of entries) {
    if (!isTool(value) || seen.has(value)) continue;
    seen.add(value);
    const called = value.name !== UNNAMED ? value.name : key === "default" ? name.replace(/\.[^.]*$/, "") : key;
    if (value.run === undefined) throw new Unusable(`The tool \`${called}\` of ${name} has no \`run\`.`);
    if (handler.tools.has(called)) throw new Unusable(`The handler file ${name} has two tools of the name \`${called}\`.`);
    const schemas = await schemasOf(value, called, file);
    handler.tools.set(called, value[REMADE]({ name: called, schemas }));
  }
  if (handler.tools.size === 0) {
    throw new Unusable(`The handler file ${name} exports no tool: write \`export const shout = tool({ … })\`.`);
  }
}

function isTool(value: unknown): value is AnyTool {
  return typeof value === "object" && value !== null && WIRE in value;
}

/** Whether something holds tools by name, as CommonJS modules do. */
function isTools(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !isTool(value) && Object.values(value).some(isTool);
}

async function schemasOf(tool: AnyTool, called: string, file: string): Promise<{ input: Record<string, unknown>; output: Record<string, unknown> }> {
  const given = tool.schemas;
  const of = async (side: "input" | "output"): Promise<Record<string, unknown>> => {
    const said = given[side];
    const schema = tool[side] as Schema;
    if (Object.keys(said).length > 0 || !isStandard(schema)) return said;
    return (await converted(schema, side, file)) ?? unsaid(schema, called, side);
  };
  return { input: await of("input"), output: await of("output") };
}

/** What the library of a schema says in JSON Schema, where only a function of its package does. */
async function converted(schema: Schema, side: "input" | "output", file: string): Promise<Record<string, unknown> | undefined> {
  if (!isStandard(schema)) return undefined;
  const again = jsonSchemaOf(schema, side);
  if (Object.keys(again).length > 0) return again;
  const { vendor } = schema["~standard"];
  const find = async (name: string): Promise<any> => import(pathToFileURL(nodeModule.createRequire(file).resolve(name)).href);
  try {
    if (vendor === "zod") return (await find("zod")).toJSONSchema(schema, { io: side });
    if (vendor === "valibot") return (await find("@valibot/to-json-schema")).toJsonSchema(schema, { typeMode: side });
  } catch {
    // It is not there, or it cannot say it either.
  }
  return undefined;
}

function unsaid(schema: Schema, called: string, side: string): never {
  const vendor = isStandard(schema) ? schema["~standard"].vendor : "";
  const more = vendor === "valibot" ? "install @valibot/to-json-schema beside the handler, or " : "";
  throw new Unusable(`The ${side} of \`${called}\` has a schema of ${vendor} that cannot be said in JSON Schema; ${more}give \`schemas: { ${side}: { … } }\`.`);
}

/** Why an import failed: one sentence with the file and the line, and the story. */
function explained(error: unknown, file: string, place: Place, tracer: Tracer): Unusable {
  const own = relative(place.folder, file);
  const wrong = Object.entries(place.files).find(([path, { why }]) => why !== undefined && messageOf(error).includes(`${path} has types`));
  const broken = wrong ?? (error instanceof SyntaxError ? syntaxOf(error, file, place, tracer) : undefined);
  if (broken) {
    const [path, { why = "", line = 1 }] = broken;
    const place = `${tracer.named(path)}, line ${line}`;
    const isSyntax = why.startsWith("SyntaxError: ");
    const [what, instead] = why.split("; ");
    const message = isSyntax ? `SyntaxError in ${place}: ${why.slice(13)}` : `${place}: ${what} makes code, and only types are taken out; ${instead}`;
    return new Unusable(message, [message, ...shown(path, line)]);
  }
  const missing = missingPackage(error);
  if (missing !== undefined) {
    const { name, from } = missing;
    const at = from === undefined ? own : tracer.named(from);
    const line = from === undefined ? undefined : lineOf(from, name);
    const message = `${at}${line === undefined ? "" : `, line ${line}`}: the package ${name} is not installed; run \`npm install ${name}\` in the folder of ${own}`;
    return new Unusable(message);
  }
  const line = tracer.lineIn(error, own);
  const hint = /does not provide an export named/.test(messageOf(error)) ? "; a type is imported with `import type`" : "";
  const message = `${nameOf(error)} in ${own}${line === undefined ? "" : `, line ${line}`}: ${tracer.named(messageOf(error))}${hint}`;
  return new Unusable(message, tracer.lines(error));
}

/** The file that is no JavaScript, as far as that is known. */
function syntaxOf(error: SyntaxError, file: string, place: Place, tracer: Tracer): [string, { why?: string; line?: number }] | undefined {
  const wrong = Object.entries(place.files).filter(([, { why }]) => why !== undefined);
  const told = tracer.lines(error).join("\n");
  // Some Nodes do not say where it is.
  return wrong.find(([path]) => told.includes(tracer.named(path))) ?? (/:\d+/.test(told) ? undefined : (wrong.find(([path]) => path === file) ?? wrong[0]));
}

/** The package that an import did not find, and who asked for it. */
function missingPackage(error: unknown): { name: string; from: string | undefined } | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  const text = error instanceof Error ? error.message : "";
  const module = /Cannot find package '([^']+)'(?: imported from (.+))?/.exec(text);
  if (code === "ERR_MODULE_NOT_FOUND" && module?.[1] !== undefined) return { name: packageOf(module[1]), from: pathOf(module[2]) };
  const required = /Cannot find module '([^'./][^']*)'\s+Require stack:\s+- (.+)/.exec(text);
  if (code === "MODULE_NOT_FOUND" && required?.[1] !== undefined) return { name: packageOf(required[1]), from: pathOf(required[2]) };
  return undefined;
}

function pathOf(said: string | undefined): string | undefined {
  return said?.startsWith("file:") ? fileURLToPath(said) : said;
}

/** `zod/v4` is in the package zod; newer Nodes name the file that was looked for. */
function packageOf(specifier: string): string {
  const path = specifier.includes("/node_modules/") ? specifier.slice(specifier.lastIndexOf("/node_modules/") + 14) : specifier;
  return path.split("/").slice(0, path.startsWith("@") ? 2 : 1).join("/");
}

/** The first line of a file that names a package. */
function lineOf(file: string, name: string): number | undefined {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    const at = lines.findIndex((line) => line.includes(`"${name}`) || line.includes(`'${name}`));
    return at < 0 ? undefined : at + 1;
  } catch {
    return undefined;
  }
}

/** A line of a file, as a story shows it. */
function shown(path: string, line: number): string[] {
  try {
    const text = readFileSync(path, "utf8").split("\n")[line - 1];
    return text === undefined ? [] : [`    ${text.trim()}`];
  } catch {
    return [];
  }
}
