/** The steps of a run's durable code: what it asks for goes to whoever watches the run, until it is answered. */

import { Fault } from "../../fault.js";
import { StepNames, type StepKeeper } from "../../steps.js";
import type { Task } from "../../task.js";

type Fields = Record<string, unknown>;

/** Steps that may have no answer at once. */
const OPEN_MAX = 64;

interface OpenStep {
  readonly frame: string;
  readonly asked: Fields;
  readonly done: (said: Fields) => void;
}

/** The steps of one run that have no answer. */
export class OpenSteps {
  readonly #open = new Map<string, OpenStep>();
  readonly #runId: string;
  readonly #task: Task;
  readonly #send: (frame: string) => void;

  constructor(runId: string, task: Task, send: (frame: string) => void) {
    this.#runId = runId;
    this.#task = task;
    this.#send = send;
  }

  /** The frames that whoever attaches now has not seen. */
  get frames(): string[] {
    return [...this.#open.values()].map(({ frame }) => frame);
  }

  /** Where the tool's code finds its steps. */
  keeper(): StepKeeper {
    return {
      names: new StepNames(),
      call: async (name, n, tool, inputs) => (await this.#ask({ step: { name, n }, tool, inputs }))["outputs"] ?? null,
      keep: async (name, n, given) => {
        const said = await this.#ask({ step: { name, n }, ...given });
        return "value" in said ? { value: said["value"] } : undefined;
      },
    };
  }

  /** Takes an answer; one that fits no open step changes nothing. */
  answer(said: Fields): void {
    const key = keyOf(said);
    const open = this.#open.get(key);
    if (!open) return;
    const { asked } = open;
    const wanted = "tool" in asked ? "outputs" : "value" in asked ? "value" : undefined;
    if (wanted !== undefined && !(wanted in said) && !said["error"]) return;
    this.#open.delete(key);
    open.done(said);
  }

  async #ask(asked: Fields): Promise<Fields> {
    const key = keyOf(asked);
    if (this.#open.size >= OPEN_MAX) throw new Fault("tool.busy", `A run has at most ${OPEN_MAX} steps under way at once.`);
    let leave = (): void => {};
    const said = new Promise<Fields>((resolve, reject) => {
      leave = this.#task.onCancel(reject);
      const frame = JSON.stringify({ kind: "Step", control: { run_id: this.#runId }, ...asked });
      this.#open.set(key, { frame, asked, done: resolve });
      this.#send(frame);
    });
    try {
      const { error, ...rest } = await said;
      if (error) throw Fault.read(error, "The step did not succeed.");
      return rest;
    } finally {
      leave();
      this.#open.delete(key);
    }
  }
}

function keyOf({ step }: Fields): string {
  const { name, n } = (step ?? {}) as Fields;
  return JSON.stringify([name, n]);
}
