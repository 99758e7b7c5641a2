/** Tries a durable tool: killed and repeated at every step, in memory. */

import { Fault } from "./fault.js";
import { StepNames, type Kept, type StepKeeper } from "./steps.js";
import type { AnyTool, InputOf } from "./tool.js";
import { tryWith, type Trial, type TrialOptions } from "./trial.js";

/** What a durable tool that is tried meets besides. */
export interface DurableTrialOptions extends TrialOptions {
  /** What `cx.now()` tells; move it by hand. */
  clock?: { now: Date };
}

/** What became of a durable tool that was tried. */
export interface DurableTrial<T> extends Trial<T> {
  /** The names of its steps with their numbers, such as `fetch#1`. */
  readonly steps: readonly string[];
  /** How often it was killed and repeated. */
  readonly kills: number;
}

interface Mark {
  what: string;
  ended?: { value: unknown } | { fault: Fault };
}

/** What is kept of the steps of one run, across its attempts. */
class Journal {
  readonly marks = new Map<string, Mark>();
  /** Set once the code has been to its end: then it asks for nothing new. */
  closed = false;
  killAt: number | undefined;
  points = 0;
  killed: (() => void) | undefined;
  #dead = false;

  /** A new attempt; `killed` is told if it is cut off. */
  begin(killed: () => void): void {
    [this.points, this.killed, this.#dead] = [0, killed, false];
  }

  /** A moment at which the tool may be cut off; then nothing of it goes on any more. */
  async point(): Promise<void> {
    this.#dead ||= this.points === this.killAt;
    this.points += 1;
    if (!this.#dead) return;
    this.killed?.();
    await new Promise<never>(() => {});
  }

  mark(key: string, what: string): Mark {
    let mark = this.marks.get(key);
    if (!mark) {
      if (this.closed) throw new Fault("step.diverged", `The code asks for the step ${key} only when it is repeated.`);
      this.marks.set(key, (mark = { what }));
    }
    if (mark.what !== what) throw new Fault("step.diverged", `The step ${key} was ${mark.what} before and is ${what} now.`);
    return mark;
  }
}

function keeper(journal: Journal, tools: Record<string, (input: any) => unknown>): StepKeeper {
  return {
    names: new StepNames(),
    async call(name, n, tool, input) {
      const mark = journal.mark(`${name}#${n}`, `${tool} with ${JSON.stringify(input)}`);
      await journal.point();
      mark.ended ??= await outcome(tools[tool], tool, input);
      await journal.point();
      if ("fault" in mark.ended) throw mark.ended.fault;
      return structuredClone(mark.ended.value);
    },
    async keep(name, n, given): Promise<Kept | undefined> {
      const key = `${name}#${n}`;
      if (!journal.marks.has(key)) {
        await journal.point();
        if (!given) return undefined;
      }
      const mark = journal.mark(key, "local code");
      mark.ended ??= { value: JSON.parse(JSON.stringify(given?.value ?? null)) as unknown };
      await journal.point();
      return "value" in mark.ended ? { value: structuredClone(mark.ended.value) } : undefined;
    },
  };
}

async function outcome(give: ((input: any) => unknown) | undefined, tool: string, input: unknown): Promise<{ value: unknown } | { fault: Fault }> {
  try {
    if (!give) throw new Fault("tool.not_found", `There is no tool ${tool} in this test.`);
    return { value: JSON.parse(JSON.stringify((await give(input)) ?? null)) as unknown };
  } catch (error) {
    return { fault: Fault.from(error) };
  }
}

/**
 * Runs a durable tool as `tryTool` does; then again and again, killed before and after every step
 * and repeated. A tool that asks for other steps when it is repeated, or gives something else
 * although its steps gave the same, fails with `step.diverged`.
 *
 * ```ts
 * const { output, kills } = await tryDurable(Order, { item: "tea" }, { tools });
 * ```
 */
export async function tryDurable<T extends AnyTool>(tool: T, input: InputOf<T>, options: DurableTrialOptions = {}): Promise<DurableTrial<T>> {
  const { clock = { now: new Date(Date.UTC(2026, 0, 1)) }, ...rest } = options;

  /** One attempt, with what it gave or threw; nothing if it was killed. */
  const attempt = async (journal: Journal): Promise<Trial<T> | Fault | undefined> => {
    const steps = keeper(journal, options.tools ?? {});
    const killed = new Promise<undefined>((resolve) => journal.begin(() => resolve(undefined)));
    const tried = tryWith(tool, input, rest, { steps, now: () => clock.now }).catch((error: unknown) => Fault.from(error));
    const ended = await Promise.race([tried, killed]);
    if (ended instanceof Fault && ended.code === "step.diverged") throw ended;
    return ended;
  };
  /** An attempt that is not killed, and another that finds all its steps. */
  const toTheEnd = async (journal: Journal): Promise<Trial<T> | Fault> => {
    const ended = await attempt(journal);
    journal.closed = true;
    const again = await attempt(journal);
    if (!ended || !again) throw new Fault("tool.internal", "The trial was cut off.");
    const [first, second] = [told(ended), told(again)];
    if (first !== second) throw new Fault("step.diverged", `Repeated with all its steps done, the tool gives ${second} instead of ${first}.`);
    return ended;
  };
  const journal = new Journal();
  const first = await toTheEnd(journal);
  let kills = 0;
  for (; ; kills += 1) {
    const killed = new Journal();
    killed.killAt = kills;
    if ((await attempt(killed)) !== undefined) break;
    killed.killAt = undefined;
    await toTheEnd(killed);
  }
  if (first instanceof Fault) throw first;
  return { ...first, steps: [...journal.marks.keys()], kills };
}

/** What an attempt came to, as it can be compared. */
function told(ended: Trial<any> | Fault): string {
  return JSON.stringify(ended instanceof Fault ? ended : (ended.output ?? null));
}
