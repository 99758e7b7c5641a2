/** Where a handler lies, where this package does, and what is known of the handler's files before they are loaded. */

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** What is known of a file: what is left of it without its types, or why that cannot be had. */
export interface KnownFile {
  /** A file with its text, without types. */
  text?: string;
  /** Whether it imports or exports. */
  module?: boolean;
  /** What is wrong with it, and where. */
  why?: string;
  line?: number;
}

/** What the program that starts a handler says of it. */
export interface Place {
  /** The handler's folder. */
  folder: string;
  files: Record<string, KnownFile>;
}

/** The folder of this package, with a slash at its end. */
export const RUNTIME = new URL("../../", import.meta.url).href;
/** The names of this package in a handler's imports, and what they lead to. */
const OWN = /^(?:wharf-sdk|#wharf)(\/agent|\/toolserver)?$/;
const ENTRIES: Record<string, string> = { "": "node/index.js", "/agent": "node/agent/index.js", "/toolserver": "node/toolserver/index.js" };
/** What a compiler would make of sources, and what stands in their place here. */
const SOURCES: Record<string, string> = { ".js": ".ts", ".mjs": ".mts", ".cjs": ".cts" };
const ENDINGS = [".ts", ".mts", ".js", ".mjs", "/index.ts", "/index.js"];

/** Reads what is known. */
export function readPlace(path: string): Place {
  return JSON.parse(readFileSync(path, "utf8")) as Place;
}

/** Where an import of a handler leads, if not where Node would look. */
export function mapped(specifier: string, parent: string | undefined): string | undefined {
  if (parent === undefined || parent.includes("/node_modules/") || parent.startsWith(RUNTIME)) return undefined;
  const own = OWN.exec(specifier);
  if (own) return new URL(ENTRIES[own[1] ?? ""] ?? "", RUNTIME).href;
  if (!/^\.\.?\//.test(specifier) || !parent.startsWith("file:")) return undefined;
  const path = fileURLToPath(new URL(specifier, parent));
  if (isFile(path)) return undefined;
  const ending = extname(path);
  const source = SOURCES[ending];
  const others = source === undefined ? [] : [path.slice(0, -ending.length) + source];
  const found = [...others, ...ENDINGS.map((end) => path + end)].find(isFile);
  return found === undefined ? undefined : pathToFileURL(found).href;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** What a module is, where it is a file that is known without its types. */
export function loaded(place: Place, url: string): { format: "module" | "commonjs"; source: string; shortCircuit: true } | undefined {
  if (!url.startsWith("file:") || url.startsWith(RUNTIME)) return undefined;
  const path = fileURLToPath(url);
  if (!/\.[cm]?ts$/.test(path)) return undefined;
  const known = place.files[path];
  if (known?.why !== undefined) throw new Error(`${path} has types that cannot be taken out`);
  // A Node that takes types out by itself is left to it.
  if ("typescript" in process.features && process.features.typescript) return undefined;
  if (known?.text === undefined) throw new Error(`${path} does not lie beside the handler`);
  return { format: formatOf(path, known), source: readFileSync(known.text, "utf8"), shortCircuit: true };
}

function formatOf(path: string, known: KnownFile): "module" | "commonjs" {
  if (path.endsWith(".mts")) return "module";
  if (path.endsWith(".cts")) return "commonjs";
  const said = typeOf(dirname(path));
  if (said !== undefined) return said === "module" ? "module" : "commonjs";
  return known.module === true ? "module" : "commonjs";
}

/** What the nearest `package.json` says of modules. */
function typeOf(folder: string): string | undefined {
  for (let here = folder; ; here = dirname(here)) {
    try {
      return (JSON.parse(readFileSync(join(here, "package.json"), "utf8")) as { type?: string }).type;
    } catch {
      if (dirname(here) === here) return undefined;
    }
  }
}
