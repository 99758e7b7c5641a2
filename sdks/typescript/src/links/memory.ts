/** Two ends in one process. Everything passes as text, as it would on a wire. */

import { Fault } from "../fault.js";
import { Transport, type Link, type LinkEvents, type TransportLimits } from "../transport.js";

/** How a pair is made. */
export interface PairOptions extends TransportLimits {
  /** Speak as strangers do: without faults, and without calls from within a call. */
  plain?: boolean;
}

/** @internal One end that carries texts. */
export class MemoryLink implements Link {
  readonly own: boolean;
  readonly bare = false;
  readonly unsent = 0;
  other: MemoryLink | undefined;
  #events: LinkEvents | undefined;
  #waiting: string[] = [];
  #ended = false;

  constructor(own: boolean) {
    this.own = own;
  }

  start(events: LinkEvents): void {
    this.#events = events;
    for (const text of this.#waiting.splice(0)) events.text(text);
  }

  send(text: string): void {
    const { other } = this;
    if (this.#ended || !other) return;
    queueMicrotask(() => other.#receive(text));
  }

  async close(): Promise<void> {
    const { other } = this;
    this.#end();
    if (other) queueMicrotask(() => other.#end());
  }

  #receive(text: string): void {
    if (this.#ended) return;
    if (this.#events) this.#events.text(text);
    else this.#waiting.push(text);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#events?.end(new Fault("transport.lost", "The other side has gone.", { retryable: true }));
  }
}

/** Two transports that are connected with each other. */
export function memoryPair(options: PairOptions = {}): [Transport, Transport] {
  const [left, right] = memoryLinks(!options.plain);
  return [new Transport(left, options), new Transport(right, options)];
}

/** @internal Two links that are connected with each other. */
export function memoryLinks(own: boolean): [MemoryLink, MemoryLink] {
  const left = new MemoryLink(own);
  const right = new MemoryLink(own);
  left.other = right;
  right.other = left;
  return [left, right];
}
