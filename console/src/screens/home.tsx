// Home: what is going on, what waits, what is not well, what it costs. Every figure leads somewhere.
import { useMemo } from "preact/hooks";
import { get, send } from "../api/client";
import { providers } from "../api/providers";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Ask, Costs, Page, Provider, Run, Stats, System, World } from "../api/types";
import * as f from "../lib/format";
import { go, link, providerLink, runLink, worldLink } from "../router";
import { Chart } from "../ui/chart";
import { Icon, type IconName } from "../ui/icons";
import { Button, Card, Command, Empty, Facts, Figure, Foreign, now, Status, Time, Took } from "../ui/parts";
import { Table } from "../ui/table";
import { toastError } from "../ui/toast";
import { Loaded, Screen } from "./frame";
import { UNWELL } from "./providers";
import { Budget } from "./worlds";

const OPEN = "queued,waiting,running";
type Going = { items: Run[]; all: number; exact: boolean; running: number };
type Hour = { runs: number; failed: number; times: number[]; ok: number[]; bad: number[] };

/** Runs of the last hour by minute: from the core's sums, or counted from the list where it has none. */
async function lastHour(signal: AbortSignal): Promise<Hour> {
  const end = Math.floor(Date.now() / 60_000) * 60_000;
  const times = Array.from({ length: 60 }, (_, i) => end - (59 - i) * 60_000);
  const ok = times.map(() => 0);
  const bad = times.map(() => 0);
  const add = (at: number, runs: number, failed: number) => {
    const i = Math.floor((at - times[0]!) / 60_000);
    if (i < 0 || i >= 60) return;
    ok[i]! += runs - failed;
    bad[i]! += failed;
  };
  try {
    const s = await get<Stats>("/v1/stats/runs", { since: "1h", step: "1m", by: "status" }, signal);
    for (const b of s.items) add(Date.parse(b.at), b.runs, b.failed);
  } catch {
    const page = await get<Page<Run>>("/v1/runs", { since: "1h", limit: 200 }, signal);
    for (const r of page.items) add(Date.parse(r.created_at), 1, r.status === "failed" || r.status === "refused" ? 1 : 0);
  }
  const sum = (a: number[]) => a.reduce((x, y) => x + y, 0);
  return { times, ok, bad, runs: sum(ok) + sum(bad), failed: sum(bad) };
}

