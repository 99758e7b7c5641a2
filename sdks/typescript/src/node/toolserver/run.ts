/** One run of a tool server: a numbered log, and any number of connections that watch it. */

import { Fault, forOthers } from "../../fault.js";
import type { JsonSchema } from "../../json-schema.js";
import type { Scope } from "../../scope.js";
import { Task, traceOf } from "../../task.js";
import type { AnyTool } from "../../tool.js";
import { pack, unpack, valueOfFile } from "../values.js";
import { Growing, Pace } from "../growing.js";
import { readEnvelope } from "./envelope.js";
import { CODES, RunError } from "./error.js";
import { checkDestinations, looksLikeReference, readReference, write, type Reach } from "./files.js";
import { OpenSteps } from "./steps.js";

const LOG_BYTES_MAX = 4 * 1024 * 1024;
const GRACE_MS = 30_000;
const STUBBORN_MS = 5_000;
const SILENCE_MS = 8_000;

type Fields = Record<string, unknown>;

/** A request as it came. */
export interface RunRequest {
  control: Fields & { run_id: string };
  inputs?: unknown;
  outputs?: unknown;
}

/** A connection that watches. */
export interface Watcher {
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** What runs, and what it may reach. */
export interface Work {
  /** The tool's name, such as `acme/shout@1`; requests that name another one are refused. */
  reference: string;
  tool: AnyTool;
  scope: Scope;
  reach: Reach;
  /** Is told what goes wrong inside; callers are not. */
  log(id: string, error: unknown): void;
}

/** One run. */
export class Run {
  readonly id: string;
  readonly digest: string;
  done = false;
  endedAt = 0;
  readonly #work: Work;
  readonly #task = new Task();
  readonly #watchers = new Set<Watcher>();
  #log: { seq: number; frame: string }[] = [];
  #bytes = 0;
  #seq = 0;
  #told = 0;
  #stopped: string | undefined;
  #grace: NodeJS.Timeout | undefined;
  #life: NodeJS.Timeout | undefined;
  #late: NodeJS.Timeout | undefined;
  readonly #pace = new Pace();
  readonly #steps: OpenSteps;
  readonly #growing = new Growing((outputs) => this.#partial(outputs));

  constructor(request: RunRequest, digest: string, work: Work) {
    this.id = request.control.run_id;
    this.digest = digest;
    this.#work = work;
    this.#task.onSpend = (spent) => this.#spent(spent);
    this.#steps = new OpenSteps(this.id, this.#task, (frame) => {
      for (const watcher of this.#watchers) watcher.send(frame);
    });
    this.#task.serveBy({
      ...(request.control["steps"] === true ? { steps: this.#steps.keeper() } : {}),
      outputs: [],
      trace: traceOf(request.control),
      status: (text, progress) => {
        if (this.#pace.hasRoom() || progress === 1) this.#say("Event", { data: { phase: text || "checkpoint", progress } });
      },
      log: (text, level) => this.#logged(level, text),
      text: (piece, output) => this.#growing.add(output, piece),
      write: () => Promise.reject(new Fault("tool.unavailable", "Outputs of this server are written when the tool has ended.")),
    });
  }

