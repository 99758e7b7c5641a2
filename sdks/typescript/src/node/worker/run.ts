/** Runs a tool of a handler once and tells the server how it went. */

import { Fault } from "../../fault.js";
import { Scope } from "../../scope.js";
import { StepNames, type StepKeeper } from "../../steps.js";
import { Task, traceOf } from "../../task.js";
import type { AnyTool } from "../../tool.js";
import { Growing, Pace } from "../growing.js";
import { readEnvelope } from "../toolserver/envelope.js";
import { CODES } from "../toolserver/error.js";
import { pack, unpack } from "../values.js";
import type { Channel, Start } from "./channel.js";
import { Files, toJson } from "./files.js";
import { load, Unusable } from "./load.js";
import { nameOf, type Tracer } from "./trace.js";

const PHASE_CHARACTERS_MAX = 200;
const STORY_CHARACTERS_MAX = 64 * 1024;

/** One run. */
export class WorkerRun {
  readonly #channel: Channel;
  readonly #files: Files;
  readonly #task = new Task();
  readonly #pace = new Pace();
  readonly #growing = new Growing((outputs) => this.#emit("Response", { outputs }, { final: false }));
  #latest: (() => void) | undefined;
  #tracer: Tracer | undefined;
  #over = false;

  constructor(channel: Channel, start: Start) {
    this.#channel = channel;
    if (start.line_bytes_max !== undefined) channel.lineBytesMax = start.line_bytes_max;
    this.#files = new Files(channel, start);
    const task = this.#task;
    if (start.payload.mode === "mock") task.pretend();
    task.onSpend = (cost) => channel.send({ kind: "cost", cost });
    task.serveBy({
      ...(start.payload.steps === true ? { steps: stepsOf(channel) } : {}),
      outputs: Object.keys(this.#files.places),
      trace: traceOf(start.payload),
      status: (text, fraction) => this.#status(text, fraction),
      log: (msg, level) => this.#emit("Log", { data: { msg, level, timestamp: Date.now() / 1000 } }),
      text: (piece, output) => this.#growing.add(output, piece),
      write: (output, data) => this.#files.write(output, data),
    });
    channel.onCancel = () => task.cancel(Fault.canceled());
    // What nobody waited for fails the run, and the process is gone with it.
    const lost = (error: unknown): void => void this.#failed(error).then(() => process.exit(0));
    process.on("uncaughtException", lost);
    process.on("unhandledRejection", lost);
  }

  /** Runs the tool that is named, or the only one. */
  async run(file: string, known: string, wanted: string | undefined): Promise<void> {
    try {
      const handler = await load(file, known);
      this.#tracer = handler.tracer;
      const outputs = await this.#call(handler.choose(wanted));
      this.#done(await this.#files.settle(outputs));
    } catch (error) {
      await this.#failed(error);
    }
    await this.#channel.flushed();
  }

  async #call(tool: AnyTool): Promise<Record<string, unknown>> {
    const { input, output } = tool.schemas;
    const inputs = await this.#files.inputs(input);
    this.#emit("Event", { data: { phase: "started" } });
    const onProgress = (data: unknown): void => this.#emit("Response", { outputs: pack({ type: "object" }, data) }, { final: false });
    const call = new Scope().start(tool, unpack(input, inputs), { onProgress }, this.#task);
    try {
      const given = pack(output, await call);
      return { ...this.#growing.outputs, ...given };
    } finally {
      await call.worked;
    }
  }

  #status(text: string, progress: number | undefined): void {
    const tell = (): void => {
      this.#latest = undefined;
      this.#emit("Event", { data: { phase: "checkpoint", progress, text: text.slice(0, PHASE_CHARACTERS_MAX) } });
    };
    if (this.#pace.hasRoom() || progress === 1) tell();
    else this.#latest = tell;
  }

  #emit(kind: string, rest: Record<string, unknown>, control?: Record<string, unknown>): void {
    if (this.#over) return;
    this.#channel.send({ kind: "emit", frame: { kind, ...(control ? { control } : {}), ...rest } });
  }

  #done(outputs: Record<string, unknown>): void {
    this.#task.check();
    this.#latest?.();
    const plain = JSON.parse(`{${Object.entries(outputs).map(([key, value]) => `${JSON.stringify(key)}:${toJson(value, key)}`).join(",")}}`) as Record<string, unknown>;
    // The server would take them for an envelope, which they are not.
    const result = readEnvelope(plain) === undefined ? plain : { status: "success", outputs: plain };
    const sizes = Object.entries(plain).map(([key, value]) => [key, JSON.stringify(value).length] as const);
    const largest = sizes.sort(([, one], [, two]) => two - one)[0]?.[0];
    this.#channel.send({ kind: "done", result, cost: this.#task.spent }, largest);
    this.#over = true;
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#over) return;
    const told = this.#told(error);
    this.#channel.send({ kind: "failed", cost: this.#task.spent, ...told, detail: (told.detail ?? "").slice(-STORY_CHARACTERS_MAX) });
    this.#over = true;
    await this.#channel.flushed();
  }

  /** What the caller is told, and what only the server's log gets. */
  #told(error: unknown): { code: string; message: string; detail?: string } {
    const { canceled } = this.#task;
    if (canceled) return { code: "ERR_CANCELED", message: "The run was canceled." };
    if (error instanceof Unusable) return { code: "ERR_HANDLER", message: error.sentence, detail: error.lines.join("\n") };
    // A fault that only stands for another error says no more than that.
    const standsFor = error instanceof Fault && error.code === "tool.internal" ? error.cause : undefined;
    if (error instanceof Fault && standsFor === undefined) {
      const told = { code: CODES[error.code] ?? error.code, message: error.message };
      return error.cause === undefined ? told : { ...told, detail: this.#tracer?.lines(error.cause).join("\n") ?? "" };
    }
    const thrown = standsFor ?? error;
    return { code: "ERR_HANDLER", message: nameOf(thrown), detail: this.#tracer?.lines(thrown).join("\n") ?? String(thrown) };
  }
}

/** The steps of the tool's code, which the server passes on. */
function stepsOf(channel: Channel): StepKeeper {
  const ask = (name: string, n: number, more: object): ReturnType<Channel["ask"]> => channel.ask({ kind: "step", step: { name, n }, ...more });
  return {
    names: new StepNames(),
    call: async (name, n, tool, inputs) => (await ask(name, n, { tool, inputs }))["outputs"] ?? null,
    keep: async (name, n, given) => {
      const said = await ask(name, n, given ?? {});
      return "value" in said ? { value: said["value"] } : undefined;
    },
  };
}
