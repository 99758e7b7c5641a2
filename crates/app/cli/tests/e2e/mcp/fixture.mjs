// The MCP server that stands behind Wharf when the referee tries Wharf:
//
//   node fixture.mjs --era legacy|modern [--http PORT]
//
// It has no library of anybody's below it, Wharf's neither: what it knows of the protocol it knows
// by itself, so that a misreading does not cancel out between two ends.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { answered, checkMeta, failure, initialized, legacyResult } from "./fixture/answer.mjs";
import { listen, modernResult } from "./fixture/answer.mjs";
import { argument, MODERN, RpcError, VERSION } from "./fixture/era.mjs";
import { listeners } from "./fixture/listeners.mjs";
import { tools } from "./fixture/offers.mjs";

if (argument("--http") === undefined) overStdio();
else overHttp(Number(argument("--http")));

// ---- stdio

function overStdio() {
  const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  const send = (message) => write({ jsonrpc: "2.0", ...message });
  let capabilities;
  if (!MODERN) listeners.add((what) => send({ method: `notifications/${what}/list_changed` }));
  const result = async (message) => {
    if (MODERN) {
      checkMeta(message);
      return modernResult(message, send);
    }
    if (message.method !== "initialize") return legacyResult(message, send, capabilities);
    capabilities = message.params?.capabilities;
    return initialized(message);
  };
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => {
    const message = JSON.parse(line);
    if (message.method === undefined) return answered(message);
    if (message.id === undefined) return;
    try {
      if (MODERN && message.method === "subscriptions/listen") {
        checkMeta(message);
        return listen(message, send, () => {});
      }
      send({ id: message.id, result: await result(message) });
    } catch (error) {
      write(failure(message.id, error));
    }
  });
  lines.on("close", () => process.exit(0));
}

// ---- HTTP

const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
const differ = () => new RpcError(-32020, "Headers and body differ.", undefined, 400);

// One request of a client and the ways it is answered.
class Exchange {
  constructor(request, response) {
    Object.assign(this, { request, response, headers: request.headers });
  }

  json(status, body, more) {
    this.response.writeHead(status, { "content-type": "application/json", ...more });
    this.response.end(JSON.stringify(body));
  }

  empty(status, more) {
    this.response.writeHead(status, more).end();
  }

  // Says something before the answer, which makes the answer a stream.
  send(message) {
    this.open();
    const id = MODERN ? "" : `id: ${randomUUID()}\n`;
    this.response.write(`${id}data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  }

  open() {
    if (this.response.headersSent) return;
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
    this.response.writeHead(200, headers);
  }

  end(id, result) {
    if (!this.response.headersSent) return this.json(200, { jsonrpc: "2.0", id, result });
    this.send({ id, result });
    return this.response.end();
  }

  fail(id, error) {
    const body = failure(id, error);
    if (!this.response.headersSent) return this.json(MODERN ? (error.status ?? 200) : 200, body);
    this.response.write(`data: ${JSON.stringify(body)}\n\n`);
    return this.response.end();
  }

  isLocal() {
    const { host = "", origin } = this.headers;
    const from = origin?.replace(/^https?:\/\//, "");
    return LOCAL.test(host) && (!origin || LOCAL.test(from));
  }

  async body() {
    let text = "";
    for await (const piece of this.request) text += piece;
    return text;
  }
}

function overHttp(port) {
  const sessions = new Map();
  const server = createServer(async (request, response) => {
    const exchange = new Exchange(request, response);
    if (!exchange.isLocal()) {
      return exchange.json(403, failure(null, new RpcError(-32600, "Forbidden host or origin.")));
    }
    if (request.method !== "POST") return withoutBody(exchange, sessions);
    let message;
    try {
      message = JSON.parse(await exchange.body());
    } catch {
      return exchange.json(400, failure(null, new RpcError(-32700, "Not JSON.")));
    }
    try {
      return await (MODERN ? modernPost : legacyPost)(exchange, message, sessions);
    } catch (error) {
      return exchange.fail(message.id, error);
    }
  });
  server.listen(port, "127.0.0.1", () => {
    console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`);
  });
}

function withoutBody(exchange, sessions) {
  const { request } = exchange;
  if (MODERN) return exchange.empty(405, { allow: "POST" });
  const id = exchange.headers["mcp-session-id"];
  if (request.method === "DELETE") return exchange.empty(sessions.delete(id) ? 204 : 404);
  if (!sessions.has(id)) return exchange.empty(id ? 404 : 400);
  exchange.open();
  exchange.response.write(": open\n\n");
  const listener = (what) => exchange.send({ method: `notifications/${what}/list_changed` });
  listeners.add(listener);
  return request.on("close", () => listeners.delete(listener));
}

async function legacyPost(exchange, message, sessions) {
  if (message.method === "initialize") {
    const id = randomUUID();
    sessions.set(id, message.params?.capabilities ?? {});
    const body = { jsonrpc: "2.0", id: message.id, result: initialized(message) };
    return exchange.json(200, body, { "mcp-session-id": id });
  }
  const session = exchange.headers["mcp-session-id"];
  if (!sessions.has(session)) {
    const error = new RpcError(-32600, "No session.");
    return exchange.json(session ? 404 : 400, failure(message.id, error));
  }
  if (message.method === undefined) answered(message);
  if (message.method === undefined || message.id === undefined) return exchange.empty(202);
  const send = (said) => exchange.send(said);
  return exchange.end(message.id, await legacyResult(message, send, sessions.get(session)));
}

async function modernPost(exchange, message) {
  if (message.method === undefined) {
    return exchange.json(400, failure(message.id, new RpcError(-32600, "No responses here.")));
  }
  if (message.id === undefined) return exchange.empty(202);
  checkMeta(message, exchange.headers["mcp-protocol-version"] ?? "");
  checkHeaders(exchange.headers, message);
  const send = (said) => exchange.send(said);
  if (message.method === "subscriptions/listen") {
    return listen(message, send, (end) => exchange.request.socket.on("close", end));
  }
  return exchange.end(message.id, await modernResult(message, send));
}

// What a header says, which may be encoded; nothing if it is encoded badly.
function plain(header) {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(header ?? "")?.[1];
  if (encoded === undefined) return header;
  const bytes = Buffer.from(encoded, "base64");
  const bare = (text) => text.replace(/=+$/, "");
  return bare(bytes.toString("base64")) === bare(encoded) ? bytes.toString() : undefined;
}

function checkHeaders(headers, { method, params }) {
  const { name, uri, taskId } = params;
  const names = { "tools/call": name, "prompts/get": name, "resources/read": uri };
  const ofTask = ["tasks/get", "tasks/update", "tasks/cancel"].includes(method);
  const named = ofTask ? taskId : names[method];
  if (headers["mcp-protocol-version"] !== VERSION || headers["mcp-method"] !== method) {
    throw differ();
  }
  if (named !== undefined && plain(headers["mcp-name"]) !== named) throw differ();
  if (method !== "tools/call") return;
  const properties = tools[name]?.definition.inputSchema.properties ?? {};
  for (const [key, { "x-mcp-header": header }] of Object.entries(properties)) {
    if (header === undefined) continue;
    const sent = headers[`mcp-param-${header.toLowerCase()}`];
    const value = params.arguments?.[key];
    const isAbsent = value === undefined || value === null;
    const same = (said) =>
      typeof value === "number" ? Number(said) === value : said === String(value);
    if (isAbsent ? sent !== undefined : sent === undefined || !same(plain(sent))) throw differ();
  }
}
