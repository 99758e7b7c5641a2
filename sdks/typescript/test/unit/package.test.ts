/** What is in the package, and for whom. */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

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
