/**
 * One connection to the other side of tools: requests and what comes back to them.
 *
 * The same for every kind of connection. Ids of the two sides are apart. Answers may come in any
 * order; those that nobody waits for are counted and left alone.
 */

import { Fault, forOthers } from "./fault.js";
import { Task } from "./task.js";
import {
  readMessage,
  writeCancel,
  writeChild,
  writeCost,
  writeOffer,
  writeOffered,
  writeProgress,
  writeRequest,
  writeResponse,
  type Ask,
  type Offer,
  type Outcome,
  type Request,
} from "./wire.js";

/** A connection that carries texts. */
export interface Link {
  /** Whether the other side understands faults and calls from within a call. */
  readonly own: boolean;
  /** Whether requests go without an envelope. */
  readonly bare: boolean;
  /** How many bytes wait to be sent. */
  readonly unsent: number;
  /** Begins to read. `end` is called once. */
  start(on: LinkEvents): void;
  /** Sends a text. `failed` is told if it surely or possibly did not arrive while the link lives on. */
  send(text: string, failed?: (fault: Fault) => void): void;
  close(): Promise<void>;
}

/** What a link tells. */
export interface LinkEvents {
  text(text: string): void;
  end(fault: Fault): void;
}

/** How much a transport holds at most. */
export interface TransportLimits {
  /** Requests that wait for their answers. */
  pendingMax?: number;
  /** Requests of the other side that are served at once. */
  servingMax?: number;
  /** Bytes that wait to be sent, above which progress is left out. */
  unsentBytesMax?: number;
}

/** What was left alone or left out. */
export interface Counters {
  /** Messages that are no messages. */
  malformed: number;
  /** Answers and progress for requests that never were. */
  unknown: number;
  /** Answers and progress for requests that are over, and requests that were made twice. */
  repeated: number;
  /** Pieces of progress that were not sent, since the other side is too slow. */
  progressDropped: number;
}

/** @internal Where calls without an implementation go. */
export interface Requester {
  request(ask: Ask, options: RequestOptions): Promise<Outcome>;
}

/** @internal How a request is made. */
export interface RequestOptions {
  task: Task;
  onProgress: (data: unknown) => void;
  /** Is told what the request has cost so far. */
  onCost?: (micro: number) => void;
  /** Serves what the other side asks while it works for this request. */
  serve?: Handler;
}

/** @internal What serves a request gets to speak with. */
export interface Answering {
  readonly task: Task;
  progress(data: unknown): void;
  /** Requests to the other side that belong to the one that is served. */
  readonly back: Requester;
}

/** @internal */
export type Handler = (request: Request, answering: Answering) => Promise<Outcome>;

interface Pending {
  options: RequestOptions;
  resolve(outcome: Outcome): void;
  reject(fault: Fault): void;
}

interface Serving {
  task: Task;
  kind: Request["kind"];
}

/** What the code of a close means: after some it is no use to come back. */
export function closedBy(code: number, reason: string): Fault {
  const words = reason === "" ? "The connection was lost." : `The connection was closed: ${reason}`;
  const retryable = code !== 1000 && code !== 1008;
  return new Fault("transport.lost", words, { retryable, details: { close: code } });
}

const PENDING_MAX = 10_000;
const SERVING_MAX = 256;
const UNSENT_BYTES_MAX = 4 * 1024 * 1024;

/** A connection to the other side of tools. */
export class Transport implements Requester {
  /** What was left alone or left out so far. */
  readonly counters: Counters = { malformed: 0, unknown: 0, repeated: 0, progressDropped: 0 };
  /** Kept with the reason when the connection is over. */
  readonly ended: Promise<Fault>;
  /** What the other side said it offers. */
  offers: unknown = undefined;
  readonly #link: Link;
  readonly #limits: Required<TransportLimits>;
  readonly #prefix = Math.random().toString(36).slice(2, 10).padEnd(8, "0");
  readonly #pending = new Map<string, Pending>();
  readonly #serving = new Map<string, Serving>();
  #counted = 0;
  #handler: Handler | undefined;
  #draining = false;
  #end: Fault | undefined;
  #tellEnd!: (fault: Fault) => void;
  #idle: (() => void)[] = [];
  #waitingOffer: { resolve(names: string[]): void; reject(fault: Fault): void } | undefined;

