/** Layers around tools: two lanes, kept in the order in which they were added. */

import type { Cx } from "./context.js";
import type { AnyTool, InputOf, OutputOf, ProgressOf } from "./tool.js";

/**
 * A layer around a tool. It may change the input and the output, answer without going on, go on
 * any number of times, and see errors.
 */
export type Layer<T extends AnyTool = AnyTool> = (
  input: InputOf<T>,
  next: (input: InputOf<T>) => Promise<OutputOf<T>>,
  cx: Cx<ProgressOf<T>>,
) => OutputOf<T> | Promise<OutputOf<T>>;

/** Where a layer goes. */
export interface LayerOptions {
  /**
   * `outer` (the default): what was added first is outermost, and a parent's layers are outside
   * its children's. `inner`: the reverse, next to the tool.
   */
  lane?: "outer" | "inner";
}

/** @internal A layer as a scope keeps it. */
export interface Registered {
  readonly layer: Layer<any>;
  readonly lane: "outer" | "inner";
  /** Only for calls inside an instance of this agent. */
  readonly agent: object | undefined;
}

/** @internal The layers for one call, outermost first. `scopes` goes from the call's scope upwards. */
export function arrange(scopes: readonly (readonly Registered[] | undefined)[], agent: object | undefined): Layer<any>[] {
  const outer: Layer<any>[] = [];
  const inner: Layer<any>[] = [];
  for (const registered of scopes) {
    const fitting = (registered ?? []).filter((one) => one.agent === undefined || one.agent === agent);
    outer.unshift(...fitting.filter((one) => one.lane === "outer").map((one) => one.layer));
    inner.push(...fitting.filter((one) => one.lane === "inner").map((one) => one.layer).reverse());
  }
  return [...outer, ...inner];
}
