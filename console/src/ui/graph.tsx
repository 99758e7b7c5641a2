// A graph, drawn from left to right or downwards. Its places are found by a worker; above 200 nodes neighbours are folded before.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Laid } from "../graph.worker";
import { safe } from "../lib/text";
import url from "../graph.worker?worker&url";

/** What stands on the arrow from one node to another, by both ids with a line break between them. */
export type GraphLabels = ReadonlyMap<string, string>;
export type GraphNode = { id: string; label: string; kind: "run" | "file" | "more" | "step" | "choice" | "end"; href?: string; here?: boolean; expand?: (() => void) | undefined };
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

function lay(nodes: GraphNode[], edges: [string, string][], down: boolean): Promise<Laid> {
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
    worker?.postMessage({ id, nodes: nodes.map((n) => ({ id: n.id, width: WIDTH, height: HEIGHT })), edges, down });
  });
}

const SQUARE: GraphNode["kind"][] = ["file", "step", "choice"];

export function Graph({ nodes, edges, label, labels, down = false }: { nodes: GraphNode[]; edges: [string, string][]; label: string; labels?: GraphLabels; down?: boolean }) {
  const [laid, setLaid] = useState<Laid>();
  const key = nodes.map((n) => n.id).join("\n") + edges.length;
  useEffect(() => {
    let gone = false;
    void lay(nodes, edges, down).then((l) => !gone && setLaid(l));
    return () => void (gone = true);
  }, [key]);
  const box = useRef<HTMLDivElement>(null);
  // What it begins with is in view, also where the page is narrow.
  useEffect(() => {
    const first = nodes[0] && laid?.nodes[nodes[0].id];
    if (down && first && box.current) box.current.scrollLeft = first.x - box.current.clientWidth / 2;
  }, [laid]);
  if (!laid) return <div class="graph" style={{ height: "160px" }} />;
  const clip = (t: string) => (t.length > 30 ? `…${t.slice(-28)}` : t);
  return (
    <div class="graph" ref={box} tabIndex={0} role="region" aria-label={label}>
      <svg width={Math.max(laid.width, 200)} height={Math.max(laid.height, 80)} role="group" aria-label={label}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">
            <path d="M0 0 8 4 0 8z" fill="var(--muted)" />
          </marker>
        </defs>
        <g fill="none" stroke="var(--line-strong)" stroke-width="1.5">
          {laid.edges.map((e) => (
            <path d={down ? straight(e.points) : curve(e.points)} marker-end={down ? "url(#arrow)" : undefined} />
          ))}
        </g>
        {labels && laid.edges.map((e) => <OnArrow points={e.points} text={labels.get(`${e.from}\n${e.to}`)} />)}
        {nodes.map((n) => {
          const at = laid.nodes[n.id];
          if (!at) return null;
          const body = (
            <>
              <rect x={at.x - WIDTH / 2} y={at.y - HEIGHT / 2} width={WIDTH} height={HEIGHT} rx={SQUARE.includes(n.kind) ? 4 : 17} stroke-dasharray={n.kind === "choice" ? "5 3" : undefined} fill={n.here ? "var(--accent-soft)" : "var(--surface)"} stroke={n.here ? "var(--accent)" : "var(--line-strong)"} />
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

/** A few words in the middle of an arrow, on a ground of their own. */
function OnArrow({ points, text }: { points: { x: number; y: number }[]; text: string | undefined }) {
  const mid = points[Math.floor(points.length / 2)];
  if (!text || !mid) return null;
  const shown = text.length > 24 ? `${text.slice(0, 23)}…` : text;
  return (
    <text x={mid.x} y={mid.y + 3} text-anchor="middle" fill="var(--muted)" font-size="10" stroke="var(--surface)" stroke-width="4" paint-order="stroke">
      {safe(shown)}
      <title>{safe(text)}</title>
    </text>
  );
}

/** Through all the points that the layout gave, rounded where it turns. */
function straight(points: { x: number; y: number }[]): string {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return "";
  const turns = points.slice(1, -1).map((p, i) => {
    const next = points[i + 2]!;
    const end = i === points.length - 3 ? next : { x: (p.x + next.x) / 2, y: (p.y + next.y) / 2 };
    return `Q${p.x} ${p.y} ${end.x} ${end.y}`;
  });
  return `M${first.x} ${first.y}${turns.length ? turns.join("") : `L${last.x} ${last.y}`}`;
}

function curve(points: { x: number; y: number }[]): string {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return "";
  const mid = (first.x + last.x) / 2;
  return `M${first.x} ${first.y}C${mid} ${first.y} ${mid} ${last.y} ${last.x} ${last.y}`;
}
