/** What a tool tells on its way, kept for a listener that may be slow. */

/** How much is kept for a slow listener when nothing else is said. */
export const PROGRESS_KEPT_MAX = 256;

/**
 * Progress as it is listened to. It ends with the call, however the call ends.
 *
 * A listener that is too slow misses the oldest pieces and never holds up the tool; `missed` counts them.
 */
export class Progress<P> implements AsyncIterable<P> {
  readonly #max: number;
  #kept: P[] = [];
  #ended = false;
  #missed = 0;
  #waiting: (() => void)[] = [];

  constructor(max = PROGRESS_KEPT_MAX) {
    this.#max = Math.max(1, max);
  }

  /** How many pieces the listener was too slow for. */
  get missed(): number {
    return this.#missed;
  }

  /** @internal */
  push(value: P): void {
    if (this.#ended) return;
    this.#kept.push(value);
    if (this.#kept.length > this.#max) {
      this.#kept.shift();
      this.#missed += 1;
    }
    this.#wake();
  }

  /** @internal */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<P, void, undefined> {
    for (;;) {
      while (this.#kept.length > 0) yield this.#kept.shift() as P;
      if (this.#ended) return;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}
