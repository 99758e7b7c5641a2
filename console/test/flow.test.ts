import { describe, expect, test } from "vitest";
import { drawnOf, ITEMS_SHOWN, linesOf, signalsOf, stepsOf, UNTOLD, waitsFor, whatOf, type Told } from "../src/lib/flow";

const DOCUMENT = {
  steps: [
    { id: "look", each: { over: "inputs.all", as: "one", step: { id: "ask", call: { tool: "wharf/echo" } } } },
    { id: "both", parallel: { branches: [{ id: "paid", signal: { name: "payment", schema: { type: "object" } } }, { id: "nap", sleep: { for: "1h" } }] } },
    { id: "which", branch: { cases: [{ when: "true", step: { id: "yes", call: { tool: "wharf/count" } } }], else: { id: "no", set: { a: "1" } } } },
    { id: "safe", try: { step: { id: "act", call: { tool: "a/b" } }, catch: [{ codes: ["x.y"], step: { id: "mend", seq: [{ id: "m1", call: { tool: "c/d" } }] } }], finally: { id: "tell", call: { tool: "e/f" } } } },
  ],
  on_cancel: { id: "undo", call: { tool: "wharf/notify" } },
};
const told = (path: string, status: string, more: Partial<Told> = {}): Told => ({ path, status, try: 1, started_at: "2026-01-01T00:00:00Z", cost_micro: 0, ...(["succeeded", "failed"].includes(status) ? { ended_at: "2026-01-01T00:00:01Z" } : {}), ...more });

describe("flows", () => {
  test("a document is a tree of steps", () => {
    const steps = stepsOf(DOCUMENT);
    expect(steps.map((s) => s.step.id)).toEqual(["look", "both", "which", "safe", "undo"]);
    expect(steps[3]!.step.below.map((b) => [b.when, b.step.id])).toEqual([[undefined, "act"], ["on x.y", "mend"], ["in any case", "tell"]]);
    expect(steps[2]!.step.below.map((b) => b.when)).toEqual(["when true", "else"]);
    expect(whatOf(steps[0]!.step)).toBe("for each one of inputs.all");
    expect([...signalsOf(steps)]).toEqual([["payment", { type: "object" }]]);
    expect(stepsOf(undefined)).toEqual([]);
    expect(stepsOf({ steps: [1, null, { call: {} }, { id: "odd", later: {} }] }).map((s) => s.step.kind)).toEqual(["later"]);
  });

  test("what is told of a run stands in the tree, with items, tries and what waits", () => {
    const lines = linesOf(stepsOf(DOCUMENT), [
      told("look[0]/ask", "succeeded"), told("look[1]/ask", "failed"), told("both", "waiting"), told("paid", "waiting", { until: "2026-02-01T00:00:00Z" }),
      told("nap", "retrying", { ended_at: "2026-01-01T00:00:01Z" }), told("nap", "waiting", { try: 2 }), told("gone/step", "succeeded"),
    ], "running");
    expect(lines.map((l) => [l.depth, l.name, l.state])).toEqual([
      [0, "look", "over"], [1, "ask [0]", "succeeded"], [1, "ask [1]", "failed"], [0, "both", "waiting"], [1, "paid", "waiting"], [1, "nap", "waiting"],
      [0, "which", ""], [1, "yes", ""], [1, "no", ""], [0, "safe", ""], [1, "act", ""], [1, "mend", ""], [2, "m1", ""], [1, "tell", ""], [0, "undo", ""], [0, "gone/step", "succeeded"],
    ]);
    expect(lines[5]!.tries.map((t) => t.try)).toEqual([1, 2]);
    expect(waitsFor(lines).map((l) => l.name)).toEqual(["paid", "nap"]);
  });

  test("of a run that is over, what may have been left out is not said to be done", () => {
    const lines = linesOf(stepsOf(DOCUMENT), [told("look[0]/ask", "succeeded"), told("act", "succeeded")], "succeeded");
    const state = new Map(lines.map((l) => [l.key, l.state]));
    expect(["both", "paid", "nap", "which", "safe"].map((k) => state.get(k))).toEqual(["over", "over", "over", "over", "over"]);
    expect(["yes", "no", "mend", "m1", "tell", "undo"].map((k) => state.get(k))).toEqual([UNTOLD, UNTOLD, UNTOLD, UNTOLD, UNTOLD, UNTOLD]);
    const early = linesOf(stepsOf({ steps: [{ id: "a", call: { tool: "a/b" } }, { id: "out", return: {} }, { id: "z", set: {} }] }), [told("a", "succeeded")], "succeeded");
    expect(early.map((l) => l.state)).toEqual(["succeeded", "", ""]);
  });

  test("what undid a step stands in it", () => {
    const steps = stepsOf({ steps: [{ id: "a", call: { tool: "x/y", compensate: { tool: "x/z" } } }, { id: "b", call: { tool: "x/y" } }] });
    const lines = linesOf(steps, [told("a", "succeeded"), told("b", "failed"), told("a~undo", "succeeded")], "failed");
    expect(lines.map((l) => [l.depth, l.name, l.state])).toEqual([[0, "a", "succeeded"], [1, "undone", "succeeded"], [0, "b", "failed"]]);
  });

  test("of many items the last are shown, and all on request", () => {
    const many = Array.from({ length: 50 }, (_, i) => told(`look[${i}]/ask`, "succeeded"));
    const steps = stepsOf(DOCUMENT);
    const few = linesOf(steps, many, "running").filter((l) => l.depth === 1 && l.key.startsWith("look"));
    expect(few[0]!.hidden).toBe(50 - ITEMS_SHOWN);
    expect(few.at(-1)!.name).toBe("ask [49]");
    expect(few.length).toBe(ITEMS_SHOWN + 1);
    expect(linesOf(steps, many, "running", new Set(["look"])).filter((l) => l.name.startsWith("ask [")).length).toBe(50);
  });

  test("the graph of the core is read, whatever stands in its boxes", () => {
    const drawn = drawnOf('flowchart TD\n  begin([begin])\n  s_end["end: wharf/echo"]\n  begin --> s_end\n  s_which{"which: branch"}\n  s_end --> s_which\n  s_which -->|"inputs.a == \'b\' #lt; 3"| s_stop\n  s_stop(["stop: signal a#35;b"])\n  over([end])\n  s_stop --> over\n');
    expect(drawn.nodes).toEqual([
      { id: "begin", label: "begin", shape: "end" }, { id: "s_end", label: "end: wharf/echo", shape: "box" }, { id: "s_which", label: "which: branch", shape: "choice" },
      { id: "s_stop", label: "stop: signal a#b", shape: "wait" }, { id: "over", label: "end", shape: "end" },
    ]);
    expect(drawn.edges).toEqual([{ from: "begin", to: "s_end" }, { from: "s_end", to: "s_which" }, { from: "s_which", to: "s_stop", label: "inputs.a == 'b' < 3" }, { from: "s_stop", to: "over" }]);
    expect(drawnOf("")).toEqual({ nodes: [], edges: [] });
  });
});
