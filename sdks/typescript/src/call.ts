/** A call of a tool under way. */

import { Fault } from "./fault.js";
import { Progress } from "./progress.js";
import { Task } from "./task.js";

/** How a call is made. */
export interface CallOptions<P = unknown> {
  /** Calls it off. `AbortSignal.timeout(…)` gives it a time. */
  signal?: AbortSignal;
  /** Is told every piece of progress at once. */
  onProgress?: (progress: P) => void;
}

/**
 * A call: await it for the output, iterate its progress, cancel it.
 *
 * ```ts
 * const call = scope.call(Search, { destination: "Tokyo" });
 * for await (const status of call.progress) console.log(status);
 * const flights = await call;
 * ```
 *
 * It runs whether it is awaited or not. A failure that nobody awaits is not reported anywhere else.
 */
export class Call<Output, P = unknown> implements PromiseLike<Output> {
  readonly #task: Task;
  readonly #result: Promise<Output>;
  readonly #worked: Promise<void>;
  #progress: Progress<P> | undefined;
  #settled = false;

  /** @internal */
  constructor(
    task: Task,
    work: (tell: (progress: P) => void) => Promise<Output>,
    onProgress?: (progress: P) => void,
  ) {
    this.#task = task;
    const tell = (progress: P): void => {
      if (this.#settled) return;
      onProgress?.(progress);
      this.#progress?.push(progress);
    };
    // It begins a moment later, so that progress is heard from its first piece on.
    const done = Promise.resolve().then(() => {
      task.check();
      return work(tell);
    });
    this.#result = new Promise((resolve, reject) => {
      const stop = (fault: Fault): void => {
        this.#settle();
        reject(fault);
      };
      if (task.canceled) stop(task.canceled);
      else task.onCancel(stop);
      done.then(
        (output) => {
          this.#settle();
          resolve(output);
        },
        (error: unknown) => stop(Fault.from(error)),
      );
    });
    this.#result.catch(() => {});
    this.#worked = done.then(
      () => task.end(),
      () => task.end(),
    );
  }

  /** What the tool tells on its way, from the moment this is first read. */
  get progress(): Progress<P> {
    if (!this.#progress) {
      this.#progress = new Progress();
      if (this.#settled) this.#progress.end();
    }
    return this.#progress;
  }

  /**
   * What it has cost so far, in millionths of a dollar: as the tool says with `cx.cost()`, here or
   * where it runs.
   */
  get cost(): number {
    return this.#task.cost;
  }

  /** Calls it off. The call fails at once; the promise is kept when the clean-up is over. */
  cancel(reason?: Fault): Promise<void> {
    this.#task.cancel(reason ?? Fault.canceled());
    return this.#worked;
  }

  /** @internal Kept when nothing of it is at work any more, however it ended. */
  get worked(): Promise<void> {
    return this.#worked;
  }

  then<A = Output, B = never>(
    onOutput?: ((output: Output) => A | PromiseLike<A>) | null,
    onFault?: ((fault: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#result.then(onOutput, onFault);
  }

  catch<B = never>(onFault?: ((fault: any) => B | PromiseLike<B>) | null): Promise<Output | B> {
    return this.#result.catch(onFault);
  }

  finally(onEnd?: (() => void) | null): Promise<Output> {
    return this.#result.finally(onEnd);
  }

  #settle(): void {
    this.#settled = true;
    this.#progress?.end();
  }
}
