/** Folders with a program that uses the package, as an author would have them. */

import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

/** Makes a folder with a program of this package's tests, the packages it needs, and other files. */
export async function programFolder(program: string, files: Record<string, string>, body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "wharf-sdk-"));
  try {
    const sdk = join(folder, "node_modules", "wharf-sdk");
    await mkdir(join(sdk, "dist"), { recursive: true });
    await cp(join(PACKAGE, "package.json"), join(sdk, "package.json"));
    await cp(join(PACKAGE, "dist/src"), join(sdk, "dist/src"), { recursive: true });
    await cp(join(PACKAGE, "node_modules/zod"), join(folder, "node_modules/zod"), { recursive: true });
    await cp(join(PACKAGE, "dist/test/support", `${program}.js`), join(folder, "program.mjs"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
