/** What is said again and again while a run goes on, at a pace that can be followed. */

const BURST = 20;
const PER_SECOND = 10;
/** Text that grows is shown piece by piece up to this length, then in steps of a part of it, since each step repeats all of it. */
const SHOWN_AT_ONCE = 8 * 1024;
const STEP = 32;

/** Lets a burst pass, and then so many a second. */
export class Pace {
  #room = BURST;
  #at = performance.now();

  /** Takes a place if there is one. */
  hasRoom(): boolean {
    const now = performance.now();
    this.#room = Math.min(BURST, this.#room + ((now - this.#at) / 1000) * PER_SECOND);
    this.#at = now;
    if (this.#room < 1) return false;
    this.#room -= 1;
    return true;
  }
}

/** Outputs that are text and grow. */
export class Growing {
  readonly #show: (outputs: Record<string, string>) => void;
  readonly #shown = new Map<string, number>();
  /** All of it so far. */
  readonly outputs: Record<string, string> = {};

  constructor(show: (outputs: Record<string, string>) => void) {
    this.#show = show;
  }

  add(output: string, piece: string): void {
    const grown = (this.outputs[output] ?? "") + piece;
    this.outputs[output] = grown;
    const added = grown.length - (this.#shown.get(output) ?? 0);
    if (added === 0 || (grown.length > SHOWN_AT_ONCE && added * STEP < grown.length)) return;
    this.#shown.set(output, grown.length);
    this.#show({ [output]: grown });
  }
}
