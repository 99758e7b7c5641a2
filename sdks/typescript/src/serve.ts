/** The side that executes: tools served to whoever is at the other end of a transport. */

import type { AgentInstance } from "./agent.js";
import { Fault } from "./fault.js";
import { Scope } from "./scope.js";
import { keyOf, UNNAMED, type AnyTool } from "./tool.js";
import type { Answering, Transport } from "./transport.js";
import type { Offer, Outcome, Request } from "./wire.js";

/** What can be served: tools, and agents with all their tools. */
export type Servable = AnyTool | AgentInstance<any, any>;

/** How tools are served. */
export interface ServeOptions {
  /** Where calls run: its layers, implementations and transports apply. */
  scope?: Scope;
  /** Is told of every request before it runs. */
  onRequest?: (request: { readonly tool: string; readonly input: unknown }) => void;
}

/** How serving is ended. */
export interface CloseOptions {
  /** How long requests may go on by themselves. Without it they are canceled at once. */
  drainMs?: number;
  /** How long canceled requests may clean up. */
  graceMs?: number;
}

const GRACE_MS = 2_000;

/** Tools that are being served. */
export interface Served {
  /** What is served, as it is told others. */
  readonly offers: readonly Offer[];
  /** Tells the other side what is served; gives the names under which it can be called. */
  offer(): Promise<string[]>;
  /** Takes no more requests, answers those under way, and ends the connection. */
  close(options?: CloseOptions): Promise<void>;
}

/**
 * Serves tools over a transport: what comes in is checked, run, and answered.
 *
 * Built-ins are served by a scope that provides them: `scope().provide(elicit, …)`.
 */
export function serve(transport: Transport, tools: readonly Servable[], options: ServeOptions = {}): Served {
  const desk = new Desk(tools, options);
  transport.serve((request, answering) => desk.answer(request, answering));
  return {
    offers: desk.offers,
    offer: () => transport.offer(desk.offers),
    async close({ drainMs = 0, graceMs = GRACE_MS } = {}) {
      await transport.drain(drainMs, graceMs);
      await transport.close();
    },
  };
}

/** @internal What is served, and where each of it runs. */
export class Desk {
  readonly offers: readonly Offer[];
  readonly tools: readonly AnyTool[];
  readonly #places = new Map<string, { tool: AnyTool; scope: Scope }>();
  readonly #scope: Scope;
  readonly #onRequest: ServeOptions["onRequest"];

  constructor(tools: readonly Servable[], options: ServeOptions) {
    this.#scope = options.scope ?? new Scope();
    this.#onRequest = options.onRequest;
    for (const one of tools) {
      if (!("agent" in one)) this.#place(one, this.#scope);
      else for (const tool of Object.values(one.agent.tools)) this.#placeIfLocal(tool as AnyTool, one.scope);
    }
    this.tools = [...this.#places.values()].map(({ tool }) => tool);
    this.offers = this.tools.map(offerOf);
  }

  async answer(request: Request, answering: Answering): Promise<Outcome> {
    const place = request.kind === "elicit" ? this.#places.get(request.type) : undefined;
    this.#onRequest?.({ tool: request.type, input: request.payload });
    return (place?.scope ?? this.#scope).answer(request, place?.tool, answering);
  }

  /** Of an agent only what it executes itself is served; the rest it calls. */
  #placeIfLocal(tool: AnyTool, scope: Scope): void {
    if (scope.isLocal(tool)) this.#place(tool, scope);
  }

  #place(tool: AnyTool, scope: Scope): void {
    if (!scope.isLocal(tool)) throw new Fault("tool.not_found", `${tool.name} cannot be served: it has no implementation.`);
    if (tool.name === UNNAMED) throw new Fault("tool.schema_invalid", "A tool that is served needs a name.");
    if (keyOf(tool) !== tool.name) throw new Fault("tool.conflict", `${tool.name} is built in; a scope that provides it serves it.`);
    if (this.#places.has(tool.name)) throw new Fault("tool.conflict", `Two tools with the name ${tool.name} were given to be served.`);
    this.#places.set(tool.name, { tool, scope });
  }
}

function offerOf(tool: AnyTool): Offer {
  const { input, output, progress } = tool.schemas;
  const { name, description, sideEffects } = tool;
  const marked = sideEffects === undefined ? input : { ...input, "x-wharf-side-effects": sideEffects };
  const offer: Offer = { name, description, input: marked, output };
  return progress === undefined ? offer : { ...offer, progress };
}