export default function Home() {
  const hour = useResource<Hour>("hour", lastHour, { kinds: ["RUN"], every: 60_000 });
  const open = useResource<Going>("open", async (s) => {
    const count = (status: string) => get<{ count: number; exact: boolean }>("/v1/runs/count", { status }, s);
    const [page, all, running] = await Promise.all([get<Page<Run>>("/v1/runs", { status: OPEN, limit: 8 }, s), count(OPEN), count("running")]);
    return { items: page.items, all: all.count, exact: all.exact, running: running.count };
  }, { kinds: ["RUN"] });
  const inbox = useResource<Page<Ask>>("inbox-count", (s) => get("/v1/inbox", { limit: 200 }, s), { kinds: ["ASK"] });
  const list = useResource<Provider[]>("providers", providers, { kinds: ["PROVIDER"], every: 15_000 });
  const worlds = useResource<Page<World>>("worlds", (s) => get("/v1/worlds", { limit: 200 }, s), { kinds: ["WORLD", "RUN"] });
  const today = useResource<Costs>("today", (s) => get("/v1/costs", { by: "world", since: `${new Date().toISOString().slice(0, 10)}T00:00:00Z` }, s).catch(() => ({ items: [], total_micro: 0 })) as Promise<Costs>, { kinds: ["RUN"] });
  const system = useResource<System | undefined>("system?", (s) => get<System>("/v1/system", {}, s).catch(() => undefined), { every: 30_000 });
  const latest = useResource<Page<Run>>("latest", (s) => get("/v1/runs", { limit: 8 }, s), { kinds: ["RUN"] });
  const unwell = (list.data.value ?? []).filter((p) => UNWELL.includes(p.state));
  const lines = useMemo(() => hour.data.value && [{ name: "Runs", color: "--chart-1", values: hour.data.value.ok.map((n, i) => n + hour.data.value!.bad[i]!), bars: true }, { name: "Went wrong", color: "--chart-2", values: hour.data.value.bad, bars: true }], [hour.data.value]);
  const ran = latest.data.value?.items;
  if (ran?.length === 0) return <Fresh />;
  const disk = system.data.value;
  const limited = worlds.data.value?.items.filter((w) => w.limit_micro != null) ?? [];
  const left = limited.length ? limited.reduce((n, w) => n + Math.max(0, (w.limit_micro ?? 0) - w.spent_micro - w.held_micro), 0) : undefined;
  const spentToday = new Map(today.data.value?.items.map((i) => [i.key, i.cost_micro]));
  return (
    <Screen title="Home">
      <div class="figures">
        <Figure href={link("/runs", { since: "1h" })} name="Runs in the last hour" value={hour.data.value && f.short(hour.data.value.runs)} under={hour.data.value && `${f.plural(hour.data.value.failed, "went wrong", "went wrong")}`} />
        <Figure href={link("/runs", { status: "queued,waiting,running" })} name="In progress" value={open.data.value && `${f.short(open.data.value.all)}${open.data.value.exact ? "" : "+"}`} under={open.data.value && `${f.count(open.data.value.running)} running, ${f.count(open.data.value.all - open.data.value.running)} waiting`} />
        <Figure href={link("/inbox")} name="Waits for you" value={inbox.data.value && `${f.short(inbox.data.value.items.length)}${inbox.data.value.next_cursor ? "+" : ""}`} under={inbox.data.value?.items[0] ? `the oldest for ${f.span(now.value - (f.at(inbox.data.value.items[0].created_at) ?? now.value))}` : "nothing"} />
        <Figure href={link("/providers")} name="Providers in trouble" value={list.data.value && String(unwell.length)} under={list.data.value && `of ${list.data.value.length}`} />
        <Figure href={link("/money")} name="Spent today, UTC" value={today.data.value && f.money(today.data.value.total_micro)} under={left === undefined ? "in all worlds, no limit" : `${f.money(left)} left of limits`} />
        {disk?.disk_free_bytes != null && <Figure href={link("/system")} name="Disk left" value={f.bytes(disk.disk_free_bytes)} under={disk.disk_total_bytes ? `of ${f.bytes(disk.disk_total_bytes)}` : ""} />}
      </div>
      <Card title="The last hour">
        <Loaded of={hour}>{(h) => (lines ? <Chart label={`Runs in the last hour: ${h.runs}, of which ${h.failed} went wrong`} times={h.times} lines={lines} format={(n) => f.short(n)} marks="whole" height={140} /> : null)}</Loaded>
      </Card>
      <Card title="Latest runs" actions={<a href={link("/runs")}>All</a>} flush>
        <Loaded of={latest}>{(p) => (
          <Table fixed label="Latest runs" rows={p.items} keyOf={(r) => r.world + r.run_id} hrefOf={(r) => runLink(r.world, r.run_id)} columns={[{ name: "Status", width: "128px", cell: (r) => <Status state={r.status} /> }, { name: "Tool", cell: (r) => <a class="tail" href={runLink(r.world, r.run_id)}><Foreign text={r.tool} max={60} /></a> }, { name: "World", width: "18%", drop: 1, cell: (r) => <a href={worldLink(r.world)}><Foreign text={r.world} max={60} /></a> }, { name: "Accepted", width: "130px", drop: 2, cell: (r) => <Time at={r.created_at} plain /> }, { name: "Took", width: "84px", num: true, cell: (r) => <Took from={r.started_at ?? r.created_at} to={r.ended_at} /> }, { name: "Cost", width: "84px", num: true, drop: 1, cell: (r) => (r.cost_micro ? f.money(r.cost_micro) : <span class="muted">–</span>) }]} />
        )}</Loaded>
      </Card>
      {ran && ran.length < 6 && may("run") && <Card title="More to try"><Trials /></Card>}
      <div class="grid2">
        <Card title="In progress" actions={<a href={link("/runs", { status: "queued,waiting,running" })}>All</a>} flush>
          <Loaded of={open}>{(p) => p.items.length === 0 ? <Empty level={3} icon="runs" title="Nothing runs"><p>Runs appear here while they are open.</p></Empty> : (
            <Table fixed label="Open runs" rows={p.items} keyOf={(r) => r.world + r.run_id} hrefOf={(r) => runLink(r.world, r.run_id)} columns={[{ name: "Status", width: "128px", cell: (r) => <Status state={r.status} /> }, { name: "Tool", cell: (r) => <a class="tail" href={runLink(r.world, r.run_id)}><Foreign text={r.tool} max={60} /></a> }, { name: "For", width: "100px", num: true, cell: (r) => <Took from={r.started_at ?? r.created_at} to={r.ended_at} /> }]} />
          )}</Loaded>
        </Card>
        <Card title="Waits for you" actions={<a href={link("/inbox")}>Inbox</a>} flush>
          <Loaded of={inbox}>{(p) => p.items.length === 0 ? <Empty level={3} icon="inbox" title="Nothing waits"><p>Questions and approvals of runs appear here.</p></Empty> : (
            <Table fixed label="Open asks" rows={p.items.slice(0, 8)} keyOf={(a) => a.ask_id} hrefOf={(a) => link("/inbox", { ask: a.ask_id })} columns={[{ name: "Kind", width: "90px", cell: (a) => a.kind }, { name: "What", cell: (a) => <a href={link("/inbox", { ask: a.ask_id })}><Foreign text={a.title} max={90} /></a> }, { name: "For", width: "100px", num: true, cell: (a) => <Took from={a.created_at} to={undefined} /> }]} />
          )}</Loaded>
        </Card>
        {unwell.length > 0 && <Card title="Not well" flush><Table label="Providers that are not well" rows={unwell} keyOf={(p) => p.provider_id} hrefOf={(p) => providerLink(p.provider_id)} columns={[{ name: "Provider", cell: (p) => <a href={providerLink(p.provider_id)}><Foreign text={p.name || p.provider_id} max={60} /></a> }, { name: "State", cell: (p) => <Status state={p.state} steady /> }, { name: "Why", drop: 1, cell: (p) => <span class="muted"><Foreign text={p.reason ?? ""} max={100} /></span> }]} /></Card>}
        <Card title="Budgets" actions={<a href={link("/money")}>Money</a>} flush>
          <Loaded of={worlds}>{(p) => <Table label="Budgets" rows={p.items.slice(0, 8)} keyOf={(w) => w.world} hrefOf={(w) => worldLink(w.world, { tab: "money" })} columns={[{ name: "World", cell: (w) => <a href={worldLink(w.world, { tab: "money" })}><Foreign text={w.world} max={60} /></a> }, { name: "Today, UTC", num: true, cell: (w) => f.money(spentToday.get(w.world) ?? 0) }, { name: "In all", num: true, drop: 1, cell: (w) => f.money(w.spent_micro) }, { name: "Of its limit", width: "34%", drop: 1, cell: (w) => <Budget limit={w.limit_micro} spent={w.spent_micro} held={w.held_micro} /> }]} />}</Loaded>
        </Card>
      </div>
    </Screen>
  );
}

