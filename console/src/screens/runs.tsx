// Runs: what ran, what runs, what failed, why it waits. Filters stand in the address.
import { useRef, useState } from "preact/hooks";
import { address, get, request, send, type Params } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Page, Run, World } from "../api/types";
import { count, exact, fieldOf, momentIn, money, percent, plural } from "../lib/format";
import { safe } from "../lib/text";
import { link, place, runLink, setQuery, toolLink, worldLink } from "../router";
import { confirm } from "../ui/dialog";
import { save } from "../ui/output";
import { Button, Command, Empty, Foreign, Menu, Refusal, Skeleton, Status, Time, Took, useCalm, zone } from "../ui/parts";
import { Fresh, VirtualTable, type Column } from "../ui/table";
import { toast, toastError } from "../ui/toast";
import { TextFilter } from "./filters";
import { Screen } from "./frame";
import { Waits } from "./run-why";
import { useRuns } from "./runs-list";

const STATES: [string, string][] = [
  ["", "All"],
  ["queued,waiting,running", "Open"],
  ["failed,refused", "Went wrong"],
  ["succeeded", "Succeeded"],
  ["canceled", "Canceled"],
];
const OPEN = ["queued", "waiting", "running"];
const FILTERS = ["status", "tool", "world", "caller", "parent", "correlation_id", "since", "until", "id_prefix", "over_hold"];

const COLUMNS: Column<Run>[] = [
  { name: "Status", width: "126px", cell: (r) => <Status state={r.status} /> },
  { name: "Tool", cell: (r) => <a href={toolLink(r.tool)} class="plain tail"><Foreign text={r.tool} max={120} /></a> },
  { name: "Run", width: "120px", drop: 2, cell: (r) => <a class="id" href={runLink(r.world, r.run_id)} title={r.run_id}><Foreign text={r.run_id.length > 14 ? `…${r.run_id.slice(-12)}` : r.run_id} /></a> },
  { name: "World", width: "92px", drop: 3, cell: (r) => <a class="plain" href={worldLink(r.world)}><Foreign text={r.world} /></a> },
  { name: "Caller", width: "110px", drop: 3, cell: (r) => (r.caller ? <span class="tail" title={safe(r.caller)}><Foreign text={r.caller} max={80} /></span> : <span class="muted">–</span>) },
  { name: "What is going on", drop: 3, cell: (r) => <Going run={r} /> },
  { name: "Started", width: "108px", drop: 1, cell: (r) => <Time at={r.started_at ?? r.created_at} plain /> },
  { name: "Took", width: "82px", num: true, cell: (r) => <Took from={r.started_at} to={r.ended_at} /> },
  { name: "Cost", width: "96px", num: true, drop: 2, cell: (r) => (r.cost_micro ? money(r.cost_micro) : <span class="muted">–</span>) },
];

function Going({ run }: { run: Run }) {
  if (run.error) return <span class="muted" title={run.error.code}><Foreign text={run.error.message} max={160} /></span>;
  if (run.waiting_for) return <span class="muted"><Waits of={run.waiting_for} max={160} /></span>;
  if (run.phase && !run.ended_at) return <span class="muted"><Foreign text={run.phase} max={80} /> {run.fraction != null && percent(run.fraction, 1)}</span>;
  return null;
}

