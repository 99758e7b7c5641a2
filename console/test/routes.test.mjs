import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = new URL("../src/", import.meta.url).pathname;

function sources(dir) {
  return readdirSync(dir, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? sources(join(dir, e.name)) : /\.tsx?$/.test(e.name) && e.name !== "openapi.ts" ? [join(dir, e.name)] : []));
}

/** A path as a pattern: what is filled in counts for nothing. */
const shape = (path) => path.replace(/\?.*$/, "").replace(/\$\{[^}]*\}|\{[^}]*\}/g, "{}").replace(/\/$/, "");

test("c044_every_route_the_page_names_is_in_the_document", () => {
  const document = readFileSync(join(root, "api/openapi.ts"), "utf8");
  const known = new Set([...document.matchAll(/^ {4}"(\/[^"]+)": \{/gm)].map((m) => shape(m[1])));
  expect(known.size).toBeGreaterThan(50);
  const used = sources(root).flatMap((file) => [...readFileSync(file, "utf8").matchAll(/["`](\/v1\/(?:[^"`$]|\$\{(?:[^{}]|\{[^}]*\})*\})*)["`]/g)].map((m) => shape(m[1])));
  expect(used.length).toBeGreaterThan(40);
  // A tool's id is two segments in the document and one expression here; a file's path follows its route.
  const fits = (path) => known.has(path) || known.has(path.replace("/v1/tools/{}", "/v1/tools/{}/{}")) || known.has(path.replace(/\/files\{\}$/, "/files/{}")) || [...known].some((k) => k.startsWith(`${path}/`) || k.startsWith(path.replace(/\{\}$/, "")));
  expect([...new Set(used)].filter((p) => !fits(p))).toEqual([]);
});