  /** Sends what was said behind `after`, then what will be said. */
  watch(watcher: Watcher, after: number): void {
    clearTimeout(this.#grace);
    for (const { seq, frame } of this.#log) if (seq > after) watcher.send(frame);
    if (this.done) return watcher.close(1000, "done");
    this.#watchers.add(watcher);
    // They have no number: each connection is told of those that are open.
    for (const frame of this.#steps.frames) watcher.send(frame);
  }

  /** Says what became of a step. */
  stepped(said: Fields): void {
    this.#steps.answer(said);
  }

  /** A connection has gone. A run that nobody watches is given up after a while. */
  leave(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size > 0 || this.done) return;
    this.#grace = setTimeout(() => this.stop("ERR_CANCELED"), GRACE_MS);
  }

  /** Stops it: by its own clean-up, and after a while without it. */
  stop(code: string): void {
    if (this.done || this.#stopped) return;
    this.#stopped = code;
    this.#task.cancel(code === "ERR_TIMEOUT" ? new Fault("tool.timeout", "The run took too long.") : Fault.canceled());
    this.#late = setTimeout(() => this.#finish(this.#failed(undefined)), STUBBORN_MS);
  }

  async execute(request: RunRequest, refusal: RunError | undefined): Promise<void> {
    const limit = request.control["deadline_ms"];
    let last: Fields;
    try {
      if (refusal) throw refusal;
      if (Number.isInteger(limit)) this.#late = setTimeout(() => this.stop("ERR_TIMEOUT"), limit as number);
      const { inputs, outputs } = await this.#prepare(request);
      this.#event("started");
      last = await this.#settle(await this.#call(inputs), outputs);
    } catch (error) {
      last = this.#failed(error);
    }
    this.#finish(last);
  }

  async #prepare({ control, inputs, outputs }: RunRequest): Promise<{ inputs: Fields; outputs: Record<string, string> }> {
    const { mode = "mock", refs } = control;
    if (mode !== "mock" && mode !== "real") throw new RunError("ERR_INPUTS", "The mode is unknown.");
    const places = checkDestinations(this.#work.reach, asObject(outputs));
    const schema = this.#work.tool.schemas.input;
    const read: Fields = {};
    for (const [key, value] of Object.entries(asObject(inputs))) {
      const isReference = Array.isArray(refs) ? refs.includes(key) : looksLikeReference(value);
      read[key] = isReference ? this.#fromText(schema, key, await readReference(this.#work.reach, value)) : value;
    }
    return { inputs: read, outputs: places };
  }

  #fromText(schema: JsonSchema, key: string, text: string): unknown {
    try {
      return valueOfFile(schema, key, text);
    } catch {
      throw new RunError("ERR_INPUTS", `The file for ${key} is not JSON.`);
    }
  }

  async #call(inputs: Fields): Promise<Fields> {
    const { tool, scope } = this.#work;
    const onProgress = (data: unknown): void => this.#partial(data);
    const call = scope.start(tool, unpack(tool.schemas.input, inputs), { onProgress }, this.#task);
    try {
      const given = pack(tool.schemas.output, await call);
      return { ...this.#growing.outputs, ...given };
    } finally {
      await call.worked;
    }
  }

  /** Writes what has a place, and names the place in its stead. */
  async #settle(outputs: Fields, places: Record<string, string>): Promise<Fields> {
    this.#task.check();
    const shown: Fields = outputsOf(outputs);
    for (const [key, target] of Object.entries(places)) {
      if (shown[key] !== undefined) {
        await write(this.#work.reach, target, shown[key]);
        shown[key] = target;
      } else {
        this.#logged("warn", `Nothing was produced for ${key}`);
        shown[key] = null;
      }
    }
    this.#task.check();
    try {
      JSON.stringify(shown);
    } catch {
      throw new RunError("ERR_HANDLER", "The outputs are not JSON.");
    }
    return { control: { status: "success", cost_micro: this.#task.spent }, outputs: shown };
  }

  #failed(error: unknown): Fields {
    const texts: Record<string, string> = { ERR_CANCELED: "The run was canceled.", ERR_TIMEOUT: "The run took too long." };
    let told: { code: string; message: string };
    if (this.#stopped) {
      this.#event("preempted");
      told = { code: this.#stopped, message: texts[this.#stopped] ?? "The run was stopped." };
    } else if (error instanceof RunError) {
      told = { code: error.code, message: error.message };
    } else {
      const fault = Fault.from(error);
      if (fault.cause !== undefined) this.#work.log(this.id, fault.cause);
      told = { code: CODES[fault.code] ?? fault.code, message: forOthers(fault).message };
    }
    return { control: { status: "error", cost_micro: this.#task.spent }, outputs: {}, error: told };
  }

  #finish({ control, ...rest }: Fields): void {
    if (this.done) return;
    clearTimeout(this.#grace);
    clearTimeout(this.#late);
    this.#task.end();
    this.#say("Response", { ...rest, control: { ...(control as Fields), final: true } });
    if (this.#stopped === undefined) this.#event("completed");
    clearTimeout(this.#life);
    this.done = true;
    this.endedAt = Date.now();
    for (const watcher of this.#watchers) watcher.close(1000, "done");
    this.#watchers.clear();
  }

  #partial(data: unknown): void {
    if (this.done) return;
    const outputs = pack({ type: "object" }, data);
    this.#say("Response", { control: { cost_micro: this.#task.spent, final: false }, outputs });
  }

  /** Says what the run has cost so far, when that is more than was said. */
  #spent(cost_micro: number): void {
    if (cost_micro <= this.#told) return;
    this.#told = cost_micro;
    this.#say("Event", { control: { cost_micro }, data: { phase: "checkpoint" } });
  }

  #logged(level: string, msg: string): void {
    this.#say("Log", { data: { msg, level, timestamp: Date.now() / 1000 } });
  }

  #event(phase: string): void {
    this.#say("Event", { data: { phase } });
  }

  /** Numbers a frame, keeps it for those who come later, and sends it. */
  #say(kind: string, { control, ...rest }: Fields): void {
    if (this.done) return;
    const seq = (this.#seq += 1);
    const frame = JSON.stringify({ kind, control: { run_id: this.id, ...(control as Fields | undefined), seq }, ...rest });
    this.#log.push({ seq, frame });
    this.#bytes += frame.length;
    // Partial outputs are cumulative, so the oldest frames are missed least.
    while (this.#bytes > LOG_BYTES_MAX && this.#log.length > 1) this.#bytes -= this.#log.shift()?.frame.length ?? 0;
    for (const watcher of this.#watchers) watcher.send(frame);
    clearTimeout(this.#life);
    this.#life = setTimeout(() => this.#event("checkpoint"), SILENCE_MS);
  }
}

/** What a tool gave; one that reports an error has failed, whatever else it gave. */
function outputsOf(given: Fields): Fields {
  const envelope = readEnvelope(given);
  if (envelope === undefined) return { ...given };
  if (envelope.error) throw new RunError(envelope.error.code, envelope.error.message);
  return { ...envelope.outputs };
}

function asObject(value: unknown): Fields {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new RunError("ERR_INPUTS", "Inputs and outputs must be objects.");
  return value as Fields;
}
