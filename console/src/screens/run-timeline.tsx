// The waterfall: attempts, asks, files and child runs on one axis.
import type { ComponentChildren } from "preact";
import type { RunStream } from "../api/run-stream";
import type { Run } from "../api/types";
import { at, bytes, plural, span } from "../lib/format";
import { safe } from "../lib/text";
import { link, runLink, worldLink } from "../router";
import { Button, Card, Foreign, now, Status, toneOf } from "../ui/parts";
import { keyOf, useRunTree } from "./run-tree";

type Bar = { from: number; to: number; cls: string; title: string };
type Row = { key: string; depth: number; what: ComponentChildren; bars: Bar[]; dot?: number; took?: string; toggle?: { open: boolean; act: () => void } };

const isOpen = (r: Run) => ["queued", "waiting", "running"].includes(r.status);

export function Timeline({ run, stream, version }: { run: Run; stream: RunStream; version: number }) {
  const tree = useRunTree(run, isOpen(run));
  void version;
  const start = at(run.created_at) ?? 0;
  const rows = rowsOf(run, stream, tree);
  const last = Math.max(at(run.ended_at) ?? (isOpen(run) ? now.value : start), ...rows.flatMap((r) => [...r.bars.map((b) => b.to), r.dot ?? 0]), start + 1);
  const width = last - start;
  const pos = (t: number) => `${Math.min(100, Math.max(0, ((t - start) / width) * 100))}%`;
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return (
    <Card flush>
      <div class="tablebox">
        <div class="fall" role="table" aria-label="Timeline of the run">
          <div class="axis" role="row">
            <span role="columnheader" class="what">What</span>
            <span role="columnheader" class="ticks">
              <span class="sr">When</span>
              {ticks.map((t) => (
                <span style={{ left: `${t * 100}%` }} aria-hidden="true">{t === 0 ? "0" : span(width * t)}</span>
              ))}
            </span>
            <span role="columnheader" class="took">Took</span>
          </div>
          {rows.map((r) => (
            <div class="bar-row" role="row" key={r.key}>
              <span class="what" role="cell" style={{ paddingLeft: `${12 + r.depth * 18}px` }}>
                {r.toggle && <Button kind="quiet" small icon={r.toggle.open ? "down" : "right"} label={r.toggle.open ? "Hide what it started" : "Show what it started"} onClick={r.toggle.act} />}
                <span class="clip">{r.what}</span>
              </span>
              <span class="track" role="cell">
                {r.bars.map((b) => (
                  <i class={`seg ${b.cls}`} title={safe(b.title)} style={{ left: pos(b.from), width: `${Math.max(0.2, ((b.to - b.from) / width) * 100)}%` }} />
                ))}
                {r.dot !== undefined && <i class="dot" style={{ left: pos(r.dot) }} />}
                <span class="sr">{safe(r.bars.map((b) => b.title).join("; "))}</span>
              </span>
              <span class="took" role="cell">{r.took}</span>
            </div>
          ))}
        </div>
      </div>
    </Card>
  );
}

function segTone(status: string): string {
  const tone = toneOf(status);
  return tone === "calm" ? "" : tone;
}

