/** What can make calls: a scope, and the context of a call inside a tool. */

import { elicit, notify, sample, type Elicited, type ElicitInput, type NotifyInput, type Sampled, type SampleInput } from "./builtins.js";
import type { Call, CallOptions } from "./call.js";
import type { Schema, Taken } from "./schema.js";
import type { AnyTool, InputOf, OutputOf, ProgressOf } from "./tool.js";

/** Makes calls. */
export abstract class Caller {
  /** Calls a tool. */
  abstract call<T extends AnyTool>(
    tool: T,
    input: InputOf<T>,
    options?: CallOptions<ProgressOf<T>>,
  ): Call<OutputOf<T>, ProgressOf<T>>;
  /** Calls a tool of which only the name is known. */
  abstract call(name: string, input: unknown, options?: CallOptions): Call<unknown, unknown>;

  /**
   * Asks somebody. Every answer is a value; only trouble on the way is an error.
   *
   * ```ts
   * const answer = await cx.ask("Use the cheapest?", z.object({ ok: z.boolean() }));
   * if (answer.status === "accepted" && answer.content.ok) …
   * ```
   */
  ask<S extends Schema>(
    message: string,
    schema: S,
    options: Pick<ElicitInput, "type" | "meta"> & { signal?: AbortSignal } = {},
  ): Call<Elicited<Taken<S>>, never> {
    const { signal, ...more } = options;
    const call = this.call(elicit, { message, schema, ...more }, signal ? { signal } : {});
    return call as Call<Elicited<Taken<S>>, never>;
  }

  /** The same as `ask`, by the name that it has on the wire. */
  elicit<S extends Schema>(
    message: string,
    schema: S,
    options: Pick<ElicitInput, "type" | "meta"> & { signal?: AbortSignal } = {},
  ): Call<Elicited<Taken<S>>, never> {
    return this.ask(message, schema, options);
  }

  /** Tells people something. It is over when the other side has taken it. */
  notify(message: string, more: Omit<NotifyInput, "message"> = {}): Call<null, never> {
    return this.call(notify, { message, ...more });
  }

  /** Asks a model. */
  sample(input: SampleInput, options: { signal?: AbortSignal } = {}): Call<Sampled, never> {
    return this.call(sample, input, options);
  }
}
