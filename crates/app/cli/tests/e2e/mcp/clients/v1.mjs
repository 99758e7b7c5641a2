// The first generation of the TypeScript SDK: `sdk` 1.x, which knows the tasks of 2025-11-25.

import { setTimeout as sleep } from "node:timers/promises";

import * as common from "./play.mjs";
import { asked, need, patient, play, print } from "./play.mjs";

const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
const http = need("@modelcontextprotocol/sdk/client/streamableHttp.js");
const stdio = need("@modelcontextprotocol/sdk/client/stdio.js");
const types = need("@modelcontextprotocol/sdk/types.js");

const client = new Client(
  { name: "client-v1", version: "1.32.2" },
  { capabilities: common.capabilities },
);
if (asked.answer) client.setRequestHandler(types.ElicitRequestSchema, common.elicited);
if (asked.sample) client.setRequestHandler(types.CreateMessageRequestSchema, common.sampled);
if (asked.roots) client.setRequestHandler(types.ListRootsRequestSchema, common.rooted);

const transport = asked.stdio
  ? new stdio.StdioClientTransport({
      command: asked.stdio[0],
      args: asked.stdio.slice(1),
      env: process.env,
    })
  : new http.StreamableHTTPClientTransport(new URL(process.env.WHARF_MCP), common.http);
await client.connect(transport);
const { tasks } = client.experimental;

const result = (taskId) => tasks.getTaskResult(taskId, types.CallToolResultSchema, patient);

// A question about a task that falls into the core's absence ends this client's stream, and not the
// task: it comes back with its id.
async function comesBack(taskId, error) {
  for (let tries = 0; tries < 300 && /fetch failed/.test(error.message); tries += 1) {
    await sleep(200);
    try {
      return await result(taskId);
    } catch (again) {
      error = again;
    }
  }
  throw error;
}

await play({
  about: () => ({
    version: transport.protocolVersion,
    server: client.getServerVersion(),
    session: transport.sessionId,
  }),
  tools: async () => (await client.listTools()).tools.map(({ name }) => name),
  tool: async ({ name }) => (await client.listTools()).tools.find((tool) => tool.name === name),
  call: (params) => {
    const onprogress = ({ message }) => print({ progress: message ?? "" });
    return client.callTool(params, undefined, { ...patient, onprogress });
  },
  resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
  read: (params) => client.readResource(params),
  prompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
  prompt: (params) => client.getPrompt(params),
  complete: (params) => client.complete(params),
  // A call as a task, to its end.
  task: async (params) => {
    await client.listTools();
    const options = { ...patient, task: { ttl: 600_000 } };
    const schema = types.CallToolResultSchema;
    let last, taskId;
    for await (const message of tasks.callToolStream(params, schema, options)) {
      if (message.type === "taskCreated") {
        taskId = message.task.taskId;
        print({ task: message.task });
      }
      if (message.type === "taskStatus") print({ status: message.task.status });
      last = message;
    }
    return last.type === "error" ? comesBack(taskId, last.error) : last.result;
  },
  // A call as a task that nobody waits for.
  begin: async (params) => {
    const request = { method: "tools/call", params: { ...params, task: { ttl: 600_000 } } };
    return client.request(request, types.CreateTaskResultSchema, patient);
  },
  get: ({ taskId }) => tasks.getTask(taskId),
  result: ({ taskId }) => result(taskId),
  list: () => tasks.listTasks(),
  stop: ({ taskId }) => tasks.cancelTask(taskId),
  line: common.line,
});