/** Runs that show in a minute what this is about: output as it comes, a question, an approval, money. */
const TRIALS: { title: string; why: string; icon: IconName; tool: string; inputs: Record<string, unknown>; to: (id: string) => string }[] = [
  { title: "Watch a run", why: "It counts to twenty, and you see each line as it is written.", icon: "play", tool: "wharf/count", inputs: { n: 20, delay_ms: 150 }, to: (id) => runLink("default", id, { tab: "output" }) },
  { title: "Answer a question", why: "It asks you something and waits, as long as it takes.", icon: "inbox", tool: "wharf/ask", inputs: { question: "Which color should it be?", schema: { type: "string", enum: ["Red", "Green", "Blue"] } }, to: (id) => link("/inbox", { run: id }) },
  { title: "Allow an act", why: "It acts only once you allow it, and you see with what.", icon: "shield", tool: "wharf/approve-me", inputs: { note: "Pay invoice 4711", amount_cents: 129_900 }, to: (id) => link("/inbox", { run: id }) },
  { title: "Spend two cents", why: "It books a cost to its world. It is a trial: nobody pays.", icon: "money", tool: "wharf/sleep", inputs: { ms: 500, cost_micro: 20_000 }, to: (id) => runLink("default", id, { tab: "money" }) },
];

/** Buttons that start one of them and lead to what is to be seen. */
function Trials({ first }: { first?: boolean }) {
  const start = async (t: (typeof TRIALS)[number]) => {
    try {
      const made = await send<{ run_id: string }>("POST", "/v1/runs", { tool: t.tool, inputs: t.inputs });
      go(t.to(made.run_id));
    } catch (e) {
      toastError(e);
    }
  };
  return (
    <ul class="trials">
      {TRIALS.map((t, i) => (
        <li class="trial">
          <h3><Icon name={t.icon} /> {t.title}</h3>
          <p class="muted">{t.why}</p>
          <Button kind={first && i === 0 ? "primary" : undefined} small onClick={() => start(t)}>Run {t.tool}</Button>
        </li>
      ))}
    </ul>
  );
}

/** The first time: things to click, and to type. */
function Fresh() {
  return (
    <Screen title="Home" heading="Welcome to Wharf" narrow lead="Nothing has run yet. Wharf runs tools for agents and people, and keeps what they did, what they asked and what they cost.">
      {may("run") && <Card title="Try it: each of these is one run of a tool that is built in"><Trials first /></Card>}
      <Card title="Or type one of these">
        <div class="col">
          <Command text="wharf run wharf/count n=20" />
          <Command text='wharf run wharf/ask question="Which color?" --detach' />
          <Command text="wharf new tool my-tool --lang python" />
        </div>
      </Card>
      <Card title="Where to look">
        <Facts items={[
          [<a href={link("/runs")}>Runs</a>, "what ran and what runs, what it wrote, and why it failed"],
          [<a href={link("/inbox")}>Inbox</a>, "what waits for you: questions to answer, acts to allow or deny"],
          [<a href={link("/money")}>Money</a>, "what it cost, by tool, world and day, and what is left"],
          [<a href={link("/tools")}>Tools</a>, "all that can be run, each with a form to try it"],
        ]} />
      </Card>
    </Screen>
  );
}
