// The second generation of the TypeScript SDK: `client` 2.x, in the modes legacy, auto and pinned.

import * as common from "./play.mjs";
import { asked, need, patient, play, print } from "./play.mjs";

const { Client, StreamableHTTPClientTransport } = need("@modelcontextprotocol/client");
const { StdioClientTransport } = need("@modelcontextprotocol/client/stdio");

const pinned = asked.mode === "modern" ? { pin: "2026-07-28" } : asked.mode;
const client = new Client(
  { name: "client-v2", version: "2.4.0" },
  { capabilities: common.capabilities, versionNegotiation: { mode: pinned ?? "legacy" } },
);
if (asked.answer) client.setRequestHandler("elicitation/create", common.elicited);
if (asked.sample) client.setRequestHandler("sampling/createMessage", common.sampled);
if (asked.roots) client.setRequestHandler("roots/list", common.rooted);

const changed = {};
const changes = new Map();
for (const what of ["tools", "prompts", "resources"]) {
  changes.set(what, new Promise((resolve) => (changed[what] = resolve)));
  client.setNotificationHandler(`notifications/${what}/list_changed`, () => changed[what]());
}

const transport = asked.stdio
  ? new StdioClientTransport({
      command: asked.stdio[0],
      args: asked.stdio.slice(1),
      env: process.env,
    })
  : new StreamableHTTPClientTransport(new URL(process.env.WHARF_MCP), common.http);
await client.connect(transport);

const call = (params, options = patient) => {
  const onprogress = ({ message }) => print({ progress: message ?? "" });
  return client.callTool(params, { ...options, onprogress });
};

await play({
  about: () => ({
    version: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion(),
    instructions: client.getInstructions(),
    session: transport.sessionId,
  }),
  tools: async () => (await client.listTools()).tools.map(({ name }) => name),
  tool: async ({ name }) => (await client.listTools()).tools.find((tool) => tool.name === name),
  call,
  // Repeats a call until an answer comes, as the key in it allows. A stream that breaks is no end to
  // this client: it waits for its own time limit.
  persist: async (params) => {
    for (;;) {
      try {
        return await call(params, { timeout: 3_000 });
      } catch (error) {
        print({ again: error.message });
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  },
  cancel: async (params) => {
    const leave = new AbortController();
    setTimeout(() => leave.abort("enough"), params.after);
    const { name, arguments: inputs } = params;
    await client.callTool({ name, arguments: inputs }, { ...patient, signal: leave.signal });
  },
  resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
  templates: async () => (await client.listResourceTemplates()).resourceTemplates,
  read: (params) => client.readResource(params),
  prompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
  prompt: (params) => client.getPrompt(params),
  complete: (params) => client.complete(params),
  listen: async (filter) => {
    const subscription = await client.listen(filter);
    subscription.closed?.then?.(() => print({ closed: true }));
    return subscription.honored ?? null;
  },
  changed: async ({ what }) => changes.get(what),
  line: common.line,
});
