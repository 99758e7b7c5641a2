/** Where the core is: what the environment says, else the core of this machine. */

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface Core {
  url: string;
  token: string;
}

export function findCore(env: NodeJS.ProcessEnv = process.env): Core {
  const data = env["XDG_DATA_HOME"]?.startsWith("/") ? env["XDG_DATA_HOME"] : join(homedir(), ".local", "share");
  const run = join(env["WHARF_HOME"] || join(data, "wharf"), "run");
  try {
    const url = env["WHARF_URL"] || JSON.parse(readFileSync(join(run, "core.json"), "utf8")).http;
    const token = env["WHARF_TOKEN"] || readFileSync(join(run, "owner.token"), "utf8").trim();
    return { url, token };
  } catch {
    throw new Error("No core runs here; start one with `wharf up`, or set WHARF_URL and WHARF_TOKEN.");
  }
}
