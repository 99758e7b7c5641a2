// Documents of flows as trees of steps, what became of each in a run, and the graph that the core draws of one.

/** A step of a document with the steps that stand in it. */
export type Step = { id: string; kind: string; body: Record<string, unknown>; below: { when?: string; step: Step }[] };
/** A step of a run, as the core tells it. */
export type Told = { path: string; status: string; try: number; tool?: string | null; run_id?: string | null; started_at: string; ended_at?: string | null; cost_micro: number; until?: string | null; error?: { code: string; message: string } | null };

const KINDS = ["call", "seq", "parallel", "each", "branch", "loop", "try", "set", "return", "fail", "sleep", "ask", "approve", "signal", "restart"];
const isObject = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);

function stepOf(of: unknown): Step | undefined {
  if (!isObject(of) || typeof of["id"] !== "string") return undefined;
  const kind = KINDS.find((k) => k in of) ?? Object.keys(of).find((k) => k !== "id") ?? "";
  const body = isObject(of[kind]) ? of[kind] : {};
  const below: Step["below"] = [];
  const add = (step: unknown, when?: string) => {
    const made = stepOf(step);
    if (made) below.push(when === undefined ? { step: made } : { when, step: made });
  };
  for (const step of kind === "seq" ? list(of["seq"]) : list(body["branches"])) add(step);
  for (const c of list(body["cases"])) if (isObject(c)) add(c["step"], `when ${String(c["when"] ?? "")}`);
  add(body["step"]);
  add(body["else"], "else");
  for (const c of list(body["catch"])) if (isObject(c)) add(c["step"], list(c["codes"]).length ? `on ${list(c["codes"]).join(", ")}` : "on any error");
  add(body["finally"], "in any case");
  return { id: of["id"], kind, body, below };
}

/** The steps of a document, one after another; what is done when it is canceled comes last. */
export function stepsOf(document: unknown): Step["below"] {
  if (!isObject(document)) return [];
  const steps = list(document["steps"]).map(stepOf).filter((s): s is Step => !!s).map((step) => ({ step }));
  const canceled = stepOf(document["on_cancel"]);
  return canceled ? [...steps, { when: "when it is canceled", step: canceled }] : steps;
}

/** What a step does, in a few words. */
export function whatOf(step: Step): string {
  const text = (key: string) => (typeof step.body[key] === "string" ? (step.body[key] as string) : "");
  switch (step.kind) {
    case "call": return text("tool");
    case "each": return `for each ${text("as") || "item"} of ${text("over")}`;
    case "loop": return `again while ${text("while")}`;
    case "branch": return "one of these";
    case "parallel": return "all of these at once";
    case "seq": return "one after another";
    case "try": return "with what to do about an error";
    case "signal": return `waits for the message ${text("name")}`;
    case "ask": return "asks a question";
    case "approve": return "waits for an approval";
    case "sleep": return text("for") ? `waits for ${text("for")}` : text("until") ? `waits until ${text("until")}` : "waits";
    case "set": return "sets variables";
    case "return": return "ends the flow";
    case "fail": return "fails the flow";
    case "restart": return "starts the flow anew";
    default: return step.kind;
  }
}

/** The messages that the steps of a document wait for, each with its schema if it has one. */
export function signalsOf(steps: Step["below"]): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const look = (all: Step["below"]) => {
    for (const { step } of all) {
      if (step.kind === "signal" && typeof step.body["name"] === "string") found.set(step.body["name"], step.body["schema"]);
      look(step.below);
    }
  };
  look(steps);
  return found;
}

/** A line of the tree of a run: a step, an item or round of one, and what the core tells of it. */
export type Line = { key: string; depth: number; name: string; when?: string | undefined; step?: Step; tries: Told[]; state: string; hidden?: number };

/** So many items of an `each` or rounds of a `loop` are shown until more are asked for. */
export const ITEMS_SHOWN = 20;

const REPEATS = ["each", "loop"];
const BUSY = ["running", "waiting", "retrying"];

/** Whether a flow may end before its last step. */
const returns = (steps: Step["below"]): boolean => steps.some(({ step }) => step.kind === "return" || returns(step.below));

/** What is said of a step that may have been taken or not: of steps that are over the core tells only calls. */
export const UNTOLD = "untold";

