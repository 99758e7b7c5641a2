// The tasks of 2026-07-28 as their own package calls them: `ext-tasks` on `client` 2.x, whose codecs
// do not know them, so that requests go by a door of ours.

import * as common from "./play.mjs";
import { asked, headers, need, play, print } from "./play.mjs";

const { Client, StreamableHTTPClientTransport } = need("@modelcontextprotocol/client");
// The package has no door for `require`, so its place is made from that of a neighbour.
const here = `${process.env.MCP_PEERS}/@modelcontextprotocol/ext-tasks/dist/client/index.js`;
const { createTaskSessionFromClient, resultFromTaskOutcome } = await import(here);

const VERSION = "2026-07-28";
const url = new URL(process.env.WHARF_MCP);
const clientInfo = { name: "client-tasks", version: "0.2.2" };
const client = new Client(clientInfo, {
  capabilities: common.capabilities,
  versionNegotiation: { mode: { pin: VERSION } },
});
await client.connect(new StreamableHTTPClientTransport(url, common.http));

// The last event of a stream, or the body itself.
async function answerOf(response) {
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text);
  const lines = text.split("\n").filter((line) => line.startsWith("data:"));
  return JSON.parse(lines.at(-1).slice("data:".length));
}

let requests = 0;
const rawDispatch = async (request) => {
  requests += 1;
  const { name, uri, taskId } = request.params ?? {};
  const named = request.method.startsWith("tasks/") ? taskId : (name ?? uri);
  const response = await fetch(url, {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": VERSION,
      "mcp-method": request.method,
      ...(named === undefined ? {} : { "mcp-name": named }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: requests, ...request }),
  });
  const { result, error } = await answerOf(response);
  return error ? { kind: "error", error } : { kind: "result", result };
};

const extensions = { "io.modelcontextprotocol/tasks": {} };
const session = createTaskSessionFromClient(client, {
  endpointId: "wharf",
  rawDispatch,
  v2RequestFraming: {
    protocolVersion: VERSION,
    clientInfo,
    clientCapabilities: { ...common.capabilities, extensions },
  },
  onInputRequest: async (request) => {
    print({ asked: request.params?.message ?? request });
    return asked.answer;
  },
});

await play({
  task: async ({ name, arguments: inputs }) => {
    const execution = await session.callTool(name, inputs);
    const { outcome } = await execution.settle();
    if (outcome.task) print({ task: outcome.task.taskId, status: outcome.status });
    return resultFromTaskOutcome(outcome);
  },
});
