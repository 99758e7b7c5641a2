// One run: why it does not move, what it did when, what it wrote, what it cost.
import { useMemo, useState } from "preact/hooks";
import { ApiError, get, getText, isMissingRoute, seg, send } from "../api/client";
import { useResource, type Resource } from "../api/resource";
import { useRunStream } from "../api/run-stream";
import { may } from "../api/session";
import type { AuditRecord, Lineage, Page, Run } from "../api/types";
import { asCurl, asWharf, notTyped, type Typed } from "../lib/commands";
import * as f from "../lib/format";
import { Obj, parse, type Json } from "../lib/json";
import { safe } from "../lib/text";
import { go, link, place, runLink, setQuery, toolLink, worldLink } from "../router";
import { confirm } from "../ui/dialog";
import { JsonView } from "../ui/json";
import { OutputView } from "../ui/output";
import { Badge, Button, Card, copy, Empty, Facts, Foreign, Menu, Meter, Note, Refusal, Status, Tabs, Time, Tip, Took, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { toast, toastError } from "../ui/toast";
import { mayEverywhere } from "../api/session";
import { Loaded, Screen } from "./frame";
import { Compare } from "./run-compare";
import { EventsTab } from "./run-events";
import { AgainDialog, resend } from "./run-again";
import { LineageGraph } from "./lineage";
import { FlowWaits, StepsTab, useFlowRun } from "./run-steps";
import { Timeline } from "./run-timeline";
import { Why } from "./run-why";

type Loaded1 = { run: Run; inputs: Json; outputs: Json };
export const OPEN = ["queued", "waiting", "running"];

async function load(world: string, id: string, signal: AbortSignal): Promise<Loaded1> {
  const text = await getText(`/v1/runs/${seg(id)}`, { world }, signal);
  const json = parse(text) as Obj;
  return { run: JSON.parse(text) as Run, inputs: json.get("inputs") ?? new Obj([]), outputs: json.get("outputs") ?? new Obj([]) };
}

export default function RunScreen({ args }: { args: string[] }) {
  const [world = "default", id = ""] = args;
  const run = useResource<Loaded1>(`run ${world}/${id}`, (s) => load(world, id, s), { kinds: ["RUN", "ASK"], match: (c) => (c.kind === "RUN" ? c.id === id && (c.world ?? world) === world : true) });
  const live = useRunStream(world, id, () => run.reload());
  const flow = useFlowRun(run.data.value?.run);
  // What a flow did is its steps.
  const first = flow ? "steps" : "timeline";
  const tab = place.value.query.get("tab") ?? first;
  const compare = place.value.query.get("compare");
  const data = run.data.value;
  const version = live.version.value;
  const [again, setAgain] = useState<string[]>();
  const lines = live.stream.log.lines.length;
  const tabs = [
    ...(flow ? [{ id: "steps", name: "Steps" }] : []),
    { id: "timeline", name: "Timeline" },
    { id: "output", name: "Output", count: lines },
    { id: "inputs", name: "Inputs" },
    { id: "events", name: "Events", count: live.stream.events.length },
    { id: "lineage", name: "Lineage" },
    { id: "money", name: "Money" },
    ...(mayEverywhere("admin") ? [{ id: "audit", name: "Audit" }] : []),
  ];
  return (
    <Screen
      title={data ? `${data.run.tool} ${f.tail(id)}` : `Run ${f.tail(id)}`}
      heading={data ? <Foreign text={data.run.tool} max={200} /> : "Run"}
      of={run as Resource<unknown>}
      crumb={
        <>
          <a href={link("/runs")}>Runs</a> / <a href={worldLink(world)}><Foreign text={world} /></a> / <span class="id break"><Foreign text={id} /></span>
        </>
      }
      acts={data && <Acts d={data} onChange={(stripped) => setAgain(stripped)} reload={run.reload} />}
    >
      <Loaded of={run}>
        {(d) => (
          <>
            <Summary run={d.run} />
            <Why run={d.run} phases={[...live.stream.phases.values()].at(-1)} />
            {flow && <FlowWaits run={d.run} flow={flow} />}
            {compare && <Compare a={d} with={compare} />}
            <Tabs label="Parts of this run" tabs={tabs} current={tab} hrefOf={(t) => runLink(world, id, { tab: t === first ? undefined : t })} />
            {live.error.value && live.error.value.status !== 404 && <Refusal error={live.error.value} />}
            {tab === "steps" && flow && <StepsTab run={d.run} flow={flow} />}
            {tab === "timeline" && <Timeline run={d.run} stream={live.stream} version={version} />}
            {tab === "output" && <Output d={d} live={live} version={version} />}
            {tab === "inputs" && (
              <Card title="Inputs">
                {d.run.kept?.inputs ? <Digest what="inputs" of={d.run.kept.inputs} /> : <><Passing run={d.run} what="inputs" /><JsonView value={d.inputs} open={4} label="Inputs" /></>}
              </Card>
            )}
            {tab === "events" && d.run.kept?.inputs && <p class="muted">Text and progress of this run were not kept; their numbers are missing here.</p>}
            {tab === "events" && <EventsTab stream={live.stream} version={version} />}
            {tab === "lineage" && <LineageTab run={d.run} />}
            {tab === "money" && <MoneyTab run={d.run} />}
            {tab === "audit" && <AuditTab run={d.run} />}
            {again && <AgainDialog d={d} stripped={again} onClose={() => setAgain(undefined)} />}
          </>
        )}
      </Loaded>
    </Screen>
  );
}

/** Copies a command, and says what it cannot say. */
async function copyCommand(text: string, typed: Typed): Promise<void> {
  const missing = notTyped(typed);
  await copy(text, missing ? `Copied. Not in it: ${missing}.` : "Copied");
}

function Acts({ d, onChange, reload }: { d: Loaded1; onChange: (stripped: string[]) => void; reload: () => void }) {
  const { run } = d;
  const typed: Typed = { tool: run.tool, world: run.world, inputs: resend(d.inputs, run.world), mode: run.mode, continues: run.continues, timeout_ms: run.timeout_ms, budget_micro: run.budget_micro, outputs: (run.artifacts ?? []).filter((a) => a.direction === "out") };
  const open = OPEN.includes(run.status);
  const again = async () => {
    try {
      let made: { run_id: string; world?: string };
      try {
        made = await send("POST", `/v1/runs/${seg(run.run_id)}/again?world=${seg(run.world)}`, {});
      } catch (error) {
        if (error instanceof ApiError && error.code === "run.inputs_stripped") return onChange((error.info.details?.["fields"] as string[] | undefined) ?? []);
        if (error instanceof ApiError && error.code === "run.values_not_kept") return onChange([]);
        throw error;
      }
      go(runLink(run.world, made.run_id));
      toast("A new run has started.");
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <>
      {open && may("run", run.world) && (
        <Button
          kind="danger"
          icon="stop"
          onClick={() =>
            confirm({
              title: "Cancel this run?",
              text: <p>The tool gets a few seconds to end by itself, then the run <code class="break"><Foreign text={run.run_id} /></code> of <code><Foreign text={run.tool} max={200} /></code> is canceled, with all that it started.</p>,
              act: "Cancel the run",
              danger: true,
              run: async () => {
                await send("POST", `/v1/runs/${seg(run.run_id)}/cancel?world=${seg(run.world)}`, { reason: "canceled from the console" });
                reload();
              },
            })
          }
        >
          Cancel
        </Button>
      )}
      {may("run", run.world) && (
        <Button icon="again" onClick={again}>
          Run again
        </Button>
      )}
      <Menu
        label="More"
        items={[
          may("run", run.world) && { name: "Run again with changes", icon: "again", onClick: () => onChange([]) },
          !run.kept?.inputs && { name: "Copy as wharf run …", icon: "copy", onClick: () => copyCommand(asWharf(typed), typed) },
          !run.kept?.inputs && { name: "Copy as curl", icon: "copy", onClick: () => copyCommand(asCurl(location.origin, typed), typed) },
          { name: "Copy the id", icon: "copy", onClick: () => copy(run.run_id) },
          { name: "Compare with another run", icon: "sort", onClick: () => setQuery({ compare: "?" }, false) },
          !open && may("admin", run.world) && {
            name: "Remove this run",
            icon: "trash" as const,
            danger: true,
            onClick: () =>
              confirm({
                title: "Remove this run for good?",
                text: <p>Inputs, outputs, progress and asks of <code class="break"><Foreign text={run.run_id} /></code> are removed. The audit keeps that it was there.</p>,
                act: "Remove the run",
                danger: true,
                run: async () => {
                  await send("DELETE", `/v1/runs/${seg(run.run_id)}?world=${seg(run.world)}`);
                  go(link("/runs"));
                },
              }),
          },
        ]}
      />
    </>
  );
}

function Summary({ run }: { run: Run }) {
  return (
    <dl class="strip">
      <div><dt class="sr">Status</dt><dd><span role="status"><Status state={run.status} /></span></dd></div>
      <div><dt>Started</dt><dd><Time at={run.started_at ?? run.created_at} /></dd></div>
      <div><dt>Took</dt><dd><Took from={run.started_at} to={run.ended_at} /></dd></div>
      <div><dt>Cost</dt><dd>{f.money(run.cost_micro)}</dd></div>
      <div><dt><Word name="World" /></dt><dd><a href={worldLink(run.world)}><Foreign text={run.world} /></a></dd></div>
      <div><dt>Tool</dt><dd><a href={toolLink(run.tool)}><Foreign text={run.tool} /></a></dd></div>
      {run.caller && <div><dt>Caller</dt><dd><a href={link("/runs", { caller: run.caller })}><Foreign text={run.caller} /></a></dd></div>}
      {run.parent && <div><dt>Started by</dt><dd><a class="id" href={parentLink(run.parent)}><Foreign text={f.tail(run.parent, 12)} /></a></dd></div>}
      {run.timeout_ms != null && !run.flow && <div><dt>An attempt may run</dt><dd>{f.span(run.timeout_ms)}</dd></div>}
      {run.attempt > 1 && <div><dt>Attempts</dt><dd>{run.attempt}</dd></div>}
      {run.mode === "mock" && <div><dt>Mode</dt><dd><Badge tone="odd">mock</Badge></dd></div>}
      {run.kept && <div><dt>Values</dt><dd><Tip text={WITHHELD}><Badge tone="odd">digests only</Badge></Tip></dd></div>}
      {run.durability === "memory" && <div><dt>Kept</dt><dd><Badge>in memory only</Badge></dd></div>}
    </dl>
  );
}

export function parentLink(parent: string): string {
  const at = parent.indexOf("/");
  return runLink(parent.slice(0, at), parent.slice(at + 1));
}

const WITHHELD = "No more than digests of what this run was given and gave are kept once it has ended: its tool, its world or a rule of the owner says so.";

/** What stands in the place of values that are not kept. */
function Digest({ what, of }: { what: string; of: { b3: string; bytes: number } }) {
  return (
    <div class="col">
      <Note icon="shield">
        <p>Only a digest of the {what} was kept: the tool, the world or a rule of the owner says so. Nobody can get the rest back.</p>
        <p><a href="/docs/operations#what-is-kept-of-a-runs-values" target="_blank" rel="noreferrer">What goes, and when</a></p>
      </Note>
      <Facts items={[["BLAKE3", <code class="break">{of.b3}</code>], ["Size as JSON", f.bytes(of.bytes)]]} />
    </div>
  );
}

/** Said above values that will not stay. */
function Passing({ run, what }: { run: Run; what: string }) {
  if (!run.kept) return null;
  return <Note icon="shield">{OPEN.includes(run.status) ? `Once the run has ended, only a digest of these ${what} is kept.` : `The core has only these ${what} in its memory, for some minutes; what is kept is a digest.`}</Note>;
}

function Output({ d, live, version }: { d: Loaded1; live: ReturnType<typeof useRunStream>; version: number }) {
  const { stream } = live;
  const open = OPEN.includes(d.run.status);
  const written = (d.run.artifacts ?? []).filter((a) => a.direction === "out");
  const entries = d.outputs instanceof Obj ? d.outputs.entries : [];
  const phases = useMemo(() => [...stream.phases.values()], [version]);
  return (
    <div class="col">
      {phases.length > 0 && (
        <Card title="Progress">
          <div class="progress">
            {phases.map((p) => (
              <>
                <Foreign text={p.phase} max={80} />
                <Meter label={safe(`${p.phase}: ${p.fraction == null ? "unknown" : f.percent(p.fraction, 1)}`)} max={1} parts={[{ value: p.fraction ?? 0 }]} />
                <span class="num">{p.fraction == null ? "–" : f.percent(p.fraction, 1)}</span>
              </>
            ))}
          </div>
        </Card>
      )}
      {d.run.kept?.outputs && <Card title="Outputs"><Digest what="outputs" of={d.run.kept.outputs} /></Card>}
      {d.run.kept?.error && <Card title="Error"><Digest what="message and details of the error" of={d.run.kept.error} /></Card>}
      {entries.length > 0 && (
        <Card title="Outputs">
          <Passing run={d.run} what="outputs" />
          <JsonView value={d.outputs} open={3} label="Outputs" />
        </Card>
      )}
      {stream.partials.size > 0 && open && (
        <Card title="Values so far">
          <JsonView value={new Obj([...stream.partials].map(([k, v]) => [k, v.value]))} label="Values so far" />
        </Card>
      )}
      {written.length > 0 && (
        <Card title="Files" flush>
          <Table label="Files it wrote" rows={written} keyOf={(a) => a.path} columns={[
            { name: "Path", cell: (a) => <a href={worldLink(a.world, { file: a.path })}><Foreign text={a.path} max={300} /></a> },
            { name: "Output", drop: 2, cell: (a) => <Foreign text={a.key ?? ""} /> },
            { name: "Size", num: true, cell: (a) => f.bytes(a.bytes) },
          ]} />
        </Card>
      )}
      {(d.run.kept?.outputs || d.run.kept?.error) && <p class="muted">What it wrote meanwhile, and its progress, were not kept either.</p>}
      {stream.log.lines.length > 0 ? (
        <OutputView log={stream.log} version={version} live={open} name={d.run.run_id} />
      ) : (
        entries.length === 0 && !d.run.kept?.outputs && !d.run.kept?.error && (
          <Card>
            <Empty icon="runs" title={open ? "Nothing has been written yet" : "This run wrote no text"}>
              <p>{open ? "Text appears here as the tool writes it." : "Tools write text on channels such as stdout; this one gave none."}</p>
            </Empty>
          </Card>
        )
      )}
    </div>
  );
}

function LineageTab({ run }: { run: Run }) {
  const data = useResource<Lineage>(`lineage ${run.world}/${run.run_id}`, async (s) => {
    try {
      return await get<Lineage>(`/v1/runs/${seg(run.run_id)}/lineage`, { world: run.world }, s);
    } catch (error) {
      if (!isMissingRoute(error)) throw error;
      const all = run.artifacts ?? [];
      return { world: run.world, run_id: run.run_id, read: all.filter((a) => a.direction === "in"), wrote: all.filter((a) => a.direction === "out"), made_from: [], went_into: [], cut: false };
    }
  });
  return (
    <Loaded of={data}>
      {(l) =>
        l.read.length + l.wrote.length === 0 ? (
          <Card>
            <Empty icon="link" title="This run read and wrote no files">
              <p>Files that a run reads and writes are connected here with the runs before and after it. Give a run a file with <code>name.world=/path</code>.</p>
            </Empty>
          </Card>
        ) : (
          <LineageGraph of={{ kind: "run", world: run.world, id: run.run_id, label: run.tool }} lineage={l} />
        )
      }
    </Loaded>
  );
}

function MoneyTab({ run }: { run: Run }) {
  const r = run.receipt;
  return (
    <div class="grid2">
      <Card title="Money">
        <Facts
          items={[
            ["Cost so far", f.money(run.cost_micro)],
            [<Word name="Hold">Set aside for each attempt</Word>, run.hold_micro != null && f.money(run.hold_micro)],
            ["Most it and its children may cost", run.budget_micro != null ? f.money(run.budget_micro) : <span class="muted">as much as the world allows</span>],
            ["Set aside now", run.held_micro != null && f.money(run.held_micro)],
            ["Would have cost", run.would_cost_micro != null && f.money(run.would_cost_micro)],
            ["Reported", r && f.money(r.cost_micro)],
            ["More than was held", r && (r.over_hold ? <Badge tone="warn">yes</Badge> : "no")],
            ["The tool's last word", r && (r as { incomplete?: boolean }).incomplete && <Badge tone="warn">missing: the sum may be incomplete</Badge>],
            ["Believed in full", r && (r as { capped?: boolean }).capped && <Badge tone="warn">no: it was cut down</Badge>],
          ]}
        />
      </Card>
      <Card title="Measured by the core">
        {r ? (
          <Facts
            items={[
              ["Time", f.span(r.wall_ms)],
              ["Processor", r.cpu_ms != null && f.span(r.cpu_ms)],
              ["Bytes in", f.bytes(r.bytes_in)],
              ["Bytes out", f.bytes(r.bytes_out)],
            ]}
          />
        ) : (
          <p class="muted">The receipt is written when the run is over.</p>
        )}
      </Card>
    </div>
  );
}

function AuditTab({ run }: { run: Run }) {
  const data = useResource<Page<AuditRecord>>(`audit ${run.world}/${run.run_id}`, (s) => get("/v1/audit", { subject: `run:${run.world}/${run.run_id}`, limit: 200 }, s));
  return (
    <Loaded of={data}>
      {(p) => {
        const items = p.items.filter((a) => a.subject === `run:${run.world}/${run.run_id}`);
        return items.length ? (
          <Card flush>
            <Table label="Audit of this run" rows={items} keyOf={(a) => String(a.id)} columns={[
              { name: "When", width: "120px", cell: (a) => <Time at={a.at} /> },
              { name: "Event", cell: (a) => <code>{a.event}</code> },
              { name: "Who", cell: (a) => <Foreign text={a.actor} max={80} /> },
              { name: "Facts", drop: 2, cell: (a) => <code class="muted"><Foreign text={JSON.stringify(a.facts ?? {})} max={160} /></code> },
            ]} />
          </Card>
        ) : (
          <Card><Empty icon="audit" title="No record is near"><p>The audit keeps who did what. <a href={link("/audit")}>Look through all of it.</a></p></Empty></Card>
        );
      }}
    </Loaded>
  );
}
