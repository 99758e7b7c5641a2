// Where files come from and where they went, as a graph and as tables.
import type { Artifact, Lineage, Trace } from "../api/types";
import { bytes } from "../lib/format";
import { runLink, worldLink } from "../router";
import { Graph, type GraphNode } from "../ui/graph";
import { Card, Foreign, Note } from "../ui/parts";
import { Table } from "../ui/table";

type Here = { kind: "run" | "file"; world: string; id: string; label: string };
const NODES_MAX = 200;

export function LineageGraph({ of, lineage: l, further = [] }: { of: Here; lineage: Lineage; further?: Trace["further"] }) {
  const { nodes, edges } = build(of, l, further);
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

export function build(of: Here, l: Lineage, further: NonNullable<Trace["further"]> = []): { nodes: GraphNode[]; edges: [string, string][] } {
  const nodes = new Map<string, GraphNode>();
  const edges: [string, string][] = [];
  let folded = 0;
  const add = (n: GraphNode): boolean => {
    if (nodes.has(n.id)) return true;
    if (nodes.size >= NODES_MAX) {
      folded += 1;
      return false;
    }
    nodes.set(n.id, n);
    return true;
  };
  const file = (a: Artifact): GraphNode => ({ id: `f ${a.path}`, label: a.path, kind: "file", href: worldLink(a.world, { file: a.path, tab: "lineage" }) });
  const run = (id: string): GraphNode => ({ id: `r ${id}`, label: id, kind: "run", href: runLink(of.world, id, { tab: "lineage" }) });
  const center: GraphNode = of.kind === "run" ? { ...run(of.id), label: of.label, here: true } : { id: `f ${of.id}`, label: of.label, kind: "file", here: true };
  add(center);
  const join = (a: GraphNode, b: GraphNode) => {
    if (add(a) && add(b) && !edges.some(([x, y]) => x === a.id && y === b.id)) edges.push([a.id, b.id]);
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
  if (folded > 0) nodes.set("more", { id: "more", label: `${folded} more`, kind: "more" });
  return { nodes: [...nodes.values()], edges };
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
