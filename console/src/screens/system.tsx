// System: the core itself: version, load, queues, disk, what the doctor finds, the newest lines of its log.
import { useMemo } from "preact/hooks";
import { get, isMissingRoute } from "../api/client";
import { useResource } from "../api/resource";
import type { CoreLog, Diagnosis, Series, System } from "../api/types";
import * as f from "../lib/format";
import { link, place, setQuery } from "../router";
import { Chart } from "../ui/chart";
import { Card, Command, Facts, Figure, Foreign, Meter, now, Status, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { Purges } from "./purges";

export default function SystemScreen() {
  const range = place.value.query.get("range") ?? "1h";
  const system = useResource<System | null>("system", async (s) => {
    try {
      return await get<System>("/v1/system", {}, s);
    } catch (e) {
      if (isMissingRoute(e)) return null;
      throw e;
    }
  }, { every: 5000 });
  const series = useResource<Series | null>(`series ${range}`, (s) => get<Series>("/v1/system/series", { range }, s).catch(() => null), { every: range === "1h" ? 10_000 : 60_000 });
  const doctor = useResource<Diagnosis>("doctor", (s) => get("/v1/doctor", {}, s), { every: 20_000 });
  // Only administrators of all worlds may read it; for others it is not there.
  const log = useResource<CoreLog | null>("core log", (s) => get<CoreLog>("/v1/system/logs", { limit: 200 }, s).catch(() => null), { every: 5000 });
  const d = system.data.value;
  const lines = log.data.value?.items.slice().reverse() ?? [];
  return (
    <Screen title="System" of={doctor}>
      {d && (
        <div class="figures">
          <Figure name="Version" value={d.version} under={<>up for {f.span(now.value - (f.at(d.started_at) ?? now.value))}</>} />
          <Figure name="Open runs" value={f.count(d.runs_open ?? 0)} under={`${f.count(d.attempts_running ?? 0)} attempts under way`} href={link("/runs", { status: "queued,waiting,running" })} />
          <Figure name="Open asks" value={f.count(d.asks_open ?? 0)} under="questions and approvals" href={link("/inbox")} />
          {d.memory_bytes != null && <Figure name="Memory" value={f.bytes(d.memory_bytes)} under="of the core's process" />}
          {d.database_bytes != null && <Figure name="Database" value={f.bytes(d.database_bytes)} under="on disk" />}
          {d.disk_free_bytes != null && <Figure name="Disk left" value={f.bytes(d.disk_free_bytes)} under={d.disk_total_bytes ? `of ${f.bytes(d.disk_total_bytes)}` : ""} />}
        </div>
      )}
      {series.data.value && <Charts s={series.data.value} range={range} />}
      <div class="split">
        <Card title="What the doctor finds" flush>
          <Loaded of={doctor}>
            {(x) => (
              <>
                <Table label="Findings" rows={x.checks} keyOf={(c) => c.name} columns={[{ name: "Check", cell: (c) => c.name }, { name: "Result", cell: (c) => <Status state={c.verdict} /> }, { name: "Found, and what to do", tall: true, cell: (c) => <div class="col tight"><span class="break"><Foreign text={c.text} max={300} /></span>{c.fixes?.map((x) => <div class="col tight"><span class="muted break"><Foreign text={x.text} max={300} /></span>{x.command && <Command text={x.command} />}</div>)}</div> }]} />
              </>
            )}
          </Loaded>
        </Card>
        <div class="col loose">
        {d?.queues && d.queues.length > 0 && (
          <Card title="Queues" flush>
            <Table label="Queues" rows={d.queues} keyOf={(x) => x.name} columns={[{ name: "Queue", cell: (x) => LIMITS[x.name] ?? x.name.replaceAll("_", " ") }, { name: "Waiting", num: true, cell: (x) => (/bytes/.test(x.name) ? f.bytes(x.length) : f.count(x.length)) }, { name: "Room", num: true, drop: 1, cell: (x) => (x.limit ? (/bytes/.test(x.name) ? f.bytes(x.limit) : f.count(x.limit)) : "–") }, { name: "Full", width: "30%", drop: 1, cell: (x) => (x.limit ? <Meter label={`${x.length} of ${x.limit}`} max={x.limit} parts={[{ value: x.length }]} /> : "") }]} />
          </Card>
        )}
        {d?.limits && d.limits.length > 0 && (
          <Card title="Limits" flush><Table label="Limits" rows={d.limits} keyOf={(x) => x.name} columns={[{ name: "Limit", cell: (x) => LIMITS[x.name] ?? x.name.replaceAll("_", " ") }, { name: "Value", num: true, cell: (x) => (/bytes/.test(x.name) ? f.bytes(x.value) : /_ms$/.test(x.name) ? f.span(x.value) : f.count(x.value)) }]} /></Card>
        )}
        {d && <Card title="This core"><Facts items={[["Home", d.home_id && <code>{d.home_id}</code>], ["Node", d.node && <code>{d.node}</code>], ["Process", d.pid], ["Started", <Time at={d.started_at} />]]} /></Card>}
        {system.data.value === null && doctor.data.value && <Card title="This core"><Facts items={[["Version", doctor.data.value.version]]} /></Card>}
        </div>
      </div>
      <Purges />
      {lines.length > 0 && (
        <Card title="Log" flush>
          <Table label="The newest lines of the core's log" rows={lines} keyOf={(l) => String(l.seq)} columns={[{ name: "When", cell: (l) => <Time at={l.at} /> }, { name: "Level", cell: (l) => l.level }, { name: "From", drop: 1, cell: (l) => <code><Foreign text={l.target} max={60} /></code> }, { name: "Message", cell: (l) => <span class="break"><Foreign text={l.message} max={500} /></span> }]} />
        </Card>
      )}
    </Screen>
  );
}

/** The core's names for what it bounds, in words. */
const LIMITS: Record<string, string> = {
  body_bytes: "Body of a request",
  file_bytes: "One file",
  memory_of_runs_bytes: "Runs kept in memory only",
  inputs: "Inputs to runs",
  worlds: "Worlds",
  tokens: "Tokens",
  console_sessions: "Sessions of this page",
};

function Charts({ s, range }: { s: Series; range: string }) {
  const c = useMemo(() => {
    // A step that is missing is a gap: the core was not there.
    const by = new Map(s.points.map((p) => [Date.parse(p.at), p]));
    const end = s.points.length ? Date.parse(s.points.at(-1)!.at) : Date.now();
    const n = range === "24h" ? 1440 : 360;
    const times = Array.from({ length: n }, (_, i) => end - (n - 1 - i) * s.step_ms);
    const pick = (g: (p: Series["points"][number]) => number | undefined | null) => times.map((t) => { const p = by.get(t); return p ? (g(p) ?? null) : null; });
    return {
      times,
      runs: [{ name: "Ended well", color: "--chart-1", values: pick((p) => p.runs.succeeded), fill: true }, { name: "Went wrong", color: "--chart-2", values: pick((p) => p.runs.failed + p.runs.refused) }],
      time: [{ name: "Median", color: "--chart-1", values: pick((p) => p.p50_ms) }, { name: "99th percentile", color: "--chart-4", values: pick((p) => p.p99_ms) }],
      memory: [{ name: "Memory", color: "--chart-3", values: pick((p) => p.memory_bytes), fill: true }],
      cost: [{ name: "Cost of runs that ended", color: "--chart-1", values: pick((p) => p.cost_micro), bars: true }],
      open: [{ name: "Open runs", color: "--chart-1", values: pick((p) => p.runs_open), fill: true }, { name: "Open asks", color: "--chart-4", values: pick((p) => p.asks_open) }],
    };
  }, [s, range]);
  return (
    <>
      <div class="choices" role="group" aria-label="Span">{[["1h", "Last hour"], ["24h", "Last day"]].map(([v, n]) => <button type="button" class="btn small" aria-pressed={range === v} onClick={() => setQuery({ range: v === "1h" ? undefined : v })}>{n}</button>)}</div>
      <div class="grid2">
        <Card title={range === "24h" ? "Runs that ended, by the minute" : "Runs that ended, every ten seconds"}><Chart label="Runs that ended" times={c.times} lines={c.runs} format={(n) => f.short(n)} marks="whole" /></Card>
        <Card title="How long runs took"><Chart label="How long runs took" times={c.times} lines={c.time} format={f.span} /></Card>
        <Card title="Open runs and asks"><Chart label="Open runs and asks" times={c.times} lines={c.open} format={(n) => f.short(n)} marks="whole" /></Card>
        <Card title={range === "24h" ? "Cost, by the minute" : "Cost, every ten seconds"}><Chart label="Cost of runs that ended" times={c.times} lines={c.cost} format={f.money} marks="whole" empty={1e6} /></Card>
        <Card title="Memory"><Chart label="Memory of the core" times={c.times} lines={c.memory} format={f.bytes} marks="bytes" /></Card>
      </div>
    </>
  );
}
