// What the page may never contain: ways to make markup or styles from text, and addresses of other hosts.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const RULES = [
  [/dangerouslySetInnerHTML/, "markup from text"],
  [/\.(inner|outer)HTML\b/, "markup from text"],
  [/insertAdjacentHTML|document\.write/, "markup from text"],
  [/setAttribute\(\s*["']style/, "styles are set through properties"],
  [/\bstyle=["']/, "styles are set through properties"],
  [/\.cssText\b/, "styles are set through properties"],
  [/\beval\(|new Function\(/, "code from text"],
  [/\bEventSource\b\(/, "streams are read by fetch"],
  [/["'`]https?:\/\/(?!www\.w3\.org\/)/, "no request to another host"],
  [/\bconsole\.(log|debug)\(/, "nothing is printed"],
];
const root = new URL("../src/", import.meta.url).pathname;
let bad = 0;

async function walk(dir) {
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) await walk(path);
    else if (/\.tsx?$/.test(entry.name) && entry.name !== "openapi.ts") await look(path);
  }
}

async function look(path) {
  const lines = (await readFile(path, "utf8")).split("\n");
  lines.forEach((line, i) => {
    if (/^\s*(\/\/|\*|\/\*)/.test(line)) return;
    for (const [rule, why] of RULES) {
      if (!rule.test(line)) continue;
      bad += 1;
      console.error(`src/${path.slice(root.length)}:${i + 1}: ${why}: ${line.trim().slice(0, 100)}`);
    }
  });
}

await walk(root);
if (bad) process.exit(1);
console.log("lint: nothing found");
