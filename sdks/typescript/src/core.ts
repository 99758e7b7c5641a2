/** Connections to a Wharf core: as a caller of its tools, and as a provider of tools. */

import { Fault } from "./fault.js";
import { eventStream } from "./links/events.js";
import { saysWhy, webSocket, type WebSocketMaker } from "./links/websocket.js";
import { Desk, serve, type CloseOptions, type Servable, type Served, type ServeOptions } from "./serve.js";
import type { Transport, TransportLimits } from "./transport.js";

/** How a core is reached. */
export interface CoreOptions extends TransportLimits {
  /** A token of the core. In Node it is otherwise `WHARF_TOKEN`, or the owner's in the core's home. */
  token?: string | undefined;
  /** Node: the home of the core, if not `WHARF_HOME` or the usual one. */
  home?: string | undefined;
  /** By WebSocket (the default), or by server-sent events where WebSockets are blocked. */
  via?: "websocket" | "events" | undefined;
}

/** How tools of a core are called. */
export interface ConnectOptions extends CoreOptions {
  /** The world in which runs are made. */
  world?: string | undefined;
  /** Let runs go on when the connection is lost. */
  detach?: boolean | undefined;
}

/** Where a core was found, and what reaches it. */
export interface FoundCore {
  url: string | URL;
  token: string | undefined;
  /** What makes WebSockets and requests to it, if not the platform's own. */
  WebSocket?: WebSocketMaker;
  fetch?: typeof fetch;
}

type Finder = (url: string | URL | undefined, options: CoreOptions) => FoundCore;

let finder: Finder = (url, { token }) => {
  if (url === undefined) throw new Fault("config.invalid", "The address of the core is missing.");
  return { url, token };
};

/** @internal What finds a core on this platform. */
export function useFinder(given: Finder): void {
  finder = given;
}

/**
 * Connects to a core to call its tools. In Node the address may be left out: the core is then
 * found by `WHARF_URL`, else by its home.
 *
 * ```ts
 * const root = scope(await connect("http://127.0.0.1:7420", { token }));
 * console.log(await root.call("wharf/count", { n: 3 }));
 * ```
 */
export function connect(options?: ConnectOptions): Promise<Transport>;
export function connect(url: string | URL, options?: ConnectOptions): Promise<Transport>;
export async function connect(where?: string | URL | ConnectOptions, more: ConnectOptions = {}): Promise<Transport> {
  const [url, options] = isAddress(where) ? [where, more] : [undefined, where ?? {}];
  const { world, detach, ...core } = options;
  const query: Record<string, string> = { role: "principal" };
  if (world !== undefined) query["world"] = world;
  if (detach) query["detach"] = "true";
  return open(url, query, core);
}

/** How things are with a connection that offers tools. */
export type OperativeState =
  /** A connection is being made. */
  | { name: "connecting" }
  /** The tools can be called, under these names. */
  | { name: "offered"; tools: readonly string[] }
  /** The connection was lost or refused; it is tried again after this time. */
  | { name: "waiting"; fault: Fault; retryMs: number }
  /** It is over: it was closed, or refused for good. */
  | { name: "closed"; fault: Fault | undefined };

/** How tools are offered to a core. */
export interface OperativeOptions extends CoreOptions, ServeOptions {
  /** The name before the tools' names: `browser` makes `get-location` into `browser/get-location`. */
  provider: string;
  /** What is offered. */
  tools: readonly Servable[];
  /** Is told whenever things change. */
  onState?: (state: OperativeState) => void;
  /** The first pause before another try, and the longest. */
  backoff?: { firstMs?: number; maxMs?: number };
}

/** Tools offered to a core, for as long as this is not closed. */
export interface Operative {
  readonly state: OperativeState;
  /** Kept with the tools' names when they can be called for the first time; broken if they never can. */
  readonly ready: Promise<readonly string[]>;
  /** Takes no more requests, answers those under way, and ends the connection. */
  close(options?: CloseOptions): Promise<void>;
}

const FIRST_MS = 250;
const MAX_MS = 15_000;
const OFFER_MS = 15_000;
const REASON_MS = 5_000;
/** Refusals that another try cannot change. */
const FINAL = /^(permission\.|auth\.|grant\.|request\.(invalid|origin_forbidden|route_unknown)|tool\.schema_|protocol\.)/;

/**
 * Offers tools to a core, and keeps them offered: a connection that is lost is made again. In Node
 * the address may be left out, as for `connect`; the core is then looked for before each try.
 *
 * ```ts
 * const page = connectOperative("http://127.0.0.1:7420", { provider: "browser", token, tools: [GetLocation] });
 * await page.ready;
 * ```
 */
export function connectOperative(options: OperativeOptions): Operative;
export function connectOperative(url: string | URL, options: OperativeOptions): Operative;
export function connectOperative(where: string | URL | OperativeOptions, more?: OperativeOptions): Operative {
  return isAddress(where) ? new Reconnecting(where, more!) : new Reconnecting(undefined, where);
}

function isAddress(where: unknown): where is string | URL {
  return typeof where === "string" || where instanceof URL;
}

