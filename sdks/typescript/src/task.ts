/** Something under way that can be called off. What it started goes with it. */

import { Fault } from "./fault.js";
import type { StepKeeper } from "./steps.js";

/** What a request needs to know of being called off. */
export interface Cancellation {
  /** Why it was called off, if it was. */
  readonly canceled: Fault | undefined;
  /** Calls `stop` when it is called off, unless the function that is given back is called before. */
  onCancel(stop: (fault: Fault) => void): () => void;
}

/** How grave a line of a log is. */
export type Level = "debug" | "info" | "warn" | "error";

/** @internal A place in a trace, as W3C Trace Context writes it. */
export interface Trace {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** @internal What a message says of a trace. */
export function traceOf(message: Record<string, unknown>): Trace {
  const { traceparent, tracestate } = message;
  if (typeof traceparent !== "string") return {};
  return typeof tracestate === "string" ? { traceparent, tracestate } : { traceparent };
}

/** @internal What hears of a call beside its progress: whoever serves it. */
export interface Host {
  /** Outputs that are wanted as files. */
  readonly outputs: readonly string[];
  /** Where the call stands in its trace. */
  readonly trace?: Trace;
  status(text: string, fraction: number | undefined): void;
  log(text: string, level: Level): void;
  text(piece: string, output: string): void;
  /** Writes an output to where it goes; gives what stands for it. */
  write(output: string, data: unknown): Promise<string>;
  /** Where the steps of its code are kept, if anywhere. */
  readonly steps?: StepKeeper;
  /** What time it is, where that is not the real one. */
  now?(): Date;
}

/** @internal One piece of work. */
export class Task implements Cancellation {
  #canceled: Fault | undefined;
  #controller: AbortController | undefined;
  #stops: Set<(fault: Fault) => void> | undefined;
  #over = false;
  #leave: (() => void)[] = [];
  readonly #parent: Task | undefined;
  #spent = 0;
  #isMock = false;
  #host: Host | undefined;
  /** Told what it has cost so far, each time that grows. */
  onSpend: ((spent: number) => void) | undefined;
  /** What each request that was made for it has cost at the other side. */
  readonly #elsewhere: number[] = [];

  constructor(parent?: Cancellation, signal?: AbortSignal) {
    this.#parent = parent instanceof Task ? parent : undefined;
    this.#isMock = this.#parent?.isMock ?? false;
    if (parent?.canceled) this.#canceled = parent.canceled;
    else if (parent) this.#leave.push(parent.onCancel((fault) => this.cancel(fault)));
    if (!signal) return;
    const abort = (): void => this.cancel(reasonOf(signal));
    if (signal.aborted) {
      abort();
    } else {
      signal.addEventListener("abort", abort, { once: true });
      this.#leave.push(() => signal.removeEventListener("abort", abort));
    }
  }

  get canceled(): Fault | undefined {
    return this.#canceled;
  }

  /** Whether it only pretends. What is done inside it pretends too. */
  get isMock(): boolean {
    return this.#isMock;
  }

  pretend(): void {
    this.#isMock = true;
  }

  /** Who hears of it, or of what it is inside of. */
  get host(): Host | undefined {
    return this.#host ?? this.#parent?.host;
  }

  serveBy(host: Host): void {
    this.#host = host;
  }

  /** What it and everything inside it has cost, in millionths of a dollar. */
  get spent(): number {
    return this.#spent;
  }

  spend(micro: number): void {
    this.#spent += micro;
    this.onSpend?.(this.#spent);
    this.#parent?.spend(micro);
  }

  /** A request is made for it; gives what is to be told what that has cost so far. */
  elsewhere(): (micro: number) => void {
    const place = this.#elsewhere.push(0) - 1;
    return (micro) => (this.#elsewhere[place] = Math.max(this.#elsewhere[place] ?? 0, micro));
  }

  /** What it has cost so far, here and at the other side. Whoever is there keeps the books of that. */
  get cost(): number {
    return this.#elsewhere.reduce((sum, micro) => sum + micro, this.#spent);
  }

  /** The signal for code that knows only signals. It is made when it is first asked for. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#canceled) this.#controller.abort(this.#canceled);
    return this.#controller.signal;
  }

  onCancel(stop: (fault: Fault) => void): () => void {
    this.#stops ??= new Set();
    this.#stops.add(stop);
    return () => this.#stops?.delete(stop);
  }

  cancel(fault: Fault): void {
    if (this.#canceled || this.#over) return;
    this.#canceled = fault;
    this.#tell(fault);
  }

  /** Throws when it was called off. */
  check(): void {
    if (this.#canceled) throw this.#canceled;
  }

  /** The work is over: nothing can call it off, and what it left behind is stopped. */
  end(): void {
    this.#over = true;
    for (const leave of this.#leave.splice(0)) leave();
    if (!this.#canceled) this.#tell(Fault.canceled("What started the call is over."));
  }

  #tell(fault: Fault): void {
    this.#controller?.abort(fault);
    const stops = this.#stops;
    this.#stops = undefined;
    for (const stop of stops ?? []) stop(fault);
  }
}

function reasonOf(signal: AbortSignal): Fault {
  const { reason } = signal;
  if (reason instanceof Fault) return reason;
  if (reason instanceof Error && reason.name === "TimeoutError") return Fault.from(reason);
  return new Fault("tool.canceled", "The call was canceled.", { cause: reason });
}
