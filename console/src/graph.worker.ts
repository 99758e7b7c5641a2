// Lays out a graph away from the page, so that nothing stutters.
import { graphlib, layout } from "@dagrejs/dagre";

export type Laid = { nodes: Record<string, { x: number; y: number }>; edges: { from: string; to: string; points: { x: number; y: number }[] }[]; width: number; height: number };
type Task = { id: number; nodes: { id: string; width: number; height: number }[]; edges: [string, string][]; down?: boolean };

addEventListener("message", (event: MessageEvent<Task>) => {
  const { id, nodes, edges, down } = event.data;
  const g = new graphlib.Graph();
  g.setGraph({ rankdir: down ? "TB" : "LR", nodesep: down ? 22 : 14, ranksep: down ? 34 : 56, marginx: 16, marginy: 16 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const n of nodes) g.setNode(n.id, { width: n.width, height: n.height });
  for (const [a, b] of edges) g.setEdge(a, b);
  layout(g);
  const out: Laid = { nodes: {}, edges: [], width: Number(g.graph().width ?? 0), height: Number(g.graph().height ?? 0) };
  for (const n of g.nodes()) {
    const at = g.node(n) as { x: number; y: number };
    out.nodes[n] = { x: at.x, y: at.y };
  }
  for (const e of g.edges()) out.edges.push({ from: e.v, to: e.w, points: ((g.edge(e) as { points?: { x: number; y: number }[] }).points ?? []).map((p) => ({ x: p.x, y: p.y })) });
  postMessage({ id, laid: out });
});
