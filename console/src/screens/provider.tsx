// One provider: how it is, what it may do, what it printed, and how to steer it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, seg, send } from "../api/client";
import { baseOf, drain, KIND_NAMES, provider, steer, type Act } from "../api/providers";
import { useResource } from "../api/resource";
import { mayEverywhere } from "../api/session";
import { follow } from "../api/stream";
import type { Launch, LogLine, Page, Provider, ProviderUsage } from "../api/types";
import { bytes, plural, span } from "../lib/format";
import { OutputLog } from "../lib/output";
import { safe } from "../lib/text";
import { go, link, place, providerLink, setQuery, toolLink } from "../router";
import { Chart } from "../ui/chart";
import { confirm } from "../ui/dialog";
import { OutputView } from "../ui/output";
import { Badge, Button, Card, Empty, Facts, Foreign, Menu, Note, Status, Tabs, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { toast, toastError } from "../ui/toast";
import { Loaded, Screen } from "./frame";
import { McpLogin } from "./mcp-login";
import { Permissions } from "./permissions";

export default function ProviderScreen({ args }: { args: string[] }) {
  const id = args[0] ?? "";
  const p = useResource<Provider>(`provider ${id}`, (s) => provider(id, s), { kinds: ["PROVIDER"], match: (c) => c.id === id, every: 5000 });
  const tab = place.value.query.get("tab") ?? "overview";
  const data = p.data.value;
  return (
    <Screen title={data?.name || id} heading={<Foreign text={data?.name || id} max={150} />} of={p} crumb={<><a href={link("/providers")}>Providers</a> / <span class="id"><Foreign text={id} max={100} /></span></>} acts={data && <Acts p={data} reload={p.reload} />}>
      <Loaded of={p}>
        {(x) => (
          <>
            <div class="row wrap">
              <Status state={x.state} steady />
              <span class="muted">{KIND_NAMES[x.kind]}{x.version && ` · version ${x.version}`}</span>
              {x.health && <Badge tone={x.health.status === "ok" ? "ok" : "warn"}>says it is {x.health.status === "ok" ? "well" : <Foreign text={x.health.status} max={40} />}</Badge>}
            </div>
            {x.reason && <Note tone="warn"><Foreign text={x.reason} max={1000} /></Note>}
            {x.drift?.map((d) => <Note tone="warn"><Foreign text={d} max={300} /></Note>)}
            {x.description && <p class="break"><Foreign text={x.description} max={2000} /></p>}
            <Tabs label="Parts of this provider" current={tab} hrefOf={(t) => providerLink(id, { tab: t === "overview" ? undefined : t })} tabs={[{ id: "overview", name: "Overview" }, { id: "tools", name: "Tools", count: x.tools?.length }, ...(["agent", "tool_server", "mcp_server"].includes(x.kind) && mayEverywhere("operate") ? [{ id: "logs", name: "Log" }] : [])]} />
            {tab === "overview" && <Overview p={x} reload={p.reload} />}
            {tab === "tools" && <Tools p={x} />}
            {tab === "logs" && <Logs p={x} />}
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function Acts({ p, reload }: { p: Provider; reload: () => void }) {
  const act = (a: Act, done: string) => async () => {
    try {
      await steer(p, a);
      toast(done);
      reload();
    } catch (e) {
      toastError(e);
    }
  };
  const base = baseOf(p);
  const steerable = ["agent", "tool_server", "mcp_server"].includes(p.kind) && mayEverywhere("operate");
  const up = ["running", "starting", "unhealthy", "backing_off"].includes(p.state);
  const draining = p.state === "draining";
  const sure = (title: string, text: string, name: string, run: () => Promise<unknown>) => () => confirm({ title, text: <p>{text}</p>, act: name, danger: true, run });
  return (
    <>
      {steerable && draining && <Button icon="play" onClick={act("start", "It goes on.")}>Keep it running</Button>}
      {steerable && !up && !draining && p.permissions_approved && <Button kind="primary" icon="play" onClick={act("start", "It starts.")}>Start</Button>}
      {steerable && up && <Button icon="again" onClick={act("restart", "It restarts.")}>Restart</Button>}
      {steerable && up && <Button icon="pause" onClick={() => confirm({ title: `Drain ${p.provider_id}?`, text: <p>It finishes what is under way, takes nothing new, and then stops. Runs that come meanwhile are refused. It stays stopped until somebody starts it.</p>, act: "Drain it", run: async () => { await drain(p); toast("It finishes what is under way."); reload(); } })}>Drain</Button>}
      {steerable && (up || draining) && <Button kind="danger" icon="stop" onClick={sure(`Stop ${p.provider_id}?`, "Its process and everything it started end now. Runs under way fail or are tried again.", "Stop it", async () => { await steer(p, "stop"); reload(); })}>Stop</Button>}
      <Menu label="More" items={[
        p.kind === "mcp_server" && steerable && { name: "Read its tools again", icon: "again", onClick: act("refresh", "Its tools are read again.") },
        !!base && mayEverywhere("admin") && p.kind !== "operative" && p.permissions_approved && { name: "Revoke the approval", icon: "shield", danger: true, onClick: sure(`Revoke the approval of ${p.provider_id}?`, "It is stopped, and it does not start again before somebody approves it.", "Revoke it", async () => { await steer(p, "revoke"); reload(); }) },
        !!base && mayEverywhere("admin") && { name: "Remove it", icon: "trash", danger: true, onClick: sure(`Remove ${p.provider_id}?`, "The core forgets it with its tools and its approval. Its files stay where they are; past runs stay on record.", "Remove it", async () => { await send("DELETE", base); go(link("/providers")); }) },
      ]} />
    </>
  );
}

const BYTES = /bytes|memory|disk/;
const percent = (n: number) => `${n >= 10 || n === 0 ? Math.round(n) : n.toFixed(1)} %`;
const LAUNCHED = ["agent", "tool_server", "mcp_server"];

/** What its processes used, over time. */
function UsageCharts({ p }: { p: Provider }) {
  const range = place.value.query.get("range") === "24h" ? "24h" : "1h";
  const usage = useResource<ProviderUsage>(LAUNCHED.includes(p.kind) && !p.url ? `usage ${p.provider_id} ${range}` : null, (s) => get(`/v1/providers/${seg(p.provider_id)}/usage`, { range }, s), { every: range === "1h" ? 10_000 : 60_000 });
  const u = usage.data.value;
  const c = useMemo(() => {
    if (!u || u.points.length === 0) return undefined;
    // A step that is missing is a gap: nothing ran.
    const by = new Map(u.points.map((x) => [Date.parse(x.at), x]));
    const end = Date.parse(u.points.at(-1)!.at);
    const n = range === "24h" ? 1440 : 360;
    const times = Array.from({ length: n }, (_, i) => end - (n - 1 - i) * u.step_ms).filter((t) => t >= Date.parse(u.points[0]!.at) - 10 * u.step_ms);
    const pick = (g: (x: ProviderUsage["points"][number]) => number) => times.map((t) => { const x = by.get(t); return x ? g(x) : null; });
    return { times, memory: [{ name: "Memory", color: "--chart-3", values: pick((x) => x.memory_bytes), fill: true }], cpu: [{ name: "Processor", color: "--chart-1", values: pick((x) => (x.cpu_ms / u.step_ms) * 100), fill: true }] };
  }, [u, range]);
  if (!u) return null;
  return (
    <Card title="Memory and processor" actions={<div class="choices" role="group" aria-label="Span">{[["1h", "Last hour"], ["24h", "Last day"]].map(([v, n]) => <button type="button" class="btn small" aria-pressed={range === v} onClick={() => setQuery({ range: v === "1h" ? undefined : v })}>{n}</button>)}</div>}>
      {!c ? <p class="muted">Nothing was measured yet. While a process of it runs, what it uses is shown here after {u.step_ms / 1000} seconds.</p> : (
        <>
          <Chart label="Memory of its processes" times={c.times} lines={c.memory} format={bytes} marks="bytes" height={110} />
          <Chart label="Processor time of its processes, 100 % is one processor" times={c.times} lines={c.cpu} format={percent} height={110} />
          <p class="muted">All its processes together. 100 % is one processor. Processes that lived less than two seconds may be missing.</p>
        </>
      )}
    </Card>
  );
}

function Overview({ p, reload }: { p: Provider; reload: () => void }) {
  const kept = p.limits_kept ?? {};
  const limits = Object.entries(p.limits ?? {});
  const show = (k: string, v: unknown) => (typeof v === "number" ? (BYTES.test(k) ? bytes(v) : k.endsWith("_ms") ? span(v) : v.toLocaleString("en-US")) : typeof v === "object" && v ? JSON.stringify(v) : String(v));
  return (
    <div class="split even">
      <div class="col loose">
        <Card title="Process">
          <Facts items={[
            ["State", <Status state={p.state} steady />],
            ["Process id", p.pid ?? undefined],
            ["Instances", p.instances ?? undefined],
            ["Last sign of life", p.last_heartbeat && <Time at={p.last_heartbeat} as="relative" />],
            ["Up for", p.health?.uptime_ms !== undefined && span(p.health.uptime_ms)],
            ["Calls now", p.health?.inflight_calls],
            ["Added", p.added_at && <Time at={p.added_at} />],
            ["Command", p.command && <code class="break"><Foreign text={p.command.join(" ")} max={400} /></code>],
            ["Folder", p.folder && <code class="break"><Foreign text={p.folder} max={400} /></code>],
            ["Address", p.url && <code class="break"><Foreign text={p.url} max={400} /></code>],
          ]} />
          <Launches p={p} />
        </Card>
        {(p.sandbox || limits.length > 0) && (
          <Card title="Sandbox and limits" flush>
            <div style={{ padding: "var(--pad)" }} class="col">
              <Facts items={[["Runs in", p.sandbox && <Badge tone={p.sandbox === "none" ? "warn" : "ok"}>{p.sandbox}</Badge>], ["Approved as", p.sandbox_wanted ?? undefined], ["Isolation", p.isolation ?? undefined]]} />
              {p.sandbox_notes?.map((n) => <Note tone="warn"><Foreign text={n} max={300} /></Note>)}
            </div>
            {limits.length > 0 && <Table label="Limits" rows={limits} keyOf={([k]) => k} columns={[
              { name: "Limit", cell: ([k]) => k.replaceAll("_", " ") },
              { name: "Value", num: true, cell: ([k, v]) => show(k, v) },
              { name: "Kept by", cell: ([k]) => (kept[k] ? <Badge tone={kept[k] === "unkept" ? "warn" : undefined}>{kept[k]}</Badge> : <span class="muted">the core</span>) },
            ]} />}
          </Card>
        )}
      </div>
      <div class="col loose">
        <UsageCharts p={p} />
        {p.kind === "mcp_server" && p.url && mayEverywhere("admin") && <McpLogin p={p} reload={reload} />}
        <Permissions of={p} onApprove={baseOf(p) && p.kind !== "operative" && mayEverywhere("admin") ? async (body) => { await steer(p, "approve", body); toast("Approved."); reload(); } : undefined} />
      </div>
    </div>
  );
}

function Launches({ p }: { p: Provider }) {
  const list = useResource<Launch[]>(["agent", "tool_server", "mcp_server"].includes(p.kind) ? `launches ${p.provider_id}` : null, async (s) => {
    return (await get<Page<Launch>>(`/v1/providers/${seg(p.provider_id)}/launches`, {}, s)).items;
  });
  const items = list.data.value ?? [];
  if (items.length === 0) return null;
  const crashed = items.filter((l) => l.crashed).length;
  return (
    <div class="col tight" style={{ marginTop: "14px" }}>
      <h3>{plural(items.length, "launch", "launches")}, {plural(crashed, "crash", "crashes")}</h3>
      <div class="strip-launch" role="img" aria-label={`${plural(items.length, "launch", "launches")}, ${plural(crashed, "crash", "crashes")}`}>
        {[...items].reverse().map((l) => <i class={l.crashed ? "bad" : l.ended_at ? "" : "now"} title={safe(`${l.started_at}${l.reason ? `: ${l.reason}` : ""}`)} />)}
      </div>
      {items[0]?.ended_at && items[0].reason && <p class="muted">The last one ended: <Foreign text={items[0].reason} max={200} /></p>}
    </div>
  );
}

function Tools({ p }: { p: Provider }) {
  if (!p.tools?.length) return <Card><Empty icon="tool" title="It offers no tools yet"><p>They appear once it runs and says what it can do.</p></Empty></Card>;
  return (
    <Card flush>
      <Table label="Tools" rows={p.tools} keyOf={(t) => t} hrefOf={(t) => toolLink(t)} columns={[{ name: "Tool", cell: (t) => <a href={toolLink(t)}><Foreign text={t} max={200} /></a> }, { name: "State", cell: (t) => (p.quarantined?.includes(t) ? <Status state="quarantined" /> : "") }]} />
    </Card>
  );
}

function Logs({ p }: { p: Provider }) {
  const log = useMemo(() => new OutputLog(), [p.provider_id]);
  const [version, setVersion] = useState(0);
  const base = baseOf(p);
  useEffect(() => {
    const end = new AbortController();
    const add = (lines: LogLine[]) => {
      for (const l of lines) log.entry(l.source, l.at, l.text);
      setVersion((v) => v + 1);
    };
    const up = ["running", "starting", "unhealthy", "draining"].includes(p.state);
    void (async () => {
      try {
        if (!up) add((await get<Page<LogLine>>(`${base}/logs`, { lines: 2000 }, end.signal)).items);
        else await follow({ path: `${base}/logs`, params: { follow: "true", lines: 2000 }, signal: end.signal, over: () => false, batch: (m) => add(m.map((x) => JSON.parse(x.data) as LogLine)) });
      } catch (e) {
        if (!end.signal.aborted) toastError(e);
      }
    })();
    return () => end.abort();
  }, [p.provider_id]);
  if (log.lines.length === 0) return <Card><Empty icon="runs" title="Nothing has been printed"><p>What it writes to its standard output and error is shown here as it comes.</p></Empty></Card>;
  return <OutputView log={log} version={version} live={["running", "starting"].includes(p.state)} name={p.provider_id.replaceAll("/", "-")} />;
}
