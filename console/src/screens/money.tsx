// Money: where it went, what is left, and how long it lasts.
import { useMemo } from "preact/hooks";
import { get } from "../api/client";
import { useResource } from "../api/resource";
import type { Account, Costs, Page, Run } from "../api/types";
import * as f from "../lib/format";
import { link, place, runLink, setQuery, toolLink, worldLink } from "../router";
import { Chart } from "../ui/chart";
import { Badge, Card, Command, Empty, Figure, Foreign, Status, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { DayChart } from "./day-chart";
import { Loaded, Screen } from "./frame";
import { Budget } from "./worlds";

const BY: [string, string][] = [["tool", "Tool"], ["world", "World"], ["agent", "Provider"], ["caller", "Caller"]];

export default function Money() {
  const q = place.value.query;
  const by = q.get("by") ?? "tool";
  const since = q.get("since") ?? "7d";
  const world = q.get("world") ?? undefined;
  const costs = useResource<Costs>(`costs ${by} ${since} ${world}`, (s) => get("/v1/costs", { by, since, world }, s), { kinds: ["RUN"] });
  const daily = useResource<Costs>(`costs day ${world}`, (s) => get("/v1/costs", { by: "day", since: "30d", world }, s), { kinds: ["RUN"] });
  return (
    <Screen title="Money" of={costs}>
      <Sums daily={daily.data.value} world={world} />
      <div class="grid2">
        <Card title="By day, UTC, 30 days"><Loaded of={daily}>{(c) => <DayChart costs={c} count={30} />}</Loaded></Card>
        <Hours world={world} />
      </div>
      <Card title={<>Where it went{costs.data.value && <span class="muted"> · {f.money(costs.data.value.total_micro)}</span>}</>} flush actions={
        <div class="filters">
          <div class="choices" role="group" aria-label="By">
            {BY.map(([v, n]) => <button type="button" class="btn small" aria-pressed={by === v} onClick={() => setQuery({ by: v === "tool" ? undefined : v }, false)}>By {n.toLowerCase()}</button>)}
          </div>
          <select class="select" aria-label="Time" value={since} onChange={(e) => setQuery({ since: e.currentTarget.value === "7d" ? undefined : e.currentTarget.value }, false)}>
            {[["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"], ["52w", "Last year"]].map(([v, n]) => <option value={v}>{n}</option>)}
          </select>
        </div>
      }>
        <Loaded of={costs}>
          {(c) => c.items.length === 0 ? <Empty icon="money" title="Nothing was spent" level={3}><p>What runs report as their cost is summed up here. To try it, type</p><Command text="wharf run wharf/sleep ms=1 cost_micro=1200" /></Empty> : (
            <Table label={`Cost by ${by}`} rows={c.items} keyOf={(i) => i.key} columns={[
              { name: BY.find(([v]) => v === by)?.[1] ?? by, cell: (i) => by === "tool" ? <a href={toolLink(i.key)}><Foreign text={i.key} max={80} /></a> : by === "world" ? <a href={worldLink(i.key, { tab: "money" })}><Foreign text={i.key} max={80} /></a> : <Foreign text={i.key} max={80} /> },
              { name: "Runs", num: true, cell: (i) => f.count(i.runs) },
              { name: "Failed", num: true, drop: 2, cell: (i) => (i.failed ? <span class="status bad">{f.count(i.failed)}</span> : <span class="muted">–</span>) },
              { name: "Time", num: true, drop: 2, cell: (i) => f.span(i.wall_ms) },
              { name: "Cost", num: true, cell: (i) => f.money(i.cost_micro) },
              { name: "Share", drop: 1, width: "18%", cell: (i) => <Budget limit={c.total_micro || 1} spent={i.cost_micro} held={0} /> },
            ]} />
          )}
        </Loaded>
      </Card>
      <div class="grid2">
        <Accounts />
        <OverHold />
      </div>
    </Screen>
  );
}

/** What was spent today and of late, by the same days as the chart below, and what is set aside. */
function Sums({ daily, world }: { daily: Costs | undefined; world: string | undefined }) {
  const accounts = useResource<Page<Account>>("all accounts", (s) => get("/v1/accounts", { limit: 200 }, s), { kinds: ["RUN", "WORLD"] });
  const last = (days: number) => {
    const first = new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
    return daily?.items.filter((i) => i.key >= first).reduce((sum, i) => sum + i.cost_micro, 0);
  };
  const sum = (micro: number | undefined) => (micro === undefined ? undefined : f.money(micro));
  const top = accounts.data.value?.items.filter((a) => !a.parent && (!world || a.world === world));
  const limited = top?.filter((a) => a.limit_micro != null);
  const left = limited?.reduce((n, a) => n + Math.max(0, (a.limit_micro ?? 0) - a.spent_micro - a.held_micro), 0);
  return (
    <div class="figures">
      <Figure name="Spent today, UTC" value={sum(last(1))} under={world ? `in ${world}` : "in all worlds"} />
      <Figure name="Last 7 days" value={sum(last(7))} under="with today" />
      <Figure name="Last 30 days" value={sum(last(30))} under="with today" />
      <Figure name="Set aside now" value={sum(top?.reduce((n, a) => n + a.held_micro, 0))} under="for attempts under way" />
      <Figure name="Left of limits" value={limited?.length ? sum(left) : "no limit"} under={limited?.length ? `in ${f.plural(limited.length, "world")}` : "a world can have one"} href={link("/worlds")} />
    </div>
  );
}

function Hours({ world }: { world: string | undefined }) {
  const hourly = useResource<Costs | undefined>(`costs hour ${world}`, (s) => get<Costs>("/v1/costs", { by: "hour", since: "24h", world }, s).catch(() => undefined), { kinds: ["RUN"] });
  const c = hourly.data.value;
  const chart = useMemo(() => {
    if (!c) return undefined;
    const end = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    const times = Array.from({ length: 24 }, (_, i) => end - (23 - i) * 3_600_000);
    const known = new Map(c.items.map((i) => [Date.parse(i.key), i.cost_micro]));
    return { times, lines: [{ name: "Spent", color: "--chart-1", bars: true, values: times.map((t) => known.get(t) ?? 0) }] };
  }, [c]);
  if (!chart) return null;
  return <Card title="By hour, UTC, last day"><Chart label="Spent by hour, UTC" times={chart.times} lines={chart.lines} format={f.money} marks="whole" empty={1e6} at="utc" /></Card>;
}

/** How long what is left lasts, as a range of two paces. */
export function lastsWords({ min_ms, max_ms }: { min_ms: number; max_ms: number }): string {
  const words = (ms: number) => (ms < 3_600_000 ? "less than an hour" : ms < 86_400_000 ? `${Math.round(ms / 3_600_000)} h` : f.plural(Math.round(ms / 86_400_000), "day"));
  return words(min_ms) === words(max_ms) ? words(min_ms) : `${words(min_ms)} to ${words(max_ms)}`;
}

type Line = Account & { depth: number };

function Accounts() {
  // The core works out how long each lasts; that changes slowly, whatever runs meanwhile.
  const data = useResource<Line[]>("accounts", async (s) => {
    const list = (await get<Page<Account>>("/v1/accounts", { limit: 200 }, s)).items;
    const depth = new Map<string, number>();
    for (const a of list) depth.set(a.account, a.parent ? (depth.get(a.parent) ?? 0) + 1 : 0);
    return list.map((a) => ({ ...a, depth: depth.get(a.account) ?? 0 }));
  }, { kinds: ["WORLD"], every: 5000 });
  return (
    <Card title="Accounts" flush>
      <Loaded of={data}>{(rows) => (
        <Table label="Accounts" rows={rows} keyOf={(a) => a.account} columns={[
          { name: "Account", cell: (a) => <span style={{ paddingLeft: `${a.depth * 16}px` }}><Foreign text={a.account} max={80} /></span> },
          { name: "Spent", num: true, cell: (a) => f.money(a.spent_micro) },
          { name: <Word name="Hold">Held</Word>, num: true, drop: 2, cell: (a) => (a.held_micro ? f.money(a.held_micro) : <span class="muted">–</span>) },
          { name: "Limit", num: true, drop: 1, cell: (a) => (a.limit_micro != null ? f.money(a.limit_micro) : <span class="muted">none</span>) },
          { name: "Lasts", drop: 2, cell: (a) => (a.over_micro ? <Badge tone="bad">over by {f.money(a.over_micro)}</Badge> : a.lasts ? lastsWords(a.lasts) : <span class="muted">–</span>) },
        ]} />
      )}</Loaded>
      <p class="muted" style={{ padding: "10px 16px" }}>How long a limit lasts: what is left at the pace of the last 24 hours and of 7 days. Not said below ten runs that cost something within 7 days, nor for a token whose account other runs spend from, too.</p>
    </Card>
  );
}

function OverHold() {
  const data = useResource<Run[] | undefined>("over hold", async (s) => {
    const items = await get<Page<Run>>("/v1/runs", { over_hold: true, limit: 20 }, s).then((p) => p.items, () => undefined);
    return items?.filter((r) => r.over_hold);
  }, { kinds: ["RUN"] });
  return (
    <Card title="Runs over their hold" actions={<a href={link("/runs", { over_hold: "true" })}>All</a>} flush>
      <Loaded of={data as never}>{() => {
        const rows = data.data.value ?? [];
        return rows.length === 0 ? <Empty level={3} icon="check" title="No run cost more than was held"><p>When a tool reports more than was set aside, its run is listed here. A higher price in the tool's definition avoids it.</p></Empty> : (
          <Table label="Runs over their hold" rows={rows} keyOf={(r) => r.world + r.run_id} hrefOf={(r) => runLink(r.world, r.run_id, { tab: "money" })} columns={[{ name: "Tool", cell: (r) => <a href={runLink(r.world, r.run_id, { tab: "money" })}><Foreign text={r.tool} max={60} /></a> }, { name: "When", drop: 1, cell: (r) => <Time at={r.created_at} plain /> }, { name: "Status", drop: 2, cell: (r) => <Status state={r.status} /> }, { name: "Cost", num: true, cell: (r) => f.money(r.cost_micro) }]} />
        );
      }}</Loaded>
    </Card>
  );
}

