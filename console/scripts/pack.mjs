// After a build: writes a .gz beside each asset and checks that the page keeps its size.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync, constants } from "node:zlib";

const FIRST_MAX = 120 * 1024;
const ALL_MAX = 250 * 1024;
const dist = new URL("../dist/", import.meta.url).pathname;

async function files(dir) {
  const out = [];
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) out.push(...(await files(path)));
    else if (!entry.name.endsWith(".gz")) out.push(path);
  }
  return out;
}

const sizes = new Map();
for (const path of await files(dist)) {
  const packed = gzipSync(await readFile(path), { level: constants.Z_BEST_COMPRESSION });
  await writeFile(`${path}.gz`, packed);
  sizes.set(path.slice(dist.length), packed.length);
}
// First paint: the page, what it names, the screen that opens at /, and everything these import.
const index = await readFile(join(dist, "index.html"), "utf8");
const seen = new Set(["index.html"]);
async function reach(name) {
  if (seen.has(name) || !sizes.has(name)) return;
  seen.add(name);
  if (!name.endsWith(".js")) return;
  const text = await readFile(join(dist, name), "utf8");
  for (const m of text.matchAll(/(?:from|import)\s*["']\.\/([^"']+)["']/g)) await reach(`assets/${m[1]}`);
}
for (const m of index.matchAll(/(?:src|href)="\/([^"]+)"/g)) await reach(m[1]);
for (const name of sizes.keys()) if (/assets\/(home|uPlot)[^/]*\.(js|css)$/.test(name)) await reach(name);
const first = [...seen].reduce((sum, n) => sum + (sizes.get(n) ?? 0), 0);
const all = [...sizes.values()].reduce((a, b) => a + b, 0);
const kb = (n) => `${(n / 1024).toFixed(1)} KB`;
console.log(`first paint ${kb(first)} of ${kb(FIRST_MAX)}, all ${kb(all)} of ${kb(ALL_MAX)}, gzip`);
if (/<script(?![^>]*src=)|<style|style=|https?:\/\//.test(index)) throw new Error("index.html has something the content policy refuses");
if (first > FIRST_MAX || all > ALL_MAX) {
  for (const [name, size] of [...sizes].sort((a, b) => b[1] - a[1]).slice(0, 12)) console.error(`${kb(size)}\t${name}`);
  console.error("The page is larger than it may be.");
  process.exit(1);
}
