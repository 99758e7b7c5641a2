/** Where a core is, what lets one in, and whose certificate is taken for its own. */

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

import type { CoreOptions, FoundCore } from "../core.js";
import { Fault } from "../fault.js";
import { Trust, trustingFetch } from "./trust.js";
import { NodeWebSocket } from "./websocket.js";

/**
 * @internal A core by what was given, else by the environment, else by its home. The owner's token
 * goes to the home's own core only.
 */
export function findCore(given: string | URL | undefined, options: CoreOptions): FoundCore {
  const home = options.home || process.env["WHARF_HOME"] || usualHome();
  const own = addressOf(home);
  const url = bare(given ?? (process.env["WHARF_URL"] || own));
  if (!url) {
    throw new Fault("transport.lost", `No core runs with the home ${home}. Start one with: wharf up`, { retryable: true });
  }
  const isOwn = own !== undefined && bare(own) === url;
  const token = options.token ?? (process.env["WHARF_TOKEN"] || (isOwn ? ownersToken(home) : undefined));
  const trust = /^(https|wss):/i.test(url) ? Trust.of(process.env["WHARF_CA"], isOwn ? join(home, "run", "core.pem") : undefined) : undefined;
  if (!trust) return { url, token };
  const WebSocket = class extends NodeWebSocket {
    constructor(address: string, protocols?: string[]) {
      super(address, protocols, trust);
    }
  };
  return { url, token, WebSocket, fetch: trustingFetch(trust) };
}

function bare(url: string | URL | undefined): string {
  return url === undefined ? "" : String(url).replace(/\/+$/, "");
}

/** Where the core is that runs with a home, if one does. */
function addressOf(home: string): string | undefined {
  try {
    const { http } = JSON.parse(readFileSync(join(home, "run", "core.json"), "utf8")) as { http?: unknown };
    return typeof http === "string" ? http : undefined;
  } catch {
    return undefined;
  }
}

function ownersToken(home: string): string | undefined {
  const path = join(home, "run", "owner.token");
  try {
    return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
  } catch {
    return undefined;
  }
}

function usualHome(): string {
  const data = process.env["XDG_DATA_HOME"] ?? "";
  return join(isAbsolute(data) ? data : join(homedir(), ".local", "share"), "wharf");
}
