/** The agent's end of one session with the core. */

import { Fault, forOthers } from "../../fault.js";
import type { Desk } from "../../serve.js";
import { Task, traceOf } from "../../task.js";
import type { AnyTool } from "../../tool.js";
import { objectSchema, pack, unpack } from "../values.js";
import { Asking, keptNumber } from "./asking.js";
import { faultOf, Refused, type Connection, type Message } from "./connection.js";
import { hydrate } from "./inputs.js";

const VERSION = 1;
const CAPABILITIES = ["tools", "streaming", "cancellation", "invoke", "ask", "notify", "steps"];
const CALLS_REMEMBERED_MAX = 10_000;
const UNSENT_BYTES_MAX = 4 * 1024 * 1024;

/** Who the agent is, and what it holds at most. */
export interface Identity {
  id: string;
  version: string;
  callsMax: number;
}

interface Running {
  message: Message;
  task: Task;
  asking: Asking;
  seq: number;
}

/** One session, from the handshake to the goodbye. */
export class Session {
  readonly #connection: Connection;
  readonly #identity: Identity;
  readonly #desk: Desk;
  readonly #tools: ReadonlyMap<string, AnyTool>;
  readonly #calls = new Map<string, Running>();
  readonly #finished = new Set<string>();
  readonly #started = performance.now();
  #granted: readonly unknown[] = [];
  #draining = false;
  #beat: ReturnType<typeof setInterval> | undefined;

  constructor(connection: Connection, identity: Identity, desk: Desk) {
    this.#connection = connection;
    this.#identity = identity;
    this.#desk = desk;
    this.#tools = new Map(desk.tools.map((tool) => [`${identity.id}/${tool.name}`, tool]));
  }

  /** Serves until the connection is over. */
  async run(token: string): Promise<void> {
    const messages = this.#connection.messages();
    try {
      this.#hello(token);
      const first = await messages.next();
      if (first.done) throw new Refused("The core closed the connection before it welcomed this agent.");
      this.#welcomed(first.value);
      for await (const message of messages) if (!this.#take(message)) break;
    } finally {
      this.stop();
    }
  }

  /** Ends the session, and with it everything under way. */
  stop(): void {
    clearInterval(this.#beat);
    for (const { task } of this.#calls.values()) task.cancel(Fault.canceled("The core has gone."));
    this.#connection.close();
  }

  #hello(session_token: string): void {
    const { id: agent_id, version: agent_version } = this.#identity;
    const protocol = { supported_versions: [VERSION], capabilities: CAPABILITIES };
    this.#connection.send("agent.hello", { session_token, agent_id, agent_version, protocol });
  }

  #welcomed(message: Record<string, unknown>): void {
    if (message["type"] !== "core.welcome") throw new Refused("The core answered with something other than a welcome.");
    if (message["error"]) throw new Refused(`The core refused this agent: ${codeOf(message["error"])}.`);
    const payload = (message["payload"] ?? {}) as Record<string, unknown>;
    const { accepted_version, session_id, heartbeat_interval_ms: interval, capabilities, max_frame_bytes: bytes } = payload;
    if (accepted_version !== VERSION) throw new Refused("The core chose a version of the protocol that was not offered.");
    if (typeof session_id !== "string" || typeof interval !== "number") throw new Refused("The core's welcome is not complete.");
    this.#granted = Array.isArray(capabilities) ? capabilities : [];
    if (typeof bytes === "number") this.#connection.sendBytesMax = this.#connection.receiveBytesMax = bytes;
    const tools = [...this.#tools].map(([tool_id, tool]) => definition(tool_id, tool));
    this.#connection.send("agent.tools.register", { tools, replace: true });
    const beat = (): void => {
      const uptime_ms = Math.round(performance.now() - this.#started);
      this.#connection.send("agent.heartbeat", { session_id, uptime_ms, status: "ok", inflight_calls: this.#calls.size });
    };
    beat();
    this.#beat = setInterval(beat, Math.max(1, interval));
  }

  /** Takes a message. `false` ends the session. */
  #take(message: Record<string, unknown>): boolean {
    const wrong = faultOf(message);
    if (wrong !== undefined) {
      if (message["error"] === undefined) this.#refuse(message as Message, "protocol.invalid_envelope", wrong);
      return true;
    }
    const known = message as Message;
    const { type, payload } = known;
    switch (type) {
      case "core.tool.call":
        this.#begin(known);
        return true;
      case "core.tool.cancel":
        this.#cancel(known);
        return true;
      case "core.tool.invoke_stream":
      case "core.tool.invoke_result":
        return this.#tell(payload["invoke_id"], type, payload);
      case "core.question.answer":
        return this.#tell(payload["ask_id"], type, payload);
      case "core.step.kept":
        return this.#tell(keptNumber(payload["call_id"], payload["step"]), type, payload);
      case "core.ping":
        return this.#connection.send("agent.pong", {}, { answers: known });
      case "core.goodbye":
        return this.#drain(payload["drain_ms"]);
      case "core.tools.registered":
        return this.#registered(payload["rejected"]);
      case "core.tools.unregistered":
      case "core.error":
        return true;
    }
    if (type.startsWith("agent.")) throw new Refused("The core sent a message that only an agent may send.");
    const expectsReply = "request_id" in known && !("in_reply_to" in known) && !("error" in known);
    if (expectsReply) this.#refuse(known, "protocol.unknown_type", "This agent does not know that type.");
    return true;
  }

  /** A tool that the core did not take would otherwise just not be there. */
  #registered(rejected: unknown): true {
    for (const one of Array.isArray(rejected) ? rejected : []) {
      const tool = [...this.#tools.keys()].find((id) => id === one?.tool_id) ?? "a tool";
      process.stderr.write(`The core did not take ${tool}: ${codeOf(one?.error)}.\n`);
    }
    return true;
  }

  #refuse(message: Message, code: string, text: string): void {
    const answers = typeof message.id === "string" ? message : undefined;
    this.#connection.send("agent.error", {}, { answers, about: message, error: { code, message: text, where: "agent.runtime" } });
  }

  #tell(number: unknown, type: string, payload: Record<string, unknown>): true {
    for (const { asking } of this.#calls.values()) asking.tell(String(number), type, payload);
    return true;
  }

  /** Ends now, or when the calls under way are over and at the latest after this time. */
  #drain(drainMs: unknown): boolean {
    if (this.#calls.size === 0 || typeof drainMs !== "number" || drainMs <= 0) return false;
    this.#draining = true;
    setTimeout(() => this.stop(), drainMs).unref();
    return true;
  }

  #cancel(message: Message): void {
    const call_id = message.payload["call_id"];
    if (typeof call_id !== "string") return;
    const running = this.#calls.get(call_id);
    this.#connection.send("agent.tool.cancel_ack", { call_id, accepted: running !== undefined }, { answers: message });
    running?.task.cancel(Fault.canceled());
  }

