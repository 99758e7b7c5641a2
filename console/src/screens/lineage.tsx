// Where files come from and where they went, as a graph and as tables.
import { useState } from "preact/hooks";
import type { Artifact, Lineage, Trace } from "../api/types";
import { fold, sideOf } from "../lib/fold";
import { bytes, count } from "../lib/format";
import { runLink, worldLink } from "../router";
import { Graph, type GraphNode } from "../ui/graph";
import { Card, Foreign, Note } from "../ui/parts";
import { Table } from "../ui/table";

type Here = { kind: "run" | "file"; world: string; id: string; label: string };

export function LineageGraph({ of, lineage: l, further = [] }: { of: Here; lineage: Lineage; further?: Trace["further"] }) {
  const [from, setFrom] = useState<ReadonlyMap<string, number>>(new Map());
  const whole = build(of, l, further);
  const shown = fold(whole.center, whole.edges, from);
  const nodes = whole.nodes.filter((n) => shown.nodes.has(n.id));
  const edges = [...shown.edges];
  for (const part of shown.folded) {
    const side = sideOf(part.node, part.way);
    const id = `more ${side}`;
    nodes.push({ id, label: `${count(part.hidden)} more`, kind: "more", expand: () => setFrom(new Map(from).set(side, part.next)) });
    edges.push(part.way === "out" ? [part.node, id] : [id, part.node]);
  }
  return (
    <div class="col">
      {l.cut && <Note tone="warn">There is more than is shown here.</Note>}
      <Graph nodes={nodes} edges={edges} label="Lineage" />
      <div class="grid2">
        <Files title="Read" rows={l.read} />
        <Files title="Wrote" rows={l.wrote} />
      </div>
    </div>
  );
}

function build(of: Here, l: Lineage, further: NonNullable<Trace["further"]>): { center: string; nodes: GraphNode[]; edges: [string, string][] } {
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, [string, string]>();
  const file = (a: Artifact): GraphNode => ({ id: `f ${a.path}`, label: a.path, kind: "file", href: worldLink(a.world, { file: a.path, tab: "lineage" }) });
  const run = (id: string): GraphNode => ({ id: `r ${id}`, label: id, kind: "run", href: runLink(of.world, id, { tab: "lineage" }) });
  const center: GraphNode = of.kind === "run" ? { ...run(of.id), label: of.label, here: true } : { id: `f ${of.id}`, label: of.label, kind: "file", here: true };
  nodes.set(center.id, center);
  const join = (a: GraphNode, b: GraphNode) => {
    for (const n of [a, b]) if (!nodes.has(n.id)) nodes.set(n.id, n);
    edges.set(`${a.id}\n${b.id}`, [a.id, b.id]);
  };
  if (of.kind === "run") {
    for (const a of l.read) join(file(a), center);
    for (const a of l.wrote) join(center, file(a));
    for (const m of l.made_from) for (const a of m.files) join(run(m.run_id), file(a));
    for (const m of l.went_into) for (const a of m.files) join(file(a), run(m.run_id));
  } else {
    for (const a of l.wrote) if (a.run_id) join(run(a.run_id), center);
    for (const a of l.read) if (a.run_id) join(center, run(a.run_id));
    for (const m of l.made_from) {
      join(run(m.run_id), center);
      for (const a of m.files) join(file(a), run(m.run_id));
    }
    for (const m of l.went_into) {
      join(center, run(m.run_id));
      for (const a of m.files) join(run(m.run_id), file(a));
    }
  }
  for (const far of further) {
    for (const a of far.read) join(file(a), run(far.run_id));
    for (const a of far.wrote) join(run(far.run_id), file(a));
  }
  return { center: center.id, nodes: [...nodes.values()], edges: [...edges.values()] };
}

function Files({ title, rows }: { title: string; rows: Artifact[] }) {
  return (
    <Card title={title} flush>
      {rows.length === 0 ? (
        <p class="muted" style={{ padding: "12px 16px" }}>No files.</p>
      ) : (
        <Table label={title} rows={rows} keyOf={(a) => a.path + a.at} columns={[
          { name: "Path", cell: (a) => <a href={worldLink(a.world, { file: a.path })}><Foreign text={a.path} max={200} /></a> },
          { name: "Size", num: true, cell: (a) => bytes(a.bytes) },
        ]} />
      )}
    </Card>
  );
}