  constructor(link: Link, limits: TransportLimits = {}) {
    this.#link = link;
    this.#limits = { pendingMax: PENDING_MAX, servingMax: SERVING_MAX, unsentBytesMax: UNSENT_BYTES_MAX, ...limits };
    this.ended = new Promise((resolve) => (this.#tellEnd = resolve));
    link.start({ text: (text) => this.#take(text), end: (fault) => this.#over(fault) });
  }

  /** Whether the other side understands faults and calls from within a call. */
  get own(): boolean {
    return this.#link.own;
  }

  /** How many requests wait for their answers. */
  get pending(): number {
    return this.#pending.size;
  }

  /** How many requests of the other side are being served. */
  get serving(): number {
    return this.#serving.size;
  }

  /** Ends the connection. Whoever waits for an answer is told so. */
  async close(): Promise<void> {
    this.#over(new Fault("transport.lost", "The connection was closed here."));
    await this.#link.close();
  }

  /** @internal */
  request(ask: Ask, options: RequestOptions): Promise<Outcome> {
    return this.#send(ask, options, (request) => writeRequest(request, this.#link.bare));
  }

  /** @internal Serves requests of the other side from now on. */
  serve(handler: Handler): void {
    if (this.#handler) throw new Fault("tool.conflict", "This transport is served already.");
    this.#handler = handler;
  }

  /** @internal Says which tools there are, and gives the names under which they were accepted. */
  offer(tools: readonly Offer[]): Promise<string[]> {
    if (this.#end) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      this.#waitingOffer?.reject(new Fault("tool.conflict", "Another offer took the place of this one."));
      this.#waitingOffer = { resolve, reject };
      this.#link.send(writeOffer(tools), reject);
    });
  }

  /** @internal Takes no more requests, and ends those under way: by themselves, then by canceling. */
  async drain(drainMs: number, graceMs: number): Promise<void> {
    this.#draining = true;
    if (drainMs > 0) await this.#untilIdle(drainMs);
    for (const { task } of this.#serving.values()) task.cancel(Fault.canceled("The other side is closing."));
    await this.#untilIdle(graceMs);
    for (const [id, { kind, task }] of this.#serving) this.#respond(id, kind, Fault.canceled(), task.spent);
    this.#serving.clear();
  }

  #send(ask: Ask, options: RequestOptions, write: (request: Request) => string): Promise<Outcome> {
    if (this.#end) return Promise.reject(this.#end);
    if (options.task.canceled) return Promise.reject(options.task.canceled);
    if (this.#pending.size >= this.#limits.pendingMax) {
      return Promise.reject(new Fault("tool.busy", "Too many requests wait for their answers.", { retryable: true }));
    }
    const id = `${this.#prefix}-${(this.#counted += 1)}`;
    let text: string;
    try {
      text = write({ id, ...ask });
    } catch (error) {
      return Promise.reject(new Fault("tool.invalid_input", `The input of ${ask.type} is not JSON.`, { cause: error }));
    }
    return new Promise((resolve, reject) => {
      const forget = options.task.onCancel((fault) => {
        if (!this.#pending.delete(id)) return;
        this.#link.send(writeCancel(id));
        reject(fault);
      });
      const finish = <T>(settle: (value: T) => void) => (value: T): void => {
        if (!this.#pending.delete(id)) return;
        forget();
        settle(value);
      };
      const waiting: Pending = { options, resolve: finish(resolve), reject: finish(reject) };
      this.#pending.set(id, waiting);
      this.#link.send(text, waiting.reject);
    });
  }

  #take(text: string): void {
    if (this.#end) return;
    const message = readMessage(text);
    switch (message.type) {
      case "request":
        return this.#begin(message.request, this.#handler);
      case "child": {
        const parent = this.#pending.get(message.of);
        return this.#begin(message.request, parent?.options.serve, parent?.options.task);
      }
      case "progress": {
        const waiting = this.#pending.get(message.id);
        if (!waiting) return this.#unmatched(message.id);
        this.#takeCost(waiting, message.cost);
        return "data" in message ? waiting.options.onProgress(message.data) : undefined;
      }
      case "response": {
        const waiting = this.#pending.get(message.id);
        if (!waiting) return this.#unmatched(message.id);
        this.#takeCost(waiting, message.cost);
        return message.outcome instanceof Fault ? waiting.reject(message.outcome) : waiting.resolve(message.outcome);
      }
      case "cancel":
        return this.#serving.get(message.id)?.task.cancel(Fault.canceled());
      case "offer":
        return this.#takeOffer(message.tools);
      case "offered": {
        const waiting = this.#waitingOffer;
        this.#waitingOffer = undefined;
        return message.fault ? waiting?.reject(message.fault) : waiting?.resolve(message.tools);
      }
      case "closed":
        this.#over(closedBy(message.code, message.reason));
        return void this.#link.close();
      case "gap":
        // Answers may be among what is missing, and nobody would wait for them for ever.
        this.#over(new Fault("transport.lost", "The connection was away for too long.", { retryable: true }));
        return void this.#link.close();
      case "malformed":
        this.counters.malformed += 1;
        if (message.id !== undefined) {
          this.#respond(message.id, "elicit", new Fault("protocol.malformed", "The request has no form that is known."));
        }
        return;
      case "unknown":
        return;
    }
  }

  #begin(request: Request, handler: Handler | undefined, parent?: Task): void {
    const { id, kind, type } = request;
    if (this.#serving.has(id)) {
      this.counters.repeated += 1;
      return;
    }
    if (!handler) return this.#respond(id, kind, new Fault("tool.not_found", `There is no tool ${type} here.`));
    if (this.#draining || this.#serving.size >= this.#limits.servingMax) {
      return this.#respond(id, kind, new Fault("tool.busy", "Too much is asked at once.", { retryable: true }));
    }
    const task = new Task(parent);
    task.onSpend = (micro) => this.#tellCost(id, micro);
    this.#serving.set(id, { task, kind });
    const answering: Answering = {
      task,
      progress: (data) => this.#progress(id, data),
      back: { request: (ask, options) => this.#child(id, ask, options) },
    };
    Promise.resolve()
      .then(() => handler(request, answering))
      .then(
        (outcome) => this.#finish(id, kind, task, task.canceled ?? outcome),
        (error: unknown) => this.#finish(id, kind, task, task.canceled ?? forOthers(Fault.from(error))),
      );
  }

  /** A request to the other side while one of its own is served. */
  #child(of: string, ask: Ask, options: RequestOptions): Promise<Outcome> {
    if (!this.#link.own) {
      const text = `${ask.type} cannot be called: it has no implementation here, and the other side takes no calls.`;
      return Promise.reject(new Fault("tool.unavailable", text));
    }
    return this.#send(ask, options, (request) => writeChild(of, request));
  }

  #progress(id: string, data: unknown): void {
    if (!this.#serving.has(id) || this.#end) return;
    if (this.#link.unsent > this.#limits.unsentBytesMax) {
      this.counters.progressDropped += 1;
      return;
    }
    this.#link.send(writeProgress(id, data));
  }

  /** Tells at once what a request has cost; a slow other side is told with the answer. */
  #tellCost(id: string, micro: number): void {
    if (!this.#link.own || this.#end || this.#link.unsent > this.#limits.unsentBytesMax) return;
    this.#link.send(writeCost(id, micro));
  }

  /** Costs are taken only from those who say that they know of them. */
  #takeCost(waiting: Pending, micro: number | undefined): void {
    if (this.#link.own && micro !== undefined) waiting.options.onCost?.(micro);
  }

  #finish(id: string, kind: Request["kind"], task: Task, answer: Outcome | Fault): void {
    task.end();
    if (!this.#serving.delete(id)) return;
    this.#respond(id, kind, answer, task.spent);
    if (this.#serving.size === 0) for (const tell of this.#idle.splice(0)) tell();
  }

  #respond(id: string, kind: Request["kind"], answer: Outcome | Fault, micro = 0): void {
    if (this.#end) return;
    let text: string;
    try {
      text = writeResponse(id, kind, answer, this.#link.own, micro);
    } catch {
      text = writeResponse(id, kind, new Fault("tool.invalid_output", "The output is not JSON."), this.#link.own, micro);
    }
    this.#link.send(text);
  }

  #takeOffer(tools: unknown): void {
    if (!Array.isArray(tools)) {
      this.#link.send(writeOffered(new Fault("protocol.malformed", "An offer needs a list of tools.")));
      return;
    }
    this.offers = tools;
    const names = tools.map((tool) => (tool as { name?: unknown } | null)?.name);
    this.#link.send(writeOffered(names.filter((name) => typeof name === "string")));
  }

  /** Ids count upwards, so one that was given out before is known without keeping it. */
  #unmatched(id: string): void {
    const [prefix, number] = id.split("-");
    const given = prefix === this.#prefix && Number(number) >= 1 && Number(number) <= this.#counted;
    if (given) this.counters.repeated += 1;
    else this.counters.unknown += 1;
  }

  async #untilIdle(withinMs: number): Promise<void> {
    if (this.#serving.size === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#idle.push(resolve);
      timer = setTimeout(resolve, withinMs);
    });
    clearTimeout(timer);
  }

  #over(fault: Fault): void {
    if (this.#end) return;
    this.#end = fault;
    for (const waiting of [...this.#pending.values()]) waiting.reject(fault);
    for (const { task } of this.#serving.values()) task.cancel(fault);
    this.#serving.clear();
    for (const tell of this.#idle.splice(0)) tell();
    this.#waitingOffer?.reject(fault);
    this.#tellEnd(fault);
  }
}
