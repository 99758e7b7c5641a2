import { describe, expect, test } from "vitest";
import { fold, NODES_MAX, sideOf } from "../src/lib/fold";

const star = (n: number): [string, string][] => Array.from({ length: n }, (_, i) => ["c", `n${i}`]);

describe("c001_large_graphs", () => {
  test("a small one is shown whole", () => {
    const all = fold("c", star(NODES_MAX - 1));
    expect([all.nodes.size, all.edges.length, all.folded.length]).toEqual([NODES_MAX, NODES_MAX - 1, 0]);
  });
  test("of a thousand neighbours a part is shown, and going on leads to each of them and back", () => {
    const from = new Map<string, number>();
    const seen = new Set<string>();
    for (let i = 0; i < 50; i += 1) {
      const part = fold("c", star(1000), from);
      expect(part.nodes.size).toBeLessThanOrEqual(NODES_MAX);
      expect(part.folded).toHaveLength(1);
      const more = part.folded[0]!;
      expect(part.nodes.size - 1 + more.hidden).toBe(1000);
      for (const n of part.nodes) seen.add(n);
      from.set(sideOf(more.node, more.way), more.next);
    }
    expect(seen.size).toBe(1001);
    expect(from.get(sideOf("c", "out"))).toBe(0);
  });
  test("a wide tree stays within bounds, and every edge shown has both its ends", () => {
    const edges = star(100).flatMap(([c, n]): [string, string][] => [[c, n], ...Array.from({ length: 30 }, (_, j): [string, string] => [n, `${n}.${j}`])]);
    const part = fold("c", edges);
    expect(part.nodes.size).toBe(NODES_MAX);
    for (const [a, b] of part.edges) expect(part.nodes.has(a) && part.nodes.has(b)).toBe(true);
    for (const f of part.folded) expect(part.nodes.has(f.node) && f.hidden > 0).toBe(true);
  });
  test("a circle ends", () => {
    const ring = Array.from({ length: 1000 }, (_, i): [string, string] => [`n${i}`, `n${(i + 1) % 1000}`]);
    expect(fold("n0", ring).nodes.size).toBe(NODES_MAX);
  });
});
