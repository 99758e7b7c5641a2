/** A WebSocket: one text per message. */

import { Fault } from "../fault.js";
import { closedBy, Transport, type Link, type LinkEvents, type TransportLimits } from "../transport.js";
import { PROTOCOL } from "../wire.js";

/** As much of a WebSocket as is used; that of browsers has it. */
export interface WebSocketLike {
  readonly protocol: string;
  readonly bufferedAmount: number;
  readonly readyState: number;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

/** Makes a WebSocket. */
export type WebSocketMaker = new (url: string, protocols?: string[]) => WebSocketLike;

/** How a WebSocket is opened. */
export interface WebSocketOptions extends TransportLimits {
  /** A token, for servers that want one. It goes where browsers can put it: among the subprotocols. */
  token?: string | undefined;
  /** Offer no subprotocols: for servers that know none. Faults and calls from within a call are off. */
  plain?: boolean | undefined;
  /** Gives up when the connection does not open in this time. */
  openMs?: number | undefined;
  /** What makes the WebSocket, if not the one of the platform. */
  WebSocket?: WebSocketMaker | undefined;
}

const OPEN_MS = 15_000;
const CLOSE_MS = 1_000;
/** Above this, the other side does not read any more. */
const UNSENT_BYTES_FATAL = 64 * 1024 * 1024;

let platform: WebSocketMaker | undefined;

/** @internal What to use instead of the WebSocket that is there for everybody, if there is one. */
export function useWebSocket(maker: WebSocketMaker): void {
  platform = maker;
}

/** @internal Whether a WebSocket that was refused says why. Those of browsers do not. */
export function saysWhy(): boolean {
  return platform !== undefined;
}

/** Opens a WebSocket to the other side of tools. */
export async function webSocket(url: string | URL, options: WebSocketOptions = {}): Promise<Transport> {
  const { token, plain, openMs = OPEN_MS, WebSocket: given, ...limits } = options;
  const maker = given ?? platform ?? (globalThis as { WebSocket?: WebSocketMaker }).WebSocket;
  if (!maker) throw new Fault("transport.lost", "This platform has no WebSocket.");
  const protocols = plain ? [] : [PROTOCOL];
  if (token !== undefined) protocols.push(`wharf.bearer.${token}`);
  const link = new WebSocketLink(new maker(String(url), protocols));
  await link.opened(openMs);
  return new Transport(link, limits);
}

/** @internal A WebSocket as a link. What comes before it is started is kept. */
export class WebSocketLink implements Link {
  readonly bare = false;
  readonly #socket: WebSocketLike;
  readonly #closed: Promise<Fault>;
  #early: string[] = [];

  constructor(socket: WebSocketLike) {
    this.#socket = socket;
    socket.onmessage = ({ data }: { data: unknown }) => void this.#early.push(textOf(data));
    this.#closed = new Promise((resolve) => {
      socket.onclose = ({ code, reason }: { code?: number; reason?: string }) => resolve(closedBy(code ?? 1006, reason ?? ""));
    });
  }

  get own(): boolean {
    return this.#socket.protocol === PROTOCOL;
  }

  async opened(withinMs: number): Promise<void> {
    const socket = this.#socket;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        timer = setTimeout(() => reject(lost("The connection did not open in time.")), withinMs);
        socket.onopen = () => resolve();
        // Browsers do not say why; others may.
        socket.onerror = ({ error }: { error?: unknown }) => {
          reject(error instanceof Fault ? error : lost("The connection could not be opened."));
        };
        void this.#closed.then(() => reject(lost("The connection could not be opened.")));
      });
    } catch (error) {
      socket.close();
      throw error;
    } finally {
      clearTimeout(timer);
      socket.onerror = null;
    }
  }

  get unsent(): number {
    return this.#socket.bufferedAmount;
  }

  start(events: LinkEvents): void {
    for (const text of this.#early.splice(0)) events.text(text);
    this.#socket.onmessage = ({ data }: { data: unknown }) => events.text(textOf(data));
    void this.#closed.then((fault) => events.end(fault));
  }

  send(text: string): void {
    if (this.#socket.readyState !== 1) return;
    if (this.#socket.bufferedAmount > UNSENT_BYTES_FATAL) return this.#socket.close(1013, "too slow");
    this.#socket.send(text);
  }

  async close(): Promise<void> {
    this.#socket.close(1000);
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([this.#closed, new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))]);
    clearTimeout(timer);
  }
}

/** Bytes are no message of this protocol, and are counted as such. */
function textOf(data: unknown): string {
  return typeof data === "string" ? data : "";
}

function lost(message: string): Fault {
  return new Fault("transport.lost", message, { retryable: true });
}
