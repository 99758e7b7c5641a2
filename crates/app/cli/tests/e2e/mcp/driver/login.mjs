// Logging in to a server of the referee: the person's browser is one request that follows where it
// is sent.

import { spawn } from "node:child_process";
import { mkdirSync, rmdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

// Follows an address as a browser does, up to the page that the command line itself serves.
async function browse(address) {
  for (let hops = 0; hops < 10; hops += 1) {
    const answer = await fetch(address, { redirect: "manual" });
    const next = answer.headers.get("location");
    if (next === null) return answer.text();
    address = new URL(next, address).href;
  }
  throw new Error("too many redirects");
}

// One person logs in at a time, however many drivers the referee has started.
async function alone(work) {
  const lock = `${process.env.WHARF_HOME}.login`;
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch {
      await sleep(50);
    }
  }
  try {
    return await work();
  } finally {
    rmdirSync(lock);
  }
}

// `wharf mcp login`, with a browser that does what it is shown.
function loggedIn(name) {
  const { WHARF_BIN, WHARF_URL, WHARF_TOKEN, ...env } = process.env;
  const child = spawn(WHARF_BIN, ["mcp", "login", name, "--no-browser"], { env });
  let said = "";
  let opened = false;
  const hear = (piece) => {
    said += piece;
    // The address is whole once something follows it.
    const address = /(https?:\/\/\S+\?\S*)\s/.exec(said)?.[1];
    if (opened || address === undefined) return;
    opened = true;
    browse(address).catch((error) => (said += `browser: ${error.message}\n`));
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  return new Promise((resolve) => {
    child.on("close", (code) => {
      console.log(`$ wharf mcp login ${name}\n${said}`);
      resolve({ code: code ?? 1, said });
    });
  });
}

// Where the referee says that a client's document is.
const DOCUMENT = "https://conformance-test.local/client-metadata.json";
// How often somebody logs in before they give up.
const LOGINS_MAX = 3;
const ENDED = ["succeeded", "failed", "refused", "canceled"];

export const login = {
  // What the server is added with.
  options: async (context, wharf) => {
    const isDocument = process.env.MCP_CONFORMANCE_SCENARIO === "auth/basic-cimd";
    if (isDocument) return ["--oauth-client-id", DOCUMENT];
    if (context.client_id === undefined) return [];
    const id = ["--oauth-client-id", context.client_id];
    if (context.client_secret === undefined) return id;
    const secret = `S_${context.client_id}`.replace(/[^A-Za-z0-9_]/g, "_").toUpperCase();
    await wharf.told(context.client_secret, "secret", "set", secret);
    return [...id, "--oauth-client-secret", secret];
  },

  // Adds nothing: approves, logs in, lists and runs. A server of which a run that went well may be
  // the last one that its login is good for is called twice.
  through: async ({ name, wharf, must, mine, until }) => {
    await wharf("mcp", "approve", name, "--all", "--detach");
    let logins = 0;
    const logIn = async () => {
      if ((logins += 1) > LOGINS_MAX) throw new Error("too many logins");
      const { code, said } = await alone(() => loggedIn(name));
      if (code !== 0) throw new Error(said);
    };
    let tools = [];
    while (tools.length === 0) {
      await logIn();
      // Whether a login is enough is known once the server has listed its tools, or refused to.
      tools = await until("tools", async () => {
        const { state } = JSON.parse((await must("mcp", "show", name, "--json")).stdout);
        const tools = await mine();
        return (tools.length > 0 || state === "unhealthy") && tools;
      });
    }
    const moves = process.env.MCP_CONFORMANCE_SCENARIO === "auth/authorization-server-migration";
    for (let runs = moves ? 2 : 1; runs > 0; runs -= 1) {
      await run(tools[0].tool_id, { must, until, logIn });
    }
  },
};

// Runs a tool to a good end, with a login whenever the run waits for one.
async function run(tool, { must, until, logIn }) {
  const { run_id } = JSON.parse((await must("run", tool, "--detach", "--json")).stdout);
  const status = async () => JSON.parse((await must("runs", "show", run_id, "--json")).stdout).status;
  for (;;) {
    const now = await until(`the end of ${tool}`, async () => {
      const now = await status();
      return [...ENDED, "waiting"].includes(now) && now;
    });
    if (now === "succeeded") return;
    if (now !== "waiting") throw new Error(`${tool} ${now}`);
    await logIn();
    // The question goes with the attempt that asked it.
    await until("another attempt", async () => (await status()) !== "waiting");
  }
}
