// A server on the second generation of the TypeScript SDK, `server` 2.x, on standard streams:
//
//   node v2.mjs NODE_MODULES

import { createRequire } from "node:module";

const need = createRequire(`${process.argv[2]}/`);
const { acceptedContent, inputRequired, McpServer } = need("@modelcontextprotocol/server");
const { serveStdio } = need("@modelcontextprotocol/server/stdio");
const z = need("zod");

const text = (said) => ({ content: [{ type: "text", text: said }] });

serveStdio(() => {
  const server = new McpServer(
    { name: "deployer", version: "1.0.0" },
    { capabilities: { tools: {} } },
  );
  const sum = { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) };
  server.registerTool("add", { description: "Adds.", ...sum }, ({ a, b }) => ({
    ...text(String(a + b)),
    structuredContent: { sum: a + b },
  }));
  const deploy = { description: "Deploys.", inputSchema: z.object({ env: z.string() }) };
  server.registerTool("deploy", deploy, async ({ env }, ctx) => {
    const schema = z.object({ confirm: z.boolean() });
    const said = acceptedContent(ctx.mcpReq.inputResponses, "confirm", schema);
    if (said?.confirm === true) return text(`deployed to ${env}`);
    const confirm = inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema: schema });
    return inputRequired({ inputRequests: { confirm } });
  });
  return server;
});
