/** A tool as a server of its own, which a core starts or reaches elsewhere. Node only. */

import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { parseArgs } from "node:util";

import { Fault } from "../../fault.js";
import { Scope } from "../../scope.js";
import type { AnyTool } from "../../tool.js";
import { Accepted } from "../accept.js";
import { objectSchema } from "../values.js";
import type { Run, RunRequest } from "./run.js";
import { Runs } from "./runs.js";

/** How a tool is served. What the command line and the environment say comes first. */
export interface ServeToolOptions {
  /** Where calls run: its layers, implementations and transports apply. */
  scope?: Scope;
  /** The words of the command line, if not those of the process. */
  args?: string[];
}

/** A server that listens. */
export interface ToolServer {
  readonly url: string;
  /** Takes no more runs, and ends when those under way are over. */
  close(): Promise<void>;
}

const SUBPROTOCOL = "theory.run.v1";
const REFERENCE = /^[a-z0-9_-]+\/[a-z0-9_-]+@[0-9]+$/;
const FIRST_FRAME_MS = 10_000;
const DRAIN_MS = 5_000;

/**
 * Serves one tool over the run protocol.
 *
 * ```ts
 * await serveTool("acme/shout@1", Shout);
 * ```
 *
 * Understands `--port N` (or `PORT`), `--token-file FILE`, `--artifacts DIR`, `--allow-origin URL`
 * (or `WHARF_ALLOW_ORIGINS`) and `--schema`, which prints the schemas for the tool's manifest.
 */
export async function serveTool(reference: string, tool: AnyTool, options: ServeToolOptions = {}): Promise<ToolServer> {
  if (!REFERENCE.test(reference)) throw new Fault("request.invalid", `${reference} is no name of a tool: it looks like acme/shout@1.`);
  const scope = options.scope ?? new Scope();
  if (!scope.isLocal(tool)) throw new Fault("tool.not_found", `${tool.name} cannot be served: it has no implementation.`);
  const asked = settings(options.args ?? process.argv.slice(2));
  if (asked.schema) {
    const { input, output } = tool.schemas;
    process.stdout.write(`${JSON.stringify({ input_schema: objectSchema(input), output_schema: objectSchema(output) }, undefined, 2)}\n`);
    process.exit(0);
  }
  const digest = createHash("sha256").update(JSON.stringify([reference, tool.schemas, readOwnFile()])).digest("hex");
  const log = (id: string, error: unknown): void => console.error(id, error);
  const runs = new Runs({ reference, tool, scope, reach: { artifacts: asked.artifacts, origins: asked.origins }, log });
  const server = listenTo(runs, digest, asked.token);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(asked.port, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  console.log(`listening on ${url}`);
  const close = (): Promise<void> => drain(server, runs);
  process.once("SIGTERM", () => void close().then(() => process.exit(0)));
  return { url, close };
}

interface Settings {
  port: number;
  token: string | undefined;
  artifacts: string;
  origins: string[];
  schema: boolean;
}

function settings(args: string[]): Settings {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: "string" },
      "token-file": { type: "string" },
      artifacts: { type: "string" },
      "allow-origin": { type: "string", multiple: true },
      schema: { type: "boolean" },
    },
  });
  const origins = (process.env["WHARF_ALLOW_ORIGINS"] ?? "").split(",").map((origin) => origin.trim());
  const tokenFile = values["token-file"];
  return {
    port: Number(values.port ?? process.env["PORT"] ?? 0),
    token: tokenFile === undefined ? undefined : readFileSync(tokenFile, "utf8").trim(),
    artifacts: values.artifacts ?? "/artifacts",
    origins: [...origins.filter((origin) => origin !== ""), ...(values["allow-origin"] ?? [])],
    schema: values.schema ?? false,
  };
}

/** The program itself: another one is another tool. */
function readOwnFile(): string {
  try {
    return readFileSync(process.argv[1] ?? "", "utf8");
  } catch {
    return "";
  }
}

function listenTo(runs: Runs, digest: string, token: string | undefined): Server {
  const server = createServer((request, response) => {
    const answer = (status: number, body?: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(body === undefined ? undefined : JSON.stringify(body));
    };
    const path = (request.url ?? "").split("?")[0];
    if (path === "/run") return answer(426);
    if (path !== "/healthz") return answer(404);
    if (request.method !== "GET") return answer(405);
    answer(runs.draining ? 503 : 200, { ok: !runs.draining, digest });
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const refuse = (status: string): void => void socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
    const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",");
    socket.on("error", () => {});
    if ((request.url ?? "").split("?")[0] !== "/run") return refuse("404 Not Found");
    if (!mayEnter(request.headers.authorization, token)) return refuse("401 Unauthorized");
    const speaks = offered.some((name) => name.trim() === SUBPROTOCOL);
    if (!speaks || !request.headers["sec-websocket-key"]) return refuse("400 Bad Request");
    converse(runs, request, socket, head);
  });
  return server;
}

function mayEnter(header = "", token: string | undefined): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return token === undefined || timingSafeEqual(hash(header), hash(`Bearer ${token}`));
}

/** One connection: the first frame asks for a run, later ones may cancel it. */
function converse(runs: Runs, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  let run: Run | undefined;
  const connection = new Accepted(request, socket, head, SUBPROTOCOL, {
    message(text) {
      clearTimeout(patience);
      let frame: Record<string, any> | null;
      try {
        frame = JSON.parse(text);
      } catch {
        return connection.close(1007, "a frame is not JSON");
      }
      const { kind, control } = frame ?? {};
      if (run) {
        const own = control?.run_id === undefined || String(control.run_id) === run.id;
        if (kind === "Request" || ((kind === "Cancel" || kind === "Stepped") && !own)) return connection.close(1002, "one run for each connection");
        if (kind === "Cancel") run.stop("ERR_CANCELED");
        if (kind === "Stepped") run.stepped(frame ?? {});
        return;
      }
      if (kind !== "Request") return connection.close(1002, "the first frame is no Request");
      // Some languages write whole numbers where the protocol has text.
      const id: unknown = Number.isSafeInteger(control?.run_id) ? String(control.run_id) : control?.run_id;
      if (typeof id !== "string" || id === "") return connection.close(1008, "run_id is missing");
      const request = { ...frame, control: { ...control, run_id: id } };
      run = runs.attach(request as unknown as RunRequest, connection);
    },
    gone() {
      clearTimeout(patience);
      run?.leave(connection);
    },
  });
  const patience = setTimeout(() => connection.close(1008, "no request came"), FIRST_FRAME_MS);
}

async function drain(server: Server, runs: Runs): Promise<void> {
  runs.draining = true;
  const late = setTimeout(() => runs.stopAll(), DRAIN_MS);
  while (runs.working > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  clearTimeout(late);
  // Whoever watches is sent the end first.
  await new Promise((resolve) => setTimeout(resolve, 100));
  server.close();
  server.closeAllConnections();
}
