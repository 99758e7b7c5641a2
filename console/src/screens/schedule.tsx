// One schedule: when it fires, what it runs, and what became of each of its times.
import { get, seg } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Firing, Page, Schedule } from "../api/types";
import { count, money, span } from "../lib/format";
import { fromJs } from "../lib/json";
import { link, runLink, toolLink, worldLink } from "../router";
import { JsonView } from "../ui/json";
import { Badge, Button, Card, Empty, Facts, Foreign, Status, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { patternOf, Paused, timeOf } from "./schedules";
import { actOn, StandingActs, type Standing } from "./standing";

const OVERLAP: Record<string, string> = { skip: "the time is left out", parallel: "another run starts beside it", cancel_previous: "the run before is asked to stop" };
const CATCH_UP: Record<string, string> = { last: "the last of them is made up for", none: "they are left out" };

export default function ScheduleScreen({ args }: { args: string[] }) {
  const name = args[0] ?? "";
  const base = `/v1/schedules/${seg(name)}`;
  const schedule = useResource<Schedule>(`schedule ${name}`, (s) => get(base, {}, s), { kinds: ["RUN"], every: 5000 });
  const history = useResource<Firing[]>(`history ${name}`, async (s) => (await get<Page<Firing>>(`${base}/history`, {}, s)).items, { kinds: ["RUN"], every: 5000 });
  const reload = () => (schedule.reload(), history.reload());
  return (
    <Screen title={name} heading={<Foreign text={name} max={150} />} of={schedule} crumb={<a href={link("/schedules")}>Schedules</a>} acts={schedule.data.value && <Acts s={schedule.data.value} base={base} reload={reload} />}>
      <Loaded of={schedule}>
        {(s) => (
          <>
            <dl class="strip">
              <div><dt class="sr">State</dt><dd><span role="status"><Status state={s.state} /></span></dd></div>
              <div><dt>When</dt><dd><code><Foreign text={patternOf(s)} max={120} /></code></dd></div>
              <div><dt>Tool</dt><dd><a href={toolLink(s.tool)}><Foreign text={s.tool} max={120} /></a></dd></div>
              <div><dt>World</dt><dd><a href={worldLink(s.world)}><Foreign text={s.world} max={80} /></a></dd></div>
              <div><dt>Times so far</dt><dd>{count(s.fired)}</dd></div>
              {s.mode === "mock" && <div><dt>Mode</dt><dd><Badge tone="odd">mock</Badge></dd></div>}
              {s.state === "paused" && <div><dt class="sr">Why</dt><dd><Paused s={s} /></dd></div>}
            </dl>
            <div class="split even">
              <Card title="Next times">
                {s.next.length === 0 ? <p class="muted">{s.state === "paused" ? "None while it is paused." : "None: it is over."}</p> : <ol class="col tight">{s.next.map((t) => <li class="nowrap">{timeOf(t)}</li>)}</ol>}
              </Card>
              <Card title="How it runs">
                <Facts items={[
                  ["If the run before still goes on", OVERLAP[s.overlap] ?? s.overlap],
                  ["Times while the core is away", CATCH_UP[s.catch_up] ?? s.catch_up],
                  ["Most a run may cost", s.budget_micro != null && money(s.budget_micro)],
                  ["Longest an attempt may run", s.timeout_ms != null && span(s.timeout_ms)],
                  ["May call besides", s.allow.length > 0 && <code class="break"><Foreign text={s.allow.join(", ")} max={300} /></code>],
                  ["Made", <><Time at={s.created_at} /> <span class="muted">by <Foreign text={s.created_by} max={60} /></span></>],
                  ["Its rights end", s.expires_at && <Time at={s.expires_at} as="relative" />],
                ]} />
              </Card>
            </div>
            <Card title="Inputs"><JsonView value={fromJs(s.inputs)} open={3} label="Inputs" /></Card>
            <Card title="What became of its times" flush>
              <Loaded of={history}>
                {(rows) => rows.length === 0 ? <Empty level={3} icon="clock" title="No time has come yet"><p>Each time stands here with its run, or with why it has none.</p></Empty> : (
                  <Table label="What became of its times" rows={rows} keyOf={(f) => String(f.n)} hrefOf={(f) => (f.run_id ? runLink(s.world, f.run_id) : undefined)} columns={[
                    { name: "No.", width: "70px", num: true, drop: 1, cell: (f) => count(f.n) },
                    { name: "State", width: "116px", cell: (f) => <Status state={f.state} /> },
                    { name: "Planned", cell: (f) => <Time at={f.planned_at} plain /> },
                    { name: "Taken up", drop: 2, cell: (f) => <Time at={f.fired_at} plain /> },
                    { name: "Run", cell: (f) => (f.run_id ? <a class="id" href={runLink(s.world, f.run_id)}><Foreign text={f.run_id.length > 18 ? `…${f.run_id.slice(-12)}` : f.run_id} /></a> : f.error ? <span class="muted"><Foreign text={f.error.message} max={160} /></span> : <span class="muted">–</span>) },
                    { name: "Besides", drop: 2, cell: (f) => <span class="row">{f.by_hand && <Badge>by hand</Badge>}{f.missed > 0 && <Badge tone="warn">{count(f.missed)} left out before</Badge>}</span> },
                  ]} />
                )}
              </Loaded>
            </Card>
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function Acts({ s, base, reload }: { s: Schedule; base: string; reload: () => void }) {
  if (!may("run", s.world)) return null;
  const of: Standing = { base, kind: "schedule", name: s.name, list: link("/schedules"), goes: "It starts nothing more. Runs it has started remain, those under way go on.", state: s.state, reload };
  return <StandingActs of={of}><Button icon="play" onClick={actOn(of, "trigger", "A run has been asked for.")}>Run now</Button></StandingActs>;
}
