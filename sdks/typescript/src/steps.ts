/** Durable steps: what a tool has done is found again when its call is repeated. */

import { Fault } from "./fault.js";

/** A value that is kept; an object around it, since `null` and nothing at all are not the same. */
export interface Kept {
  readonly value: unknown;
}

/** @internal Where the steps of one call are kept. */
export interface StepKeeper {
  readonly names: StepNames;
  /** Has a tool of the core called as a step, or finds the call, and gives its output. */
  call(name: string, n: number, tool: string, input: unknown): Promise<unknown>;
  /** The value that is kept under a name; if none is, this one is kept. */
  keep(name: string, n: number, given?: Kept): Promise<Kept | undefined>;
}

const NAME_BYTES_MAX = 128;

/** Steps that `each` does at once. A core takes 256 from all calls of an agent together. */
export const AT_ONCE = 16;

/**
 * @internal The names that one call has used. The number of a step is how often its name was used
 * until then, so that the same code finds the same steps again.
 */
export class StepNames {
  readonly #used = new Map<string, number>();
  readonly #open = new Set<string>();

  /** Does something as the next step of this name, or as so many steps; `work` gets the first number. */
  async during<T>(name: string, work: (n: number) => Promise<T>, count = 1): Promise<T> {
    const bytes = new TextEncoder().encode(name).length;
    if (bytes < 1 || bytes > NAME_BYTES_MAX || /\p{Cc}/u.test(name)) {
      throw new Fault("request.invalid", `A step needs a name of at most ${NAME_BYTES_MAX} bytes.`);
    }
    if (this.#open.has(name)) {
      throw new Fault("step.in_use", `The step \`${name}\` is under way: give this one another name, or use \`each\`.`);
    }
    const n = (this.#used.get(name) ?? 0) + 1;
    this.#used.set(name, n + count - 1);
    this.#open.add(name);
    try {
      return await work(n);
    } finally {
      this.#open.delete(name);
    }
  }
}

/**
 * @internal Does all of this, so many at once; gives what came out in order. Of those that fail the
 * first in order is thrown when all are over.
 */
export async function inTurns<T>(works: readonly (() => Promise<T>)[], atOnce: number): Promise<T[]> {
  const ended: PromiseSettledResult<T>[] = [];
  let next = 0;
  const turn = async (): Promise<void> => {
    for (let place = next++; place < works.length; place = next++) {
      [ended[place]] = (await Promise.allSettled([works[place]!()])) as [PromiseSettledResult<T>];
    }
  };
  await Promise.all(Array.from({ length: Math.min(Math.max(atOnce, 1), works.length) }, turn));
  return ended.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
}
