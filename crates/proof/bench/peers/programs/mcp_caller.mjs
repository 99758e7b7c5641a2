// A client of MCP that calls: `node mcp_caller.mjs MODULES ENDPOINT`. It takes commands as the
// callers in Python do (loop.py): one a line, an answer for each.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, given] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const sdk = (name) => load(`@modelcontextprotocol/sdk/${name}.js`);
const { Client } = sdk("client/index");

const endpoint = JSON.parse(given);
const run = `${process.pid.toString(36)}x${Date.now().toString(36)}`;
let numbers = 0;

function transport() {
  if (endpoint.stdio) {
    const { StdioClientTransport } = sdk("client/stdio");
    const [command, ...args] = endpoint.stdio;
    return new StdioClientTransport({ command, args });
  }
  const { StreamableHTTPClientTransport } = sdk("client/streamableHttp");
  const headers = endpoint.token ? { authorization: `Bearer ${endpoint.token}` } : {};
  return new StreamableHTTPClientTransport(new URL(endpoint.url), { requestInit: { headers } });
}

const client = new Client({ name: "bench", version: "1" });

async function call(text) {
  const params = { name: "echo", arguments: { text } };
  if (endpoint.token) {
    params._meta = { "dev.wharf/run": { durability: endpoint.durability ?? "memory" } };
  }
  const result = await client.callTool(params);
  return result.isError ? JSON.stringify(result.content) : result.content[0]?.text;
}

async function measure({ callers, seconds }) {
  const took = [];
  let [wrong, failed, why] = [0, 0, ""];
  const begin = performance.now();
  const end = begin + seconds * 1e3;
  const caller = async () => {
    while (performance.now() < end && failed === 0) {
      const text = `t${run}x${++numbers}`;
      const asked = performance.now();
      try {
        const answer = await call(text);
        if (answer === text) took.push(performance.now() - asked);
        else {
          wrong += 1;
          why ||= `${text} became ${answer}`.slice(0, 300);
        }
      } catch (error) {
        failed += 1;
        why ||= String(error).slice(0, 300);
      }
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const passed = (performance.now() - begin) / 1e3;
  took.sort((one, other) => one - other);
  const at = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0;
  const figures = { p50_ms: at(0.5), p99_ms: at(0.99), per_second: took.length / passed };
  return { calls: took.length, wrong, failed, why, ...figures };
}

await client.connect(transport());
await client.listTools();
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await measure(JSON.parse(line))));
}
process.exit(0);