function rowsOf(run: Run, stream: RunStream, tree: ReturnType<typeof useRunTree>): Row[] {
  const end = at(run.ended_at) ?? now.value;
  const begin = at(run.created_at) ?? end;
  const started = at(run.started_at);
  const out: Row[] = [];
  const main: Bar[] = [];
  if (started !== undefined && started - begin > 0) main.push({ from: begin, to: started, cls: "queue", title: `in the queue for ${span(started - begin)}` });
  main.push({ from: started ?? begin, to: end, cls: started === undefined ? "queue" : segTone(run.status), title: `${run.status}, ${span(end - (started ?? begin))}` });
  out.push({ key: "run", depth: 0, what: <strong class="tail"><Foreign text={run.tool} max={80} /></strong>, bars: main, took: span(end - begin) });
  const attempts = run.attempts?.length
    ? run.attempts.map((a) => ({ attempt: a.attempt, from: a.started_at, to: a.ended_at ?? undefined, reason: a.error?.code, message: a.error?.message }))
    : stream.attempts.map((a) => ({ attempt: a.attempt, from: a.from, to: a.to, reason: a.reason, message: undefined as string | undefined }));
  for (const [i, a] of attempts.entries()) {
    const from = at(a.from) ?? begin;
    const to = at(a.to) ?? end;
    const lastOne = i === attempts.length - 1;
    const bad = a.reason || (lastOne && run.status === "failed");
    out.push({ key: `a${a.attempt}`, depth: 1, what: <>Attempt {a.attempt}{a.reason && <span class="muted"> · <Foreign text={a.reason} max={60} /></span>}</>, bars: [{ from, to, cls: `thin ${bad ? "bad" : lastOne ? segTone(run.status) : "bad"}`, title: a.message ?? a.reason ?? `attempt ${a.attempt}, ${span(to - from)}` }], took: span(to - from) });
  }
  for (const [id, a] of stream.asks) {
    const from = at(a.at) ?? begin;
    const to = at(a.decided?.at) ?? end;
    const how = a.decided ? `${a.decided.decision} by ${a.decided.by}` : "open";
    out.push({ key: id, depth: 1, what: <><a href={a.decided ? link("/inbox", { ask: id, state: "decided" }) : link("/inbox", { ask: id })}>{a.ask.kind === "approval" ? "Approval" : "Question"}</a> <span class="muted"><Foreign text={a.ask.title} max={80} /> · <Foreign text={how} max={60} /></span></>, bars: [{ from, to, cls: "thin warn", title: `${a.ask.kind}, ${how}, ${span(to - from)}` }], took: span(to - from) });
  }
  const moved = new Set<string>();
  for (const [i, t] of (run.transfers ?? []).entries()) {
    const from = at(t.at) ?? begin;
    moved.add(`${t.direction} ${t.key}`);
    const name = t.path ?? t.key;
    const how = `${t.direction === "in" ? "handed in" : "handed out"}, ${bytes(t.bytes)}`;
    out.push({ key: `t${i}`, depth: 1, what: <>{t.path ? <a href={worldLink(run.world, { file: t.path })}><Foreign text={name} max={80} /></a> : <Foreign text={name} max={80} />} <span class="muted">{how}</span></>, bars: [{ from, to: from + t.took_ms, cls: "thin file", title: `${name} ${how} in ${span(t.took_ms)}` }], dot: from, took: span(t.took_ms) });
  }
  for (const file of run.artifacts ?? []) {
    const when = at(file.at);
    if (when === undefined || moved.has(`${file.direction} ${file.key}`)) continue;
    out.push({ key: `f${file.direction}${file.path}`, depth: 1, what: <><a href={worldLink(file.world, { file: file.path })}><Foreign text={file.path} max={80} /></a> <span class="muted">{file.direction === "in" ? "read" : "written"}</span></>, bars: [], dot: when });
  }
  const add = (parent: string, depth: number) => {
    for (const r of tree.of(parent)) {
      const key = keyOf(r);
      const below = tree.of(key).length;
      const opens = below > 0 || tree.hasMore(key);
      const from = at(r.started_at) ?? at(r.created_at) ?? begin;
      const to = at(r.ended_at) ?? (isOpen(r) ? now.value : from);
      out.push({ key, depth, what: <span class="kid"><Status state={r.status} short /><a class="tail" href={runLink(r.world, r.run_id)}><Foreign text={r.tool} max={80} /></a>{opens && <span class="muted">· {below === 0 ? "more" : `${plural(below, "run")}${tree.hasMore(key) ? "+" : ""}`}</span>}</span>, bars: [{ from, to, cls: segTone(r.status), title: `${r.tool} ${r.status}, ${span(to - from)}` }], took: span(to - from), ...(opens ? { toggle: { open: tree.isOpen(key), act: () => tree.toggle(key) } } : {}) });
      if (opens && tree.isOpen(key)) add(key, depth + 1);
    }
    if (tree.hasMore(parent)) out.push({ key: `${parent}-more`, depth, what: <span class="row"><Button small kind="quiet" onClick={() => tree.showMore(parent)}>Show more</Button><a href={link("/runs", { parent })}>All in a list</a></span>, bars: [] });
  };
  add(keyOf(run), 1);
  return out;
}
