// Output with colours, drawn line by line as one scrolls. It can be followed and searched; long lines are folded.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Ansi, classOf } from "../lib/ansi";
import { bytes, clock, count, plural } from "../lib/format";
import { FOLD, type Line, type OutputLog } from "../lib/output";
import { pieces, safe } from "../lib/text";
import { windowOf } from "../lib/virtual";
import { place, setQuery } from "../router";
import { Dialog } from "./dialog";
import { Button, copy, now, zone } from "./parts";

const LINE = 20;

export function OutputView({ log, version, live, name }: { log: OutputLog; version: number; live: boolean; name: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [follow, setFollow] = useState(live);
  // What is looked for is a part of the address; only where there is one output, which is a run's own screen.
  const q = place.value.query;
  const channel = (q.get("channel") ?? "") && log.channels.has(q.get("channel") ?? "") ? q.get("channel")! : "";
  const setChannel = (c: string) => setQuery({ channel: c || undefined });
  const [times, setTimes] = useState(false);
  const search = q.get("find") ?? "";
  const setSearch = (text: string) => setQuery({ find: text || undefined });
  const [hit, setHit] = useState(0);
  const [long, setLong] = useState<Line>();
  const lines = useMemo(() => (channel ? log.lines.filter((l) => l.channel === channel) : log.lines), [version, channel, log]);
  const hits = useMemo(() => {
    if (!search) return [];
    const wanted = search.toLowerCase();
    const out: number[] = [];
    for (let i = 0; i < lines.length && out.length < 10_000; i += 1) if (lines[i]!.raw.toLowerCase().includes(wanted)) out.push(i);
    return out;
  }, [search, lines, version]);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    let frame = 0;
    const look = () => {
      frame = 0;
      setView({ top: el.scrollTop, height: el.clientHeight });
    };
    const soon = () => (frame ||= requestAnimationFrame(look));
    el.addEventListener("scroll", soon, { passive: true });
    const size = new ResizeObserver(soon);
    size.observe(el);
    look();
    return () => (el.removeEventListener("scroll", soon), size.disconnect(), cancelAnimationFrame(frame));
  }, []);
  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, version, lines.length]);
  const jump = (to: number) => {
    if (hits.length === 0) return;
    const i = ((to % hits.length) + hits.length) % hits.length;
    setHit(i);
    setFollow(false);
    box.current?.scrollTo({ top: Math.max(0, hits[i]! * LINE - view.height / 2) });
  };
  const w = windowOf(lines.length, LINE, view.top, view.height, 30);
  const digits = String(log.lines.length).length;
  const wheel = () => {
    const el = box.current;
    if (el && follow && el.scrollTop + el.clientHeight < el.scrollHeight - LINE * 2) setFollow(false);
  };
  return (
    <div class="output card">
      <div class="bar">
        <label class="sr" for="out-search">
          Search the output
        </label>
        <input id="out-search" class="input" type="search" placeholder="Search the output" value={search} onInput={(e) => (setSearch(e.currentTarget.value), setHit(0))} onKeyDown={(e) => e.key === "Enter" && jump(e.shiftKey ? hit - 1 : search && hits[hit] === undefined ? 0 : hit + 1)} />
        {search && (
          <span class="muted nowrap" role="status">
            {hits.length ? `${count(Math.min(hit + 1, hits.length))} of ${count(hits.length)}` : "nothing"}
          </span>
        )}
        {log.channels.size > 1 && (
          <>
            <label class="sr" for="out-channel">
              Channel
            </label>
            <select id="out-channel" class="select" value={channel} onChange={(e) => setChannel(e.currentTarget.value)}>
              <option value="">All channels</option>
              {[...log.channels.keys()].map((c) => (
                <option value={c}>{safe(c)}</option>
              ))}
            </select>
          </>
        )}
        <span class="grow muted p2 clip">
          {plural(lines.length, "line")}, {bytes(log.bytes)}
        </span>
        <Button small pressed={times} onClick={() => setTimes(!times)}>
          Times
        </Button>
        {live && (
          <Button small pressed={follow} onClick={() => setFollow(!follow)}>
            Follow
          </Button>
        )}
        <Button small kind="quiet" icon="copy" label="Copy the output" onClick={() => copy(log.text(channel))} />
        <Button small kind="quiet" icon="download" label="Save the output" onClick={() => save(log.text(channel), `${name}.txt`)} />
      </div>
      <div class="lines" ref={box} onWheel={wheel} onTouchMove={wheel} tabIndex={0} role="region" aria-label="Output">
        <div style={{ height: `${w.before}px` }} />
        {lines.slice(w.first, w.end).map((l, i) => (
          <div class={hits[hit] === w.first + i && search ? "ln hit" : "ln"} key={l.n}>
            <span class="no" style={{ minWidth: `${digits + 1}ch` }} aria-hidden="true">
              {l.n}
            </span>
            {times && <span class="at">{clock(Date.parse(l.at), now.peek(), zone())}</span>}
            {log.channels.size > 1 && !channel && <span class={`ch ch-${l.channel === "stderr" ? "err" : l.channel === "log" ? "log" : "out"}`}>{safe(l.channel.slice(0, 12))}</span>}
            <bdi class="tx">
              <Spans line={l} max={FOLD} />
              {l.raw.length > FOLD && (
                <button type="button" class="fold" onClick={() => setLong(l)}>
                  … {count(l.raw.length - FOLD)} more characters
                </button>
              )}
            </bdi>
          </div>
        ))}
        <div style={{ height: `${w.after}px` }} />
      </div>
      {long && (
        <Dialog title={`Line ${count(long.n)}, ${plural(long.raw.length, "character")}`} wide onClose={() => setLong(undefined)} foot={<Button icon="copy" onClick={() => copy(long.raw)}>Copy all of it</Button>}>
          <pre class="code" tabIndex={0}>
            <Spans line={long} max={100_000} />
            {long.raw.length > 100_000 && `\n… ${count(long.raw.length - 100_000)} more characters; copy the line to see them.`}
          </pre>
        </Dialog>
      )}
    </div>
  );
}

function Spans({ line, max }: { line: Line; max: number }) {
  const raw = line.raw.endsWith("\r") ? line.raw.slice(0, -1) : line.raw;
  const spans = new Ansi(line.start).feed(raw.length > max ? raw.slice(0, max) : raw);
  return (
    <>
      {spans.map((s) => {
        const parts = pieces(s.text).map((p) => (p.escaped ? <span class="esc">{p.text}</span> : p.text));
        const cls = classOf(s.style);
        return cls ? <span class={cls}>{parts}</span> : parts;
      })}
    </>
  );
}

/** Hands a text to the browser as a file. */
export function save(text: string, name: string, type = "text/plain"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