export default function Runs() {
  const q = place.value.query;
  const filter: Params = Object.fromEntries(FILTERS.map((k) => [k, q.get(k) ?? undefined]));
  const list = useRuns(filter);
  const rows = list.rows.value;
  const filtered = FILTERS.some((k) => q.get(k));
  const total = list.total.value;
  const spoken = useCalm(total ? `In the list: ${total.exact ? "" : "more than "}${total.count}` : "");
  const inside = useRef(false);
  const [top, setTop] = useState(true);
  list.calm.value = top && !inside.current;
  const fresh = list.fresh.value.length;
  const showFresh = () => {
    list.rows.value = [...list.fresh.value, ...list.rows.value];
    list.fresh.value = [];
    document.querySelector(".virtual")?.scrollTo({ top: 0 });
  };
  return (
    <Screen
      title="Runs"
      fill
      acts={
        <>
          <span class="muted nowrap">
            {total ? (total.exact ? plural(total.count, "run") : `${count(total.count)}+ runs`) : rows.length > 0 && `${count(rows.length)}${list.cursor.value ? "+" : ""} runs`}
          </span>
          <span class="sr" role="status">{spoken}</span>
          <Menu label="Save this list" icon="download" text="Export" items={[{ name: "JSON lines", onClick: () => exportAs("jsonl", filter) }, { name: "CSV", onClick: () => exportAs("csv", filter) }]} />
          {may("run") && openIn(filter) && (
            <Button kind="danger" icon="stop" onClick={() => cancelAll(filter)}>
              Cancel these
            </Button>
          )}
        </>
      }
    >
      <Filters />
      {list.error.value && rows.length === 0 ? (
        <Refusal error={list.error.value} retry={list.reload} />
      ) : list.cursor.value === undefined ? (
        <div class="card fillcard"><div class="body"><Skeleton lines={12} /></div></div>
      ) : rows.length === 0 ? (
        <div class="card">
          {filtered ? (
            <Empty icon="search" title="No run fits these filters">
              <p>Take one away, or look at another time.</p>
              <Button onClick={() => setQuery(Object.fromEntries(FILTERS.map((k) => [k, undefined])), false)}>Show all runs</Button>
            </Empty>
          ) : (
            <Empty icon="runs" title="Runs appear here as they start">
              <p>A run is one invocation of a tool. Start one from a tool's page, or type</p>
              <Command text="wharf run wharf/count n=20" />
              <p><a class="btn primary" href={toolLink("wharf/count")}>Try wharf/count</a></p>
            </Empty>
          )}
        </div>
      ) : (
        <div class="card fillcard" onPointerEnter={() => ((inside.current = true), (list.calm.value = false))} onPointerLeave={() => ((inside.current = false), (list.calm.value = top))}>
          {fresh > 0 && <Fresh count={fresh} show={showFresh} />}
          <VirtualTable label="Runs" columns={COLUMNS} rows={rows} total={total?.exact ? total.count : -1} keyOf={(r) => `${r.world}/${r.run_id}`} hrefOf={(r) => runLink(r.world, r.run_id)} more={!!list.cursor.value} onEnd={() => list.more()} onTop={setTop} />
        </div>
      )}
    </Screen>
  );
}

