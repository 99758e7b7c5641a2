/** The code in the README compiles, and what can run by itself prints what it says. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

test("k033_the_code_in_the_readme_compiles_and_runs", async () => {
  const page = await readFile(join(PACKAGE, "README.md"), "utf8");
  const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1] ?? "");
  assert.equal(blocks.length, 5);
  const folder = join(PACKAGE, "dist/readme");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await Promise.all(blocks.map((block, index) => writeFile(join(folder, `block${index}.ts`), block)));
  const settings = { extends: "../../tsconfig.base.json", compilerOptions: { composite: false, rootDir: ".", outDir: "out", lib: ["ES2023", "DOM"], types: ["node"] } };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(settings));
  const compiler = join(PACKAGE, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, "-p", folder]).catch((error: { stdout: string }) => assert.fail(error.stdout));
  const { stdout } = await run(process.execPath, [join(folder, "out/block0.js")]);
  const promised = [...(blocks[0] ?? "").matchAll(/console\.log\(.*\/\/ (.*)/g)].map((match) => match[1]);
  assert.equal(promised.length, 2);
  assert.deepEqual(stdout.trim().split("\n"), promised);
});
