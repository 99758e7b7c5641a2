// The runs of this server: each has a numbered log, and any number of connections that watch it.

import { createHash } from "node:crypto";

import { checkDestinations, hydrate, write } from "./files.mjs";
import { Fault, run as runTool } from "./tool.mjs";

const RUNS_MAX = 64;
const KEPT_MAX = 1_000;
const KEPT_MS = 3_600_000;
const LOG_BYTES_MAX = 4 * 1024 * 1024;
const GRACE_MS = 30_000;
const SILENCE_MS = 8_000;

const runs = new Map();

/** How many runs are under way. */
export const working = () => [...runs.values()].filter((run) => !run.done).length;

/** Stops every run that is under way. */
export const stopAll = () => runs.forEach((run) => run.stop("ERR_CANCELED"));

/** Attaches a connection to the run it asks for, and starts the run if it is new. */
export function attach(request, watcher, draining) {
  const { run_id: id, attempt = 1, after = 0 } = request.control;
  const key = JSON.stringify([id, attempt]);
  const digest = digestOf(request);
  let run = runs.get(key);
  if (run && run.digest !== digest) return watcher.close(1008, "run_id conflict");
  watcher.send({ kind: "Ack", control: { run_id: id } });
  if (!run) {
    run = new Run(id, digest);
    runs.set(key, run);
    for (let older = 1; older < attempt && older < 100; older++) {
      runs.get(JSON.stringify([id, older]))?.stop("ERR_CANCELED");
    }
    forget();
    run.execute(request, draining || working() > RUNS_MAX);
  }
  run.watch(watcher, after);
  return run;
}

class Run {
  done = false;
  watchers = new Set();
  #log = [];
  #bytes = 0;
  #seq = 0;
  #abort = new AbortController();
  #grace;
  #life;
  #late;

  constructor(id, digest) {
    this.id = id;
    this.digest = digest;
  }

  /** Sends what was said behind `after`, then what will be said. */
  watch(watcher, after) {
    clearTimeout(this.#grace);
    for (const { seq, frame } of this.#log) if (seq > after) watcher.send(frame);
    if (this.done) return watcher.close(1000, "done");
    this.watchers.add(watcher);
  }

  /** A connection has gone. A run that nobody watches is given up after a while. */
  leave(watcher) {
    if (!this.watchers.delete(watcher) || this.watchers.size || this.done) return;
    this.#grace = setTimeout(() => this.stop("ERR_CANCELED"), GRACE_MS);
  }

  stop(code) {
    if (!this.done) this.#abort.abort(code);
  }

  async execute(request, busy) {
    const { mode = "mock", deadline_ms: limit } = request.control;
    let last;
    try {
      if (busy) throw new Fault("ERR_BUSY", "Too many runs at once.");
      if (Number.isInteger(limit)) this.#late = setTimeout(() => this.stop("ERR_TIMEOUT"), limit);
      const { inputs, outputs } = await this.#prepare(request);
      this.#event("started");
      const done = await runTool({ inputs, mode, report: this.#report(), signal: this.#abort.signal });
      last = await this.#settle(done, outputs);
    } catch (error) {
      last = this.#failed(error);
    }
    this.#finish(last);
  }

  async #prepare({ control, inputs, outputs }) {
    const { mode = "mock", refs } = control;
    if (mode !== "mock" && mode !== "real") throw new Fault("ERR_INPUTS", "The mode is unknown.");
    for (const value of [inputs, outputs]) {
      if (value != null && (typeof value !== "object" || Array.isArray(value))) {
        throw new Fault("ERR_INPUTS", "Inputs and outputs must be objects.");
      }
    }
    checkDestinations(outputs ?? {});
    return { inputs: await hydrate(inputs ?? {}, refs), outputs: outputs ?? {} };
  }

  /** Writes what has a place, and names the place in its stead. */
  async #settle({ outputs, cost }, places) {
    const shown = { ...outputs };
    for (const [key, target] of Object.entries(places)) {
      if (key in outputs) {
        await write(target, outputs[key]);
        shown[key] = target;
      } else {
        this.#logged("warn", `Nothing was produced for ${key}`);
        shown[key] = null;
      }
    }
    return { control: { status: "success", cost_micro: cost }, outputs: shown };
  }

  #failed(error) {
    const stopped = this.#abort.signal.aborted ? this.#abort.signal.reason : undefined;
    const texts = { ERR_CANCELED: "The run was canceled.", ERR_TIMEOUT: "The run took too long." };
    if (stopped) this.#event("preempted");
    else if (!(error instanceof Fault)) console.error(this.id, error); // The caller sees no details.
    const fault = error instanceof Fault ? error : new Fault("ERR_HANDLER", "The tool has failed.");
    const code = stopped ?? fault.code;
    const told = { code, message: texts[code] ?? fault.message };
    return { control: { status: "error", cost_micro: 0 }, outputs: {}, error: told };
  }

  #finish({ control, ...rest }) {
    clearTimeout(this.#grace);
    clearTimeout(this.#late);
    this.#say("Response", { ...rest, control: { ...control, final: true } });
    this.#event("completed");
    clearTimeout(this.#life);
    this.done = true;
    this.endedAt = Date.now();
    for (const watcher of this.watchers) watcher.close(1000, "done");
    this.watchers.clear();
  }

  #report() {
    return {
      log: (level, text) => this.#logged(level, text),
      event: (phase, progress) => this.#event(phase, progress),
      partial: (outputs) => this.#say("Response", { control: { final: false }, outputs }),
    };
  }

  #logged(level, msg) {
    this.#say("Log", { data: { msg, level, timestamp: Date.now() / 1000 } });
  }

  #event(phase, progress) {
    this.#say("Event", { data: progress === undefined ? { phase } : { phase, progress } });
  }

  /** Numbers a frame, keeps it for those who come later, and sends it. */
  #say(kind, { control, ...rest }) {
    const seq = ++this.#seq;
    const frame = JSON.stringify({ kind, control: { run_id: this.id, ...control, seq }, ...rest });
    this.#log.push({ seq, frame });
    this.#bytes += frame.length;
    // Partial outputs are cumulative, so the oldest frames are missed least.
    while (this.#bytes > LOG_BYTES_MAX && this.#log.length > 1) {
      this.#bytes -= this.#log.shift().frame.length;
    }
    for (const watcher of this.watchers) watcher.send(frame);
    clearTimeout(this.#life);
    this.#life = setTimeout(() => this.#event("checkpoint"), SILENCE_MS);
  }
}

/** Lets go of runs that ended long ago, or of the oldest when there are many. */
function forget() {
  for (const [key, run] of runs) {
    const old = run.done && (runs.size > KEPT_MAX || Date.now() - run.endedAt > KEPT_MS);
    if (old) runs.delete(key);
  }
}

/** What two requests must have in common to be one; addresses may be signed anew. */
function digestOf({ control, inputs, outputs }) {
  const plain = (key, value) => {
    if (typeof value === "string" && /^https?:\/\//.test(value)) return value.split("?")[0];
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  const asked = [control.mode ?? "mock", inputs ?? {}, outputs ?? {}];
  return createHash("sha256").update(JSON.stringify(asked, plain)).digest("hex");
}
