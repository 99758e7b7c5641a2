/** One end of a transport as raw messages, in memory. */

import { Fault, tool, Transport, type Link, type LinkEvents } from "wharf-sdk";
import { until } from "./waiting.js";

/** A tool that takes and gives anything. */
export const Ask = tool({ name: "ask", description: "", input: {}, output: {} });

/** The other end of a transport as raw messages. */
export class Raw implements Link {
  readonly own: boolean;
  readonly bare: boolean;
  unsent = 0;
  readonly sent: any[] = [];
  #events!: LinkEvents;

  constructor(own = true, bare = false) {
    this.own = own;
    this.bare = bare;
  }

  start(events: LinkEvents): void {
    this.#events = events;
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  async close(): Promise<void> {}

  say(message: unknown): void {
    this.#events.text(typeof message === "string" ? message : JSON.stringify(message));
  }

  end(): void {
    this.#events.end(new Fault("transport.lost", "The connection was lost."));
  }

  async request(): Promise<any> {
    await until(() => this.sent.length > 0, "a request");
    const message = this.sent.shift();
    return message.payload?.kind ? message.payload : message;
  }
}

export function raw(own = true, bare = false): { link: Raw; transport: Transport } {
  const link = new Raw(own, bare);
  return { link, transport: new Transport(link) };
}

export const accept = (id: string, content: unknown): unknown => ({ type: "response", id, response: { status: "accepted", content } });
