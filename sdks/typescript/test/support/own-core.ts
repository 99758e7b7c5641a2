/** A core that a test starts itself, with settings of its own. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface OwnCore {
  url: string;
  token: string;
  home: string;
}

/** Starts a core with these arguments in a home of its own, and ends it afterwards. */
export async function ownCore(program: string, args: string[], body: (core: OwnCore) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "wharf-home-"));
  const core = spawn(program, ["up", "--home", home, "--listen", "127.0.0.1:0", ...args], { stdio: "ignore" });
  try {
    await body({ ...(await ready(join(home, "run"))), home });
  } finally {
    core.kill();
    await once(core, "exit");
    await rm(home, { recursive: true, force: true });
  }
}

async function ready(folder: string): Promise<Omit<OwnCore, "home">> {
  for (;;) {
    try {
      const { http } = JSON.parse(await readFile(join(folder, "core.json"), "utf8"));
      return { url: http, token: (await readFile(join(folder, "owner.token"), "utf8")).trim() };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