class Reconnecting implements Operative {
  readonly ready: Promise<readonly string[]>;
  readonly #url: string | URL | undefined;
  readonly #options: OperativeOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #state: OperativeState = { name: "connecting" };
  #served: Served | undefined;
  #closeOptions: CloseOptions = {};
  #tellReady!: { resolve(tools: readonly string[]): void; reject(fault: Fault): void };

  constructor(url: string | URL | undefined, options: OperativeOptions) {
    this.#url = url;
    this.#options = options;
    // What cannot be served is said at once, not on every try.
    void new Desk(options.tools, options);
    this.ready = new Promise((resolve, reject) => (this.#tellReady = { resolve, reject }));
    this.ready.catch(() => {});
    this.#running = Promise.resolve().then(() => this.#run());
  }

  get state(): OperativeState {
    return this.#state;
  }

  async close(options: CloseOptions = {}): Promise<void> {
    this.#closeOptions = options;
    this.#stop.abort();
    await this.#served?.close(options);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { firstMs = FIRST_MS, maxMs = MAX_MS } = this.#options.backoff ?? {};
    const { signal } = this.#stop;
    let wait = firstMs;
    let last: Fault | undefined;
    while (!signal.aborted) {
      this.#change({ name: "connecting" });
      try {
        last = await this.#serveOnce(() => (wait = firstMs));
        if (!last.retryable) break;
      } catch (error) {
        last = Fault.from(error);
        if (FINAL.test(last.code)) break;
      }
      if (signal.aborted) break;
      const retryMs = Math.round(wait * (0.8 + Math.random() * 0.4));
      this.#change({ name: "waiting", fault: last, retryMs });
      await sleep(retryMs, signal);
      wait = Math.min(wait * 2, maxMs);
    }
    const fault = signal.aborted ? undefined : last;
    this.#tellReady.reject(fault ?? Fault.canceled("It was closed before the tools were offered."));
    this.#change({ name: "closed", fault });
  }

  /** One connection from its beginning to its end; gives why it ended. */
  async #serveOnce(offered: () => void): Promise<Fault> {
    const { provider, tools, scope, onRequest, onState: _, backoff: __, ...core } = this.#options;
    const transport = await this.#unlessClosed(open(this.#url, { role: "operative", provider }, core));
    try {
      const options: ServeOptions = {};
      if (scope) options.scope = scope;
      if (onRequest) options.onRequest = onRequest;
      const served = serve(transport, tools, options);
      this.#served = served;
      if (this.#stop.signal.aborted) await served.close(this.#closeOptions);
      const names = await inTime(served.offer());
      offered();
      this.#change({ name: "offered", tools: names });
      this.#tellReady.resolve(names);
      return await transport.ended;
    } finally {
      this.#served = undefined;
      await transport.close();
    }
  }

  /** A connection that nobody wants any more is not waited for. */
  #unlessClosed(opening: Promise<Transport>): Promise<Transport> {
    const { signal } = this.#stop;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        opening.then((transport) => transport.close(), () => {});
        reject(Fault.canceled("It was closed."));
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      void opening.then(resolve, reject).then(() => signal.removeEventListener("abort", leave));
    });
  }

  #change(state: OperativeState): void {
    this.#state = state;
    this.#options.onState?.(state);
  }
}

async function open(url: string | URL | undefined, query: Record<string, string>, options: CoreOptions): Promise<Transport> {
  const { via = "websocket", home: _, ...more } = options;
  const { url: found, token, WebSocket, fetch } = finder(url, options);
  const address = endpoint(found, via, query);
  if (via === "events") return eventStream(address, { ...more, token, fetch });
  try {
    return await webSocket(address, { ...more, token, WebSocket });
  } catch (error) {
    throw (saysWhy() ? undefined : await refusalOf(address, token)) ?? error;
  }
}

/**
 * Why a WebSocket was refused: an ordinary request to its address is refused for the same reason,
 * and a browser lets that be read if the core lets the page in.
 */
async function refusalOf(address: URL, token: string | undefined): Promise<Fault | undefined> {
  const plain = new URL(address);
  plain.protocol = plain.protocol === "wss:" ? "https:" : "http:";
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  try {
    const response = await fetch(plain, { headers, signal: AbortSignal.timeout(REASON_MS) });
    const body = (await response.json()) as { error?: unknown };
    const fault = Fault.read(body.error);
    return response.status === 401 || response.status === 403 || response.status === 409 ? fault : undefined;
  } catch {
    return undefined;
  }
}

/** @internal The address of a core's endpoint. A path that is given is kept. */
export function endpoint(url: string | URL, via: "websocket" | "events", query: Record<string, string>): URL {
  const address = new URL(url);
  const secure = address.protocol === "https:" || address.protocol === "wss:";
  address.protocol = via === "websocket" ? (secure ? "wss:" : "ws:") : secure ? "https:" : "http:";
  if (address.pathname === "/" || address.pathname === "") {
    address.pathname = via === "websocket" ? "/v1/tool/ws" : "/v1/tool/sse";
  }
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  return address;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const fault = new Fault("transport.lost", "The offer was not answered in time.", { retryable: true });
    timer = setTimeout(() => reject(fault), OFFER_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
