/** Small helps for tests. */

import assert from "node:assert/strict";

import { Fault } from "wharf-sdk";

/** A promise that a test keeps by hand. */
export class Gate<T = void> {
  open!: (value: T) => void;
  readonly opened: Promise<T>;

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}

/** Waits until something holds. */
export async function until(holds: () => boolean, what = "a condition"): Promise<void> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail(`waited in vain for ${what}`);
}

/** Insists that something fails with a fault of this code, and gives the fault. */
export async function fails(doing: PromiseLike<unknown> | (() => unknown), code: string): Promise<Fault> {
  let fault: unknown;
  try {
    await (typeof doing === "function" ? doing() : doing);
  } catch (error) {
    fault = error;
  }
  assert.ok(fault instanceof Fault, `expected a fault ${code}, got ${String(fault)}`);
  assert.equal(fault.code, code, fault.message);
  return fault;
}

/** Waits until a signal says stop. */
export function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** As `AbortSignal.timeout`, which alone does not keep Node running. */
export function timed(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new DOMException("It took too long.", "TimeoutError")), ms);
  return controller.signal;
}
