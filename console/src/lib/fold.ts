// A graph that is too large to be laid out at once: neighbours are folded, and unfolded where one looks.

export type Way = "in" | "out";
/** Neighbours of one node that are not shown: on which side, how many, and which of them come next. */
export type Folded = { node: string; way: Way; hidden: number; next: number };
export type Shown = { nodes: Set<string>; edges: [string, string][]; folded: Folded[] };

/** Most nodes that are laid out at once. */
export const NODES_MAX = 200;
/** Neighbours of a folded graph that are shown on each side of a node. */
const PART = 20;

/** What names a side of a node, for saying where one has unfolded. */
export const sideOf = (node: string, way: Way): string => `${way} ${node}`;

/** The part of a graph around a node; `from` says with which neighbour the part shown of a side begins. */
export function fold(center: string, edges: [string, string][], from: ReadonlyMap<string, number> = new Map()): Shown {
  const sides = new Map<string, string[]>();
  const join = (side: string, node: string) => {
    const known = sides.get(side);
    if (known) known.push(node);
    else sides.set(side, [node]);
  };
  const all = new Set([center]);
  for (const [a, b] of edges) {
    join(sideOf(a, "out"), b);
    join(sideOf(b, "in"), a);
    all.add(a).add(b);
  }
  if (all.size <= NODES_MAX) return { nodes: all, edges, folded: [] };
  const nodes = new Set([center]);
  const folded: Folded[] = [];
  // A set goes on to what is added while one walks along it: the nearest come first.
  for (const node of nodes)
    for (const way of ["in", "out"] as const) {
      const neighbours = sides.get(sideOf(node, way)) ?? [];
      const begin = from.get(sideOf(node, way)) ?? 0;
      let end = begin;
      while (end < neighbours.length && end < begin + PART && nodes.size < NODES_MAX) nodes.add(neighbours[end++]!);
      const hidden = neighbours.filter((n) => !nodes.has(n)).length;
      if (hidden > 0) folded.push({ node, way, hidden, next: end >= neighbours.length ? 0 : end });
    }
  // What came in later, over another way, is hidden no more.
  const left = folded.map((f) => ({ ...f, hidden: (sides.get(sideOf(f.node, f.way)) ?? []).filter((n) => !nodes.has(n)).length })).filter((f) => f.hidden > 0);
  return { nodes, edges: edges.filter(([a, b]) => nodes.has(a) && nodes.has(b)), folded: left };
}