  #begin(message: Message): void {
    const { call_id: id, tool_id, input } = message.payload;
    const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
    const missing = typeof id !== "string" ? "call_id" : typeof tool_id !== "string" ? "tool_id" : isObject ? undefined : "input";
    if (missing !== undefined || typeof id !== "string" || typeof tool_id !== "string") {
      return this.#refuse(message, "protocol.invalid_envelope", `\`payload.${missing}\` is missing or has the wrong form.`);
    }
    if (this.#calls.has(id) || this.#finished.has(id)) {
      return this.#refuse(message, "tool.duplicate_call", "This call was made before.");
    }
    const busy = this.#draining || this.#calls.size >= this.#identity.callsMax;
    if (busy) return this.#finish(id, message, failed(new Fault("tool.busy", "The agent has too many calls at once.", { retryable: true })));
    const task = new Task();
    if ((message.payload["context"] as { mode?: unknown } | undefined)?.mode === "mock") task.pretend();
    const asking = new Asking(this.#connection, this.#granted, message, id);
    const running: Running = { message, task, asking, seq: 0 };
    this.#calls.set(id, running);
    task.onSpend = (spent) => this.#cost(id, running, spent);
    task.serveBy({
      outputs: [],
      steps: asking.steps(task),
      trace: traceOf(message as unknown as Record<string, unknown>),
      status: (text, fraction) => this.#tellOf(id, running, "status", { text, fraction: fraction ?? 0 }),
      log: (text) => this.#tellOf(id, running, "log", { text }),
      text: (text) => this.#tellOf(id, running, "stdout", { text }),
      write: () => Promise.reject(new Fault("tool.unavailable", "An agent in TypeScript writes no files of runs.")),
    });
    void this.#work(id, tool_id, input as Record<string, unknown>).then((outcome) => {
      task.end();
      this.#finish(id, message, outcome);
    });
  }

  async #work(id: string, toolId: string, input: Record<string, unknown>): Promise<Record<string, unknown>> {
    const started_at = new Date().toISOString();
    const running = this.#calls.get(id) as Running;
    const { task, asking } = running;
    let outcome: Record<string, unknown>;
    try {
      const tool = this.#tools.get(toolId);
      if (!tool) throw new Fault("tool.not_found", "This agent has no such tool.");
      const read = await hydrate(tool.schemas.input, input, running.message.payload["context"]);
      const request = { id, kind: "elicit" as const, type: tool.name, payload: unpack(tool.schemas.input, read) };
      const progress = (data: unknown): void => this.#stream(id, running, data);
      const answer = await this.#desk.answer(request, { task, progress, back: asking });
      task.check();
      if (answer.status !== "accepted") throw new Fault("tool.internal", "The tool failed inside.");
      outcome = { status: "succeeded", output: pack(tool.schemas.output, answer.content) };
    } catch (error) {
      const fault = task.canceled ?? forOthers(Fault.from(error));
      outcome = fault.code === "tool.canceled" ? canceled() : failed(fault);
    }
    // What was spent is spent, however the call ended.
    return { ...outcome, started_at, finished_at: new Date().toISOString(), metrics: { cost_micro: task.spent } };
  }

  /** One piece of progress. One that is too large, or that the core does not take, is left out. */
  #stream(id: string, running: Running, data: unknown): void {
    const json = typeof data === "object" && data !== null && !Array.isArray(data) ? data : { value: data ?? null };
    this.#tellOf(id, running, "partial_result", { json });
  }

  #tellOf(id: string, running: Running, channel: string, data: Record<string, unknown>): void {
    if (!this.#calls.has(id) || this.#connection.unsent > UNSENT_BYTES_MAX) return;
    const payload = { call_id: id, seq: running.seq + 1, channel, data };
    if (this.#connection.send("agent.tool.stream", payload, { about: running.message })) running.seq += 1;
  }

  /** Tells the core what a call has cost so far, so that a budget can stop it. The result has the sum. */
  #cost(id: string, running: Running, cost_micro: number): void {
    if (!this.#calls.has(id) || this.#connection.unsent > UNSENT_BYTES_MAX) return;
    const payload = { call_id: id, seq: running.seq + 1, channel: "status", data: { text: "" }, cost_micro };
    if (this.#connection.send("agent.tool.stream", payload, { about: running.message })) running.seq += 1;
  }

  /** Sends the one result of a call. */
  #finish(id: string, message: Message, outcome: Record<string, unknown>): void {
    this.#calls.delete(id);
    this.#finished.add(id);
    for (const oldest of this.#finished) {
      if (this.#finished.size <= CALLS_REMEMBERED_MAX) break;
      this.#finished.delete(oldest);
    }
    const send = (result: Record<string, unknown>): boolean =>
      this.#connection.send("agent.tool.result", { ...result, call_id: id }, { answers: message });
    try {
      if (!send(outcome)) send(failed(new Fault("tool.output_too_large", "The output is larger than a frame may be.")));
    } catch {
      send(failed(new Fault("tool.invalid_output", "The output is not JSON.")));
    }
    if (this.#draining && this.#calls.size === 0) this.stop();
  }
}

function definition(tool_id: string, tool: AnyTool): Record<string, unknown> {
  const { name, description, sideEffects, schemas, mock, free, durable } = tool;
  const told: Record<string, unknown> = {
    tool_id,
    name,
    description,
    input_schema: objectSchema(schemas.input),
    output_schema: objectSchema(schemas.output),
    capabilities: ["streaming", "cancellation", ...said({ mock, free, durable })],
    requires_directive: false,
  };
  if (sideEffects !== undefined) told["side_effects"] = sideEffects;
  return told;
}

/** The words that are true of a tool. */
function said(words: Record<string, boolean>): string[] {
  return Object.keys(words).filter((word) => words[word]);
}

function failed(fault: Fault): Record<string, unknown> {
  return { status: "failed", error: fault.toJSON() };
}

function canceled(): Record<string, unknown> {
  return { status: "canceled", error: { code: "tool.canceled", message: "The call was canceled." } };
}

/** An error's code if it looks like one: nothing else of a refusal is worth printing. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[a-z0-9_.]{1,100}$/i.test(code) ? code : "no reason was given";
}
