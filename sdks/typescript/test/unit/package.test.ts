/** What is in the package, and for whom. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const BUILT = fileURLToPath(new URL("../../src/", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

// The compiler sees to the rest: Node's types are not there for these files.
test("k033_what_browsers_load_never_names_node", async () => {
  const names = (await readdir(BUILT, { recursive: true })).filter((name) => name.endsWith(".js") && !name.startsWith("node/"));
  assert.ok(names.length > 15);
  for (const name of names) {
    const text = await readFile(join(BUILT, name), "utf8");
    for (const [, from = ""] of text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
      assert.ok(from.startsWith("./") || from.startsWith("../"), `${name} imports ${from}`);
      assert.ok(!from.includes("node/"), `${name} imports ${from}`);
    }
  }
});

test("k033_the_package_needs_no_other_and_names_no_registry", async () => {
  const described = JSON.parse(await readFile(join(PACKAGE, "package.json"), "utf8"));
  assert.equal(described.dependencies, undefined);
  assert.equal(described.type, "module");
  const locked = await readFile(join(PACKAGE, "package-lock.json"), "utf8");
  assert.ok(!locked.includes('"resolved"'));
});

test("k033_packing_a_fresh_checkout_builds_it_first", async () => {
  const fresh = await mkdtemp(join(tmpdir(), "wharf-sdk-"));
  try {
    const left = ["node_modules", "dist"].map((name) => join(PACKAGE, name));
    await cp(PACKAGE, fresh, { recursive: true, filter: (path) => !left.includes(path.replace(/\/$/, "")) });
    await symlink(join(PACKAGE, "node_modules"), join(fresh, "node_modules"));
    const { stdout } = await promisify(execFile)("npm", ["pack", "--json", "--silent"], { cwd: fresh });
    const [packed] = JSON.parse(stdout.slice(stdout.indexOf("["))) as [{ files: { path: string }[] }];
    const names = packed.files.map((file) => file.path);
    for (const wanted of ["dist/src/index.js", "dist/src/index.d.ts", "dist/src/node/index.js", "README.md"]) {
      assert.ok(names.includes(wanted), `${wanted} is not in the package: ${names.join(" ")}`);
    }
    assert.ok(!names.some((name) => name.includes("test")), names.join(" "));
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
});
