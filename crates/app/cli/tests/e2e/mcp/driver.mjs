// What the referee starts as "the client": Wharf's command line beside a core that is up.
//
//   WHARF_BIN=… WHARF_HOME=… MCP_CONFORMANCE_SCENARIO=… node driver.mjs URL
//
// It adds the server at the URL, approves it, lists its tools, and runs what the scenario asks for:
// the first tool with a=2 and b=3 where it asks for nothing in particular.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { login } from "./driver/login.mjs";

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const url = process.argv.at(-1);
const name = `s${randomBytes(5).toString("hex")}`;

// Runs the command line to its end.
const wharf = (...words) => wharf.told("", ...words);

// The same with something on standard input.
wharf.told = (input, ...words) => {
  const { WHARF_BIN, WHARF_URL, WHARF_TOKEN, ...env } = process.env;
  return new Promise((resolve) => {
    const child = execFile(WHARF_BIN, words, { env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      console.log(`$ wharf ${words.join(" ")}\n${stdout}${stderr}`);
      resolve({ code: error ? (error.code ?? 1) : 0, stdout, stderr });
    });
    // Whoever ends without reading is no failure of the driver.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
};

// Runs it to an end that must be a good one.
async function must(...words) {
  const ended = await wharf(...words);
  if (ended.code !== 0) throw new Error(`wharf ${words.join(" ")}: ${ended.stderr}`);
  return ended;
}

const json = async (...words) => JSON.parse((await must(...words, "--json")).stdout);
const items = (listed) => listed.items ?? listed;

async function until(what, look) {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(100)) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`waited in vain for ${what}`);
}

const mine = async () =>
  items(await json("tools")).filter(
    (tool) => tool.tool_id.startsWith(`${name}/`) && tool.state !== "quarantined",
  );
const run = (tool, inputs, ...more) =>
  must("run", `${name}/${tool}`, "--input", JSON.stringify(inputs), ...more);

// Runs a tool and answers what it asks; `meanwhile` happens while the question is open.
async function answering(tool, value, meanwhile = () => {}) {
  const running = run(tool, {});
  const isOver = running.then(
    () => true,
    () => true,
  );
  const asked = await until(`the question of ${tool}`, async () => {
    if (await Promise.race([isOver, sleep(50, false)])) return "nothing";
    return items(await json("inbox")).find((ask) => JSON.stringify(ask).includes(`${name}/${tool}`));
  });
  if (asked !== "nothing") {
    await meanwhile();
    await must("answer", asked.ask_id, "--value", JSON.stringify(value));
  }
  await running;
}

// Here it is only looked at how Wharf connects and lists; there may be nothing to run.
const QUIET = ["initialize", "json-schema-ref-no-deref", "request-metadata"];

const scenarios = {
  "json-schema-2020-12-preservation": async () => {
    const { input_schema } = await json("tools", "show", `${name}/json_schema_2020_12_tool`);
    await run("json_schema_echo", { schema: input_schema });
  },
  "elicitation-sep1034-client-defaults": () => answering("test_client_elicitation_defaults", {}),
  "http-custom-headers": async () => {
    // What is null fits no schema of theirs: it is left out, as a person would.
    const said = (inputs) => Object.entries(inputs).filter(([, value]) => value !== null);
    for (const { name, arguments: inputs } of context.toolCalls) {
      await run(name, Object.fromEntries(said(inputs)));
    }
  },
  "http-standard-headers": async (tools) => {
    for (const { tool_id } of tools) await must("run", tool_id);
    await wharf("run", `${name}/resources.read`, "uri=file:///path/to/file%20name.txt");
    await wharf("run", `${name}/prompts.get`, "name=test_prompt");
  },
  "http-invalid-tool-headers": async () => {
    // Everything in the catalog, whatever its state is said to be.
    for (const { tool_id } of items(await json("tools"))) {
      if (tool_id.startsWith(`${name}/`)) await wharf("run", tool_id, "region=eu");
    }
  },
  "sep-2322-client-request-state": async () => {
    const confirmed = { confirmed: true };
    await answering("test_mrtr_echo_state", confirmed, () => run("test_mrtr_unrelated", {}));
    await answering("test_mrtr_no_state", confirmed);
    await run("test_mrtr_no_result_type", {});
  },
};

async function first(tools) {
  const { tool_id } = tools.toSorted((a, b) => (a.tool_id < b.tool_id ? -1 : 1))[0];
  const { input_schema } = await json("tools", "show", tool_id);
  const known = Object.keys(input_schema?.properties ?? {});
  const sums = ["a=2", "b=3"].filter((pair) => known.length === 0 || known.includes(pair[0]));
  await must("run", tool_id, ...sums);
}

async function main() {
  const isLogin = scenario.startsWith("auth/");
  const options = isLogin ? await login.options(context, wharf) : [];
  await must("mcp", "add", name, "--url", url, "--accept-new", ...options);
  if (isLogin) return login.through({ name, wharf, must, mine, until });
  if (QUIET.includes(scenario)) {
    await must("mcp", "approve", name, "--all", "--detach");
    await until("a connection", async () => (await json("mcp", "show", name)).state === "running");
    return wharf("mcp", "refresh", name);
  }
  await must("mcp", "approve", name, "--all");
  const tools = await until("tools", async () => {
    const tools = await mine();
    return tools.length > 0 && tools;
  });
  return (scenarios[scenario] ?? first)(tools);
}

main()
  .catch((error) => {
    console.error(`the driver failed: ${error.message}`);
    process.exitCode = 1;
  })
  .finally(async () => {
    await wharf("mcp", "stop", name);
    await wharf("mcp", "remove", name);
  });
