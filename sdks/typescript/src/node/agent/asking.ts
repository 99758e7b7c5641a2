/** What a tool of an agent asks of the core while it works: other tools, questions, notices, models. */

import { randomUUID } from "node:crypto";

import { Fault } from "../../fault.js";
import { StepNames, type StepKeeper } from "../../steps.js";
import type { Task } from "../../task.js";
import type { Requester, RequestOptions } from "../../transport.js";
import type { Ask, Outcome } from "../../wire.js";
import type { Connection, Message } from "./connection.js";

type Payload = Record<string, unknown>;

interface Waiting {
  progress(data: unknown): void;
  done(payload: Payload): void;
}

/** The way to the core for one call. */
export class Asking implements Requester {
  readonly #connection: Connection;
  readonly #granted: readonly unknown[];
  readonly #message: Message;
  readonly #callId: string;
  readonly #waiting = new Map<string, Waiting>();

  constructor(connection: Connection, granted: readonly unknown[], message: Message, callId: string) {
    this.#connection = connection;
    this.#granted = granted;
    this.#message = message;
    this.#callId = callId;
  }

  async request(ask: Ask, options: RequestOptions): Promise<Outcome> {
    const payload = (ask.payload ?? {}) as Payload;
    switch (ask.builtin) {
      case "notify":
        return this.#notice(payload);
      case "elicit":
        return this.#question(payload, options);
      case "sample":
        return this.#invoke("wharf/sample", payload, options);
      default:
        return this.#invoke(ask.type, payload, options);
    }
  }

  /** The steps of the call's code. */
  steps(task: Task): StepKeeper {
    const options: RequestOptions = { task, onProgress: () => {} };
    const call_id = this.#callId;
    return {
      names: new StepNames(),
      call: async (name, n, tool_id, input) => {
        this.#needs("steps");
        const invoke_id = randomUUID();
        const call = { invoke_id, tool_id, input, parent_call_id: call_id, step: { name, n } };
        // A step is there for the next attempt, too; the end of the run ends it.
        const said = await this.#ask(invoke_id, "agent.tool.invoke", call, options);
        if (said["status"] !== "succeeded") throw Fault.read(said["error"], `${tool_id} did not succeed.`);
        return said["output"] ?? null;
      },
      keep: async (name, n, given) => {
        this.#needs("steps");
        const local = { call_id, step: { name, n }, ...given };
        const said = await this.#ask(keptNumber(call_id, { name, n }), "agent.step.local", local, options);
        if (said["error"]) throw Fault.read(said["error"], "The value could not be kept.");
        return "value" in said ? { value: said["value"] } : undefined;
      },
    };
  }

  /** News from the core, for whoever waits for them. */
  tell(number: string, type: string, payload: Payload): void {
    const waiting = this.#waiting.get(number);
    if (type !== "core.tool.invoke_stream") return waiting?.done(payload);
    const data = payload["data"] as Payload | undefined;
    waiting?.progress(payload["channel"] === "partial_result" ? data?.["json"] : data);
  }

  #notice({ message, level }: Payload): Outcome {
    this.#needs("notify");
    this.#send("agent.notice", { call_id: this.#callId, level: level ?? "info", text: message });
    return { status: "accepted", content: null };
  }

  async #question({ message, schema }: Payload, options: RequestOptions): Promise<Outcome> {
    this.#needs("ask");
    const ask_id = randomUUID();
    const asked = { ask_id, call_id: this.#callId, title: message, schema: schema ?? {} };
    const said = await this.#ask(ask_id, "agent.question.ask", asked, options);
    switch (said["status"]) {
      case "answered":
        return { status: "accepted", content: said["value"] ?? null };
      case "declined":
      case "denied":
        return { status: said["status"] };
      case "off_script":
        return { status: "other", content: String(said["text"] ?? "") };
      default:
        return { status: "cancelled" };
    }
  }

  async #invoke(tool_id: string, input: Payload, options: RequestOptions): Promise<Outcome> {
    this.#needs("invoke");
    const invoke_id = randomUUID();
    const call = { invoke_id, tool_id, input, parent_call_id: this.#callId };
    const said = await this.#ask(invoke_id, "agent.tool.invoke", call, options, () => {
      this.#send("agent.tool.invoke_cancel", { invoke_id });
    });
    if (said["status"] !== "succeeded") throw Fault.read(said["error"], `${tool_id} did not succeed.`);
    return { status: "accepted", content: said["output"] ?? null };
  }

  #ask(number: string, type: string, payload: Payload, { task, onProgress }: RequestOptions, stop?: () => void): Promise<Payload> {
    if (task.canceled) return Promise.reject(task.canceled);
    return new Promise((resolve, reject) => {
      const forget = task.onCancel((fault) => {
        if (!this.#waiting.delete(number)) return;
        stop?.();
        reject(fault);
      });
      const done = (said: Payload): void => {
        this.#waiting.delete(number);
        forget();
        resolve(said);
      };
      this.#waiting.set(number, { progress: onProgress, done });
      if (this.#send(type, payload)) return;
      this.#waiting.delete(number);
      forget();
      reject(new Fault("tool.input_too_large", "The input is larger than a frame may be."));
    });
  }

  #send(type: string, payload: Payload): boolean {
    return this.#connection.send(type, payload, { about: this.#message });
  }

  #needs(right: string): void {
    if (!this.#granted.includes(right)) throw Fault.denied("The core does not let this agent do that.");
  }
}

/** What an answer about a kept value is known by. */
export function keptNumber(callId: unknown, step: unknown): string {
  const { name, n } = (step ?? {}) as { name?: unknown; n?: unknown };
  return JSON.stringify([callId, name, n]);
}