function Filters() {
  const q = place.value.query;
  const status = q.get("status") ?? "";
  const worlds = useResource<Page<World>>("worlds", (s) => get("/v1/worlds", { limit: 200 }, s), { kinds: ["WORLD"] });
  const [all, setAll] = useState(() => ["caller", "parent", "until", "correlation_id"].some((k) => q.get(k)));
  const known = STATES.some(([v]) => v === status);
  return (
    <div class="col">
      <div class="filters">
        <div class="choices" role="group" aria-label="Status">
          {STATES.map(([value, name]) => (
            <button type="button" class="btn small" aria-pressed={status === value} onClick={() => setQuery({ status: value || undefined }, false)}>
              {name}
            </button>
          ))}
          {!known && <span class="badge">{status}</span>}
        </div>
        <TextFilter name="tool" label="Tool" wide />
        <select class="select" aria-label="World" value={q.get("world") ?? ""} onChange={(e) => setQuery({ world: e.currentTarget.value || undefined }, false)}>
          <option value="">All worlds</option>
          {worlds.data.value?.items.map((w) => <option value={w.world}>{w.world}</option>)}
        </select>
        <select class="select" aria-label="Time" value={q.get("since") ?? ""} onChange={(e) => setQuery({ since: e.currentTarget.value || undefined }, false)}>
          <option value="">Any time</option>
          {[["15m", "Last 15 minutes"], ["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]].map(([v, n]) => <option value={v}>{n}</option>)}
        </select>
        <TextFilter name="id_prefix" label="Run id begins with" wide />
        <Button kind="quiet" small pressed={all} onClick={() => setAll(!all)}>More filters</Button>
      </div>
      {all && (
        <div class="filters">
          <TextFilter name="caller" label="Caller" />
          <TextFilter name="parent" label="Parent: world/run" wide />
          <TextFilter name="correlation_id" label="Correlation id" />
          <label class="row">
            <span class="muted nowrap">Jump to</span>
            <input class="input" type="datetime-local" title={zone() === "utc" ? "in UTC" : "your local time"} value={fieldOf(q.get("until"), zone())} onChange={(e) => setQuery({ until: momentIn(e.currentTarget.value, zone()) }, false)} />
          </label>
          <Button kind="quiet" small pressed={q.get("over_hold") === "true"} onClick={() => setQuery({ over_hold: q.get("over_hold") ? undefined : "true" }, false)}>Over their hold</Button>
        </div>
      )}
    </div>
  );
}

/** The statuses of these filters in which a run can be canceled; nothing if there is none, or if the filters say more than a cancel can. */
function openIn(filter: Params): string[] | undefined {
  const wanted = filter["status"] ? String(filter["status"]).split(",") : OPEN;
  const open = OPEN.filter((s) => wanted.includes(s));
  return open.length > 0 && !filter["over_hold"] ? open : undefined;
}

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A span such as `24h` counts back from now; anything else is a moment already. */
function momentOf(since: string): string {
  const [, number, unit] = /^(\d+)([smhd])$/.exec(since) ?? [];
  return unit ? new Date(Date.now() - Number(number) * UNITS[unit]!).toISOString() : since;
}

/** The core counts first; the dialog names the filter, the moment and the count. */
async function cancelAll(filter: Params): Promise<void> {
  const { status: _, since, over_hold: __, ...rest } = filter;
  const given = Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== undefined));
  const body = { ...given, status: openIn(filter), ...(since ? { since: momentOf(String(since)) } : {}), until: String(filter["until"] ?? new Date().toISOString()) };
  try {
    const dry = await send<{ matched: number; refused: number; more: boolean }>("POST", "/v1/runs/cancel", { ...body, dry: true });
    const named = Object.entries(filter).filter(([k, v]) => v !== undefined && k !== "until");
    if (dry.matched === 0) {
      toast("No run that fits these filters is open.", "warn");
      return;
    }
    confirm({
      title: `Cancel ${plural(dry.matched, "open run")}?`,
      act: `Cancel ${plural(dry.matched, "run")}`,
      danger: true,
      text: (
        <>
          <p>All open runs {named.length > 0 && "with these filters "}that were accepted before <time dateTime={body.until}>{exact(Date.parse(body.until), zone())}</time>{named.length ? ":" : "."}</p>
          <ul>{named.map(([k, v]) => <li><code>{k.replaceAll("_", " ")}: <Foreign text={String(v)} max={200} /></code></li>)}</ul>
          {dry.more && <p class="muted">There are more; this cancels the first 10,000.</p>}
        </>
      ),
      run: async () => {
        const done = await send<{ canceled: number }>("POST", "/v1/runs/cancel", { ...body, dry: false, reason: "canceled from the console" });
        toast(`${plural(done.canceled, "run")} asked to stop.`);
      },
    });
  } catch (error) {
    toastError(error);
  }
}

async function exportAs(format: string, filter: Params): Promise<void> {
  try {
    const answer = await request(address("/v1/runs/export", { ...filter, format }));
    save(await answer.text(), `runs.${format}`, format === "csv" ? "text/csv" : "application/x-ndjson");
  } catch (error) {
    toastError(error);
  }
}

export { link };
