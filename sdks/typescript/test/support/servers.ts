/** Servers for tests: the other ends of WebSockets and streams of events, on ports of their own. */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

import { Fault, Transport, type Link, type LinkEvents } from "wharf-sdk";
import { CLOSE, closeBody, encode, FrameReader, PING, PONG, TEXT } from "../../src/node/frames.js";

export interface TestServer {
  url: string;
  /** Kept with the next peer that connects. */
  peer(): Promise<TestPeer>;
  close(): Promise<void>;
}

/** One end that a test holds: raw texts, or a transport made of it. */
export class TestPeer implements Link {
  readonly bare: boolean;
  readonly own: boolean;
  readonly unsent = 0;
  readonly received: unknown[] = [];
  readonly #write: (text: string) => void;
  readonly #close: (code: number, reason: string) => void;
  #events: LinkEvents | undefined;
  #waiting: (() => void)[] = [];

  constructor(own: boolean, bare: boolean, write: (text: string) => void, close: (code: number, reason: string) => void) {
    this.own = own;
    this.bare = bare;
    this.#write = write;
    this.#close = close;
  }

  start(events: LinkEvents): void {
    this.#events = events;
    for (const message of this.received.splice(0)) events.text(JSON.stringify(message));
  }

  send(text: string): void {
    this.#write(text);
  }

  /** Sends a message as JSON. */
  say(message: unknown): void {
    this.#write(JSON.stringify(message));
  }

  /** Takes the next message that came. */
  async next(): Promise<any> {
    while (this.received.length === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.received.shift();
  }

  transport(): Transport {
    return new Transport(this);
  }

  async close(code = 1012, reason = "again soon"): Promise<void> {
    this.#close(code, reason);
  }

  take(text: string): void {
    if (this.#events) return this.#events.text(text);
    this.received.push(JSON.parse(text));
    for (const wake of this.#waiting.splice(0)) wake();
  }

  gone(): void {
    this.#events?.end(new Fault("transport.lost", "The other side has gone."));
  }
}

class Peers {
  #peers: TestPeer[] = [];
  #waiting: ((peer: TestPeer) => void)[] = [];

  add(peer: TestPeer): void {
    const wake = this.#waiting.shift();
    if (wake) wake(peer);
    else this.#peers.push(peer);
  }

  next(): Promise<TestPeer> {
    const peer = this.#peers.shift();
    return peer ? Promise.resolve(peer) : new Promise((resolve) => this.#waiting.push(resolve));
  }
}

export interface WebSocketServerOptions {
  /** The subprotocol to choose, if it is offered. */
  protocol?: string;
  /** Answers before the upgrade with this status. */
  refuse?: () => { status: number; body: string } | undefined;
  /** Is told the headers of every handshake. */
  onHandshake?: (request: IncomingMessage) => void;
  /** Is sent as the first text together with the handshake, in one piece. */
  greeting?: string;
  port?: number;
}

export async function webSocketServer(options: WebSocketServerOptions = {}): Promise<TestServer> {
  const peers = new Peers();
  // An ordinary request is refused as a handshake would be, and pages may read why.
  const server = createServer((request, response) => {
    const { status, body } = options.refuse?.() ?? { status: 426, body: "{}" };
    const open = { "access-control-allow-origin": "*", "access-control-allow-headers": "*, authorization" };
    response.writeHead(request.method === "OPTIONS" ? 204 : status, { ...open, "content-type": "application/json" });
    response.end(request.method === "OPTIONS" ? undefined : body);
  });
  const sockets = new Set<Socket>();
  server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    options.onHandshake?.(request);
    const refusal = options.refuse?.();
    if (refusal) {
      socket.end(`HTTP/1.1 ${refusal.status} No\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(refusal.body)}\r\nConnection: close\r\n\r\n${refusal.body}`);
      return;
    }
    sockets.add(socket);
    const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
    const chosen = options.protocol && offered.includes(options.protocol) ? options.protocol : undefined;
    const proof = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${proof}`];
    if (chosen) lines.push(`Sec-WebSocket-Protocol: ${chosen}`);
    const hello = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
    socket.write(options.greeting ? Buffer.concat([hello, encode(TEXT, Buffer.from(options.greeting), false)]) : hello);
    const reader = new FrameReader(true, 16 * 1024 * 1024);
    const write = (text: string): void => void (socket.writable && socket.write(encode(TEXT, Buffer.from(text), false)));
    const peer = new TestPeer(chosen !== undefined, false, write, (code, reason) => {
      if (socket.writable) socket.end(encode(CLOSE, closeBody(code, reason), false));
    });
    socket.on("data", (data) => {
      for (const { opcode, body } of reader.push(data)) {
        if (opcode === TEXT) peer.take(body.toString());
        else if (opcode === PING) socket.write(encode(PONG, body, false));
        else if (opcode === CLOSE) socket.end(encode(CLOSE, body, false));
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      peer.gone();
    });
    peers.add(peer);
  });
  return listen(server, peers, "ws", options.port, () => sockets.forEach((socket) => socket.destroy()));
}

export interface EventServerOptions {
  /** How an event is written; for servers with other habits. */
  write?: (id: number, data: string) => string;
  /** Is told of every request. */
  onRequest?: (request: IncomingMessage) => void;
  /** Answers a request with this status instead. */
  refuse?: (request: IncomingMessage) => number | undefined;
}

export interface EventServer extends TestServer {
  /** Breaks every open stream off. */
  breakOff(): void;
}

export async function eventServer(options: EventServerOptions = {}): Promise<EventServer> {
  const peers = new Peers();
  const write = options.write ?? ((id, data) => `id: ${id}\ndata: ${data}\n\n`);
  const streams = new Set<ServerResponse>();
  const log: string[] = [];
  let peer: TestPeer | undefined;
  const push = (text: string): void => {
    log.push(write(log.length + 1, text));
    for (const stream of streams) stream.write(log[log.length - 1]);
  };
  const server = createServer((request, response) => {
    options.onRequest?.(request);
    const refused = options.refuse?.(request);
    if (refused) return void response.writeHead(refused, { "content-type": "application/json" }).end("{}");
    if (!peer) {
      const own = (request.url ?? "").includes("protocol=wharf.tool.v1");
      peer = new TestPeer(own, true, push, () => streams.forEach((stream) => stream.destroy()));
      peers.add(peer);
    }
    if (request.method === "POST") return void takePost(request, response, peer);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\n\n");
    for (const event of log.slice(Number(request.headers["last-event-id"] ?? 0))) response.write(event);
    streams.add(response);
    response.on("close", () => streams.delete(response));
  });
  const listening = await listen(server, peers, "http", 0, () => streams.forEach((stream) => stream.destroy()));
  return { ...listening, breakOff: () => streams.forEach((stream) => stream.destroy()) };
}

async function takePost(request: IncomingMessage, response: ServerResponse, peer: TestPeer): Promise<void> {
  let body = "";
  for await (const piece of request) body += String(piece);
  response.writeHead(202, { "content-type": "application/json" }).end("{}");
  peer.take(body);
}

async function listen(server: Server, peers: Peers, scheme: string, port = 0, cut: () => void): Promise<TestServer> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    peer: () => peers.next(),
    async close() {
      cut();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