/** The tree of a run. A step that the core tells nothing of is over if a later one has begun, else it has not begun. */
export function linesOf(steps: Step["below"], told: Told[], status: string, more: ReadonlySet<string> = new Set()): Line[] {
  const open = BUSY.includes(status) || status === "queued";
  const by = new Map<string, Told[]>();
  for (const t of told) by.set(t.path, [...(by.get(t.path) ?? []), t]);
  const paths = [...by.keys()];
  const begun = (step: Step, prefix: string): boolean => {
    const path = prefix + step.id;
    return by.has(path) || paths.some((p) => p.startsWith(`${path}[`)) || step.below.some((b) => begun(b.step, prefix));
  };
  const whole = status === "succeeded" && !returns(steps);
  const out: Line[] = [];
  const seen = new Set<string>();
  // The call that undid a step stands in it.
  const undone = (path: string, depth: number) => {
    const tries = by.get(`${path}~undo`);
    if (!tries) return;
    seen.add(`${path}~undo`);
    out.push({ key: `${path}~undo`, depth, name: "undone", tries, state: tries.at(-1)?.status ?? "" });
  };
  const walk = (all: Step["below"], prefix: string, depth: number, inOrder: boolean, after: boolean, untold = false) => {
    const last = inOrder ? all.findLastIndex((b) => b.when === undefined && begun(b.step, prefix)) : -1;
    all.forEach(({ step, when }, i) => {
      const path = prefix + step.id;
      const tries = [...(by.get(path) ?? [])].sort((a, b) => a.try - b.try);
      seen.add(path);
      const now = tries.at(-1);
      const passed = after || i < last || (depth === 0 && whole);
      const inside = begun(step, prefix);
      const taken = when === undefined && !untold;
      const state = now ? now.status : inside ? (passed || !open ? "over" : "running") : passed ? (taken ? "over" : UNTOLD) : "";
      out.push({ key: path, depth, name: step.id, when, step, tries, state });
      undone(path, depth + 1);
      if (!REPEATS.includes(step.kind)) return walk(step.below, prefix, depth + 1, step.kind === "seq", passed, state === UNTOLD);
      const items = [...new Set(paths.filter((p) => p.startsWith(`${path}[`)).map((p) => Number(/^\[(\d+)\]/.exec(p.slice(path.length))?.[1] ?? -1)))].filter((n) => n >= 0).sort((a, b) => a - b);
      if (items.length === 0) return walk(step.below, prefix, depth + 1, false, passed, passed);
      const shown = more.has(path) ? items : items.slice(-ITEMS_SHOWN);
      if (shown.length < items.length) out.push({ key: `${path} more`, depth: depth + 1, name: path, tries: [], state: "", hidden: items.length - shown.length });
      for (const n of shown) {
        // One step in each item is shown as the item itself.
        const only = step.below.length === 1 ? step.below[0]!.step : undefined;
        if (only && only.below.length === 0) {
          const inner = `${path}[${n}]/${only.id}`;
          const of = [...(by.get(inner) ?? [])].sort((a, b) => a.try - b.try);
          seen.add(inner);
          out.push({ key: inner, depth: depth + 1, name: `${only.id} [${n}]`, step: only, tries: of, state: of.at(-1)?.status ?? "" });
          undone(inner, depth + 2);
        } else {
          out.push({ key: `${path}[${n}]`, depth: depth + 1, name: `[${n}]`, tries: [], state: "" });
          walk(step.below, `${path}[${n}]/`, depth + 2, false, passed);
        }
      }
      for (const p of paths) if (!more.has(path) && p.startsWith(`${path}[`)) seen.add(p);
    });
  };
  walk(steps, "", 0, true, false);
  // What no document explains is shown all the same: of a version that is gone, and calls that undo something.
  for (const [path, tries] of by) if (!seen.has(path)) out.push({ key: path, depth: 0, name: path, tries, state: tries.at(-1)?.status ?? "" });
  return out;
}

/** What a run waits for: the steps that are open and have no open step in them. */
export function waitsFor(lines: Line[]): Line[] {
  return lines.filter((l, i) => {
    const now = l.tries.at(-1);
    if (!now || now.ended_at || !BUSY.includes(now.status)) return false;
    for (let j = i + 1; j < lines.length && lines[j]!.depth > l.depth; j += 1) {
      const inner = lines[j]!.tries.at(-1);
      if (inner && !inner.ended_at) return false;
    }
    return true;
  });
}

export type Drawn = { nodes: { id: string; label: string; shape: "box" | "choice" | "wait" | "end" }[]; edges: { from: string; to: string; label?: string }[] };

const NODE = /^\s*(\w+)(\(\["?|\(\[|\{"?|\["?)(.*?)("?\]\)|"?\}|"?\])$/;
const EDGE = /^\s*(\w+) -->(?:\|"(.*)"\|)? (\w+)$/;
const plain = (text: string) => text.replaceAll("#lt;", "<").replaceAll("#gt;", ">").replaceAll("#35;", "#");

/** Reads the Mermaid source that the core writes of a flow: one box or one arrow a line. */
export function drawnOf(source: string): Drawn {
  const out: Drawn = { nodes: [], edges: [] };
  for (const line of source.split("\n").slice(1)) {
    const edge = EDGE.exec(line);
    if (edge) {
      out.edges.push(edge[2] === undefined ? { from: edge[1]!, to: edge[3]! } : { from: edge[1]!, to: edge[3]!, label: plain(edge[2]) });
      continue;
    }
    const node = NODE.exec(line);
    if (!node) continue;
    const quoted = node[2]!.endsWith('"');
    out.nodes.push({ id: node[1]!, label: plain(node[3]!), shape: node[2]!.startsWith("{") ? "choice" : node[2]!.startsWith("([") ? (quoted ? "wait" : "end") : "box" });
  }
  return out;
}
