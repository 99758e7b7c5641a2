// A graph, drawn from left to right. Its places are found by a worker; above 200 nodes neighbours are folded before.
import { useEffect, useState } from "preact/hooks";
import type { Laid } from "../graph.worker";
import { safe } from "../lib/text";
import url from "../graph.worker?worker&url";

export type GraphNode = { id: string; label: string; kind: "run" | "file" | "more"; href?: string; here?: boolean; expand?: (() => void) | undefined };
const WIDTH = 214;
const HEIGHT = 34;

// The page may only start scripts whose address a policy has vouched for; this is the one worker there is.
const policy = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: { createScriptURL(u: string): string }): { createScriptURL(u: string): unknown } } }).trustedTypes?.createPolicy("wharf-worker", {
  createScriptURL: (u) => {
    if (u !== url) throw new TypeError("not the worker of this page");
    return u;
  },
});
let worker: Worker | undefined;
let count = 0;
const waiting = new Map<number, (laid: Laid) => void>();

function lay(nodes: GraphNode[], edges: [string, string][]): Promise<Laid> {
  if (!worker) {
    worker = new Worker((policy ? policy.createScriptURL(url) : url) as string, { type: "module" });
    worker.addEventListener("message", (e: MessageEvent<{ id: number; laid: Laid }>) => {
      waiting.get(e.data.id)?.(e.data.laid);
      waiting.delete(e.data.id);
    });
  }
  const id = (count += 1);
  return new Promise((done) => {
    waiting.set(id, done);
    worker?.postMessage({ id, nodes: nodes.map((n) => ({ id: n.id, width: WIDTH, height: HEIGHT })), edges });
  });
}

export function Graph({ nodes, edges, label }: { nodes: GraphNode[]; edges: [string, string][]; label: string }) {
  const [laid, setLaid] = useState<Laid>();
  const key = nodes.map((n) => n.id).join(" ") + edges.length;
  useEffect(() => {
    let gone = false;
    void lay(nodes, edges).then((l) => !gone && setLaid(l));
    return () => void (gone = true);
  }, [key]);
  if (!laid) return <div class="graph" style={{ height: "160px" }} />;
  const clip = (t: string) => (t.length > 30 ? `…${t.slice(-28)}` : t);
  return (
    <div class="graph" tabIndex={0} role="region" aria-label={label}>
      <svg width={Math.max(laid.width, 200)} height={Math.max(laid.height, 80)} role="group" aria-label={label}>
        <g fill="none" stroke="var(--line-strong)" stroke-width="1.5">
          {laid.edges.map((e) => (
            <path d={curve(e.points)} />
          ))}
        </g>
        {nodes.map((n) => {
          const at = laid.nodes[n.id];
          if (!at) return null;
          const body = (
            <>
              <rect x={at.x - WIDTH / 2} y={at.y - HEIGHT / 2} width={WIDTH} height={HEIGHT} rx={n.kind === "file" ? 4 : 17} fill={n.here ? "var(--accent-soft)" : "var(--surface)"} stroke={n.here ? "var(--accent)" : "var(--line-strong)"} />
              <text x={at.x} y={at.y + 4} text-anchor="middle" fill="var(--text)" font-size="12" font-family={n.kind === "file" ? "var(--mono)" : "var(--font)"}>
                {clip(safe(n.label))}
              </text>
              <title>{safe(n.label)}</title>
            </>
          );
          if (n.expand)
            return (
              <g role="button" tabIndex={0} aria-label={safe(n.label)} onClick={n.expand} onKeyDown={(e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), n.expand?.())}>
                {body}
              </g>
            );
          return n.href ? <a href={n.href} aria-label={safe(`${n.kind} ${n.label}`)}>{body}</a> : <g>{body}</g>;
        })}
      </svg>
    </div>
  );
}

function curve(points: { x: number; y: number }[]): string {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return "";
  const mid = (first.x + last.x) / 2;
  return `M${first.x} ${first.y}C${mid} ${first.y} ${mid} ${last.y} ${last.x} ${last.y}`;
}
