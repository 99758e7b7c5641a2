// A server of MCP that gives a text back: `node mcp_server.mjs MODULES stdio|http`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [modules, way] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const sdk = (name) => load(`@modelcontextprotocol/sdk/${name}.js`);
const { Server } = sdk("server/index");
const { CallToolRequestSchema, ListToolsRequestSchema } = sdk("types");

const ECHO = {
  name: "echo",
  description: "Gives a text back.",
  annotations: { readOnlyHint: true },
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};

function echoing() {
  const server = new Server({ name: "echo", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [ECHO] }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: params.arguments.text }],
  }));
  return server;
}

if (way === "stdio") {
  const { StdioServerTransport } = sdk("server/stdio");
  await echoing().connect(new StdioServerTransport());
} else {
  const { StreamableHTTPServerTransport } = sdk("server/streamableHttp");
  const sessions = new Map();
  const server = createServer(async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: true,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await echoing().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  server.listen(0, "127.0.0.1", () => {
    console.log(`listening on http://127.0.0.1:${server.address().port}/mcp`);
  });
}
