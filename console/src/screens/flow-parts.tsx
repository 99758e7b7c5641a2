// What screens of flows share: steps as a tree, the graph of a document, adding a version.
import { useState } from "preact/hooks";
import { ApiError, seg, send } from "../api/client";
import type { Flow, FlowCheck, FlowFinding } from "../api/types";
import { drawnOf, whatOf, type Step } from "../lib/flow";
import { fold, sideOf } from "../lib/fold";
import { count } from "../lib/format";
import { Obj, parse, write, type Json } from "../lib/json";
import { flowLink, go, toolLink } from "../router";
import { Dialog } from "../ui/dialog";
import { AreaField, Check } from "../ui/form";
import { Graph, type GraphNode } from "../ui/graph";
import { Button, Foreign, Note, Refusal } from "../ui/parts";
import { toast } from "../ui/toast";

/** The steps of a document; what stands in a step stands further in. */
export function Steps({ steps }: { steps: Step["below"] }) {
  return (
    <ol class="steps">
      {steps.map(({ step, when }) => (
        <li key={step.id}>
          <div class="row wrap">
            {when && <span class="badge"><Foreign text={when} max={120} /></span>}
            <b><Foreign text={step.id} max={80} /></b>
            <span class="muted">{step.kind === "call" ? "calls" : <Foreign text={whatOf(step)} max={200} />}</span>
            {step.kind === "call" && <a class="break" href={toolLink(whatOf(step))}><Foreign text={whatOf(step)} max={120} /></a>}
          </div>
          {step.below.length > 0 && <Steps steps={step.below} />}
        </li>
      ))}
    </ol>
  );
}

/** The graph that the core draws of a document; a call leads to its tool. */
export function FlowGraph({ source }: { source: string }) {
  const [from, setFrom] = useState<ReadonlyMap<string, number>>(new Map());
  const drawn = drawnOf(source);
  const edges = drawn.edges.map((e): [string, string] => [e.from, e.to]);
  const shown = fold(drawn.nodes[0]?.id ?? "begin", edges, from);
  const kind = { box: "step", choice: "choice", wait: "run", end: "end" } as const;
  const nodes: GraphNode[] = drawn.nodes.filter((n) => shown.nodes.has(n.id)).map((n) => {
    const tool = n.shape === "box" ? /^[^:]+: ([^ ]+\/[^ ]+)$/.exec(n.label)?.[1] : undefined;
    return { id: n.id, label: n.label, kind: kind[n.shape], ...(tool ? { href: toolLink(tool) } : {}) };
  });
  const arrows = [...shown.edges];
  for (const part of shown.folded) {
    const side = sideOf(part.node, part.way);
    nodes.push({ id: `more ${side}`, label: `${count(part.hidden)} more`, kind: "more", expand: () => setFrom(new Map(from).set(side, part.next)) });
    arrows.push(part.way === "out" ? [part.node, `more ${side}`] : [`more ${side}`, part.node]);
  }
  const labels = new Map(drawn.edges.flatMap((e) => (e.label ? [[`${e.from}\n${e.to}`, e.label] as const] : [])));
  return <Graph nodes={nodes} down edges={arrows} labels={labels} label="Graph of the flow" />;
}

const START = `{
  "name": "hello",
  "description": "Says something and counts.",
  "steps": [
    { "id": "say", "call": { "tool": "wharf/echo", "inputs": { "text": "hello" } } },
    { "id": "count", "call": { "tool": "wharf/count", "inputs": { "n": 3, "delay_ms": 0 } } }
  ],
  "output": { "sum": "\${steps.count.outputs.sum}" }
}`;

function Findings({ of }: { of: FlowFinding[] }) {
  return (
    <ul class="col tight">
      {of.map((f) => (
        <li><Note tone={f.level === "error" ? "bad" : "warn"}>{f.place && <><code class="break"><Foreign text={f.place} max={200} /></code> </>}<Foreign text={f.text} max={1000} /></Note></li>
      ))}
    </ul>
  );
}

/** A document to write, check and add: a new flow, or the next version of one. */
export function AddFlow({ document, onClose, onDone }: { document?: Json; onClose: () => void; onDone?: () => void }) {
  const [text, setText] = useState(() => (document === undefined ? START : write(document)));
  const [pin, setPin] = useState(false);
  const [found, setFound] = useState<FlowCheck>();
  const [error, setError] = useState<ApiError>();
  let json: Json | undefined;
  let fault: string | undefined;
  try {
    json = parse(text);
    if (!(json instanceof Obj)) fault = "A document is an object: { … }.";
  } catch (e) {
    fault = (e as Error).message;
  }
  const ask = async <T,>(path: string, more: [string, Json][]): Promise<T | undefined> => {
    if (fault) return undefined;
    setError(undefined);
    setFound(undefined);
    try {
      return await send<T>("POST", path, write(new Obj([["document", json ?? null], ...more]), 0));
    } catch (e) {
      const refused = e as ApiError;
      const findings = refused.info.details?.["findings"];
      if (Array.isArray(findings)) setFound({ ok: false, findings: findings as FlowFinding[] });
      setError(refused);
      return undefined;
    }
  };
  const check = async () => setFound(await ask<FlowCheck>("/v1/flows/check", []));
  const add = async () => {
    const made = await ask<Flow>("/v1/flows", [["pin", pin]]);
    if (!made) return;
    toast(`${made.name} is at version ${made.version}.`);
    onDone?.();
    onClose();
    go(flowLink(made.name));
  };
  return (
    <Dialog wide title={document === undefined ? "A new flow" : "A new version"} onClose={onClose} onSubmit={add} foot={<><Button onClick={onClose}>Back</Button><Button onClick={check} disabled={!!fault}>Check</Button><Button type="submit" kind="primary" disabled={!!fault}>{document === undefined ? "Add the flow" : "Add the version"}</Button></>}>
      <AreaField label="Document as JSON" mono rows={18} value={text} onInput={(t) => (setText(t), setFound(undefined))} fault={fault} hint="Versions stay beside each other; runs go on with theirs." autoFocus />
      <p><a href="/docs/flows" target="_blank" rel="noreferrer">What a document may say</a></p>
      <Check label="Pin its tools" hint="it runs only while they are defined as they are now" checked={pin} onChange={setPin} />
      {found && <div role="status">{found.findings.length ? <Findings of={found.findings} /> : <Note tone="ok">Nothing is wrong with it.</Note>}</div>}
      {error && <Refusal error={error} />}
    </Dialog>
  );
}

/** The address of a version. */
export function versionPath(name: string, version?: number | string): string {
  return version === undefined ? `/v1/flows/${seg(name)}` : `/v1/flows/${seg(name)}/versions/${seg(String(version))}`;
}
