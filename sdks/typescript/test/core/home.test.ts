/** A core that is found by its home, and one that speaks TLS with a certificate nobody vouches for. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { connect, connectOperative, scope, tool, type ConnectOptions } from "wharf-sdk";
import { ownCore } from "../support/own-core.js";
import { fails } from "../support/waiting.js";

// The certificate is for another name than the address, as its home's core is trusted under any.
const TLS = fileURLToPath(new URL("../../../../python/tests/tls/", import.meta.url));
const SECURE = ["--tls-cert", join(TLS, "core.pem"), "--tls-key", join(TLS, "core.key")];
const SHORT = { backoff: { firstMs: 20 } };

/** Runs it with these variables and without others of the kind. */
async function within(variables: Record<string, string>, body: () => Promise<void>): Promise<void> {
  const before = { ...process.env };
  for (const name of Object.keys(process.env)) if (name.startsWith("WHARF_")) delete process.env[name];
  Object.assign(process.env, variables);
  try {
    await body();
  } finally {
    process.env = before;
  }
}

async function echoes(url: string | undefined, options: ConnectOptions): Promise<unknown> {
  const transport = await (url === undefined ? connect(options) : connect(url, options));
  try {
    return await scope(transport).call("wharf/echo", { text: "sealed" });
  } finally {
    await transport.close();
  }
}

const program = process.env["WHARF_BIN"];
const skip = program ? false : "WHARF_BIN names no program";

for (const args of [[], SECURE]) {
  const how = args.length > 0 ? "over_tls" : "plainly";
  test(`k033_a_core_is_found_by_its_home_and_reached_${how}`, { skip }, () =>
    ownCore(program!, args, async ({ home, url }) => {
      await within({ WHARF_HOME: home }, async () => {
        for (const via of ["websocket", "events"] as const) {
          assert.deepEqual(await echoes(undefined, { via }), { text: "sealed" });
          assert.deepEqual(await echoes(url, { via }), { text: "sealed" });
        }
        const Hello = tool({ name: "hello", description: "Greets.", input: {}, output: {}, run: () => ({ hello: "you" }) });
        const operative = connectOperative({ provider: `ts-${how}`, tools: [Hello], ...SHORT });
        assert.deepEqual(await operative.ready, [`ts-${how}/hello`]);
        await operative.close();
        // The owner's token goes to the home's own address only, and so does the trust in its certificate.
        const elsewhere = url.replace("127.0.0.1", "localhost");
        if (args.length === 0) await fails(() => echoes(elsewhere, {}), "auth.required");
        else await assert.rejects(echoes(elsewhere, {}), /self-signed|certificate/i);
      });
      await within({}, async () => assert.deepEqual(await echoes(undefined, { home }), { text: "sealed" }));
    }));
}

test("k033_a_core_with_another_certificate_gets_no_token", { skip }, () =>
  ownCore(program!, SECURE, async ({ url, token }) => {
    const trying = (options: ConnectOptions = {}): Promise<unknown> => echoes(url, { token, home: "/nowhere", ...options });
    await within({}, async () => assert.rejects(trying(), /certificate|self-signed|connection/i));
    await within({ WHARF_CA: join(TLS, "core.pem") }, async () => {
      for (const via of ["websocket", "events"] as const) assert.deepEqual(await trying({ via }), { text: "sealed" });
    });
    await within({ WHARF_CA: join(TLS, "other.pem") }, async () => {
      for (const via of ["websocket", "events"] as const) await assert.rejects(trying({ via }), { code: "transport.lost" });
    });
    await within({ WHARF_CA: join(TLS, "core.key") }, async () => {
      await assert.rejects(trying(), { code: "config.invalid" });
    });
  }));

test("k033_where_no_core_runs_that_is_said", { skip }, async () => {
  const home = await mkdtemp(join(tmpdir(), "wharf-home-"));
  try {
    await within({ WHARF_HOME: home }, async () => {
      await assert.rejects(connect(), { code: "transport.lost", message: `No core runs with the home ${home}. Start one with: wharf up` });
    });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
