/** The core that tests run against: one that is up, named by WHARF_URL and WHARF_TOKEN. */

import assert from "node:assert/strict";
import { test } from "node:test";

export interface Core {
  url: string;
  /** The owner's token. */
  token: string;
  /** Calls the core's HTTP interface. */
  api(path: string, body?: unknown): Promise<any>;
}

/** Names of providers must differ between tests, which share a core. */
let counted = 0;
export const freshName = (): string => `ts-${process.pid.toString(36)}-${(counted += 1)}`;

export function coreFromEnvironment(): Core | undefined {
  const { WHARF_URL: url, WHARF_TOKEN: token } = process.env;
  if (!url || !token) return undefined;
  return {
    url,
    token,
    async api(path, body) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
      const response = await fetch(new URL(path, url), init);
      const text = await response.text();
      assert.ok(response.ok, `${path}: ${response.status} ${text}`);
      return text === "" ? undefined : JSON.parse(text);
    },
  };
}

/** A test that needs a core. Without one it is skipped, and says so. */
export function coreTest(name: string, body: (core: Core) => Promise<void>): void {
  const core = coreFromEnvironment();
  if (core) test(name, () => body(core));
  else test(name, { skip: "WHARF_URL and WHARF_TOKEN name no core" }, () => {});
}

/** The open question with this title. */
export async function question(core: Core, title: string): Promise<any> {
  let found: any;
  let items: any[] = [];
  for (let tries = 0; tries < 400 && !found; tries += 1) {
    items = (await core.api("/v1/inbox?kind=question")).items;
    found = items.find((item) => item.title === title);
    if (!found) await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.ok(found, `no question ${title} among ${JSON.stringify(items)}`);
  return found;
}
