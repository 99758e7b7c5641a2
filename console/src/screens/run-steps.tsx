// A run of a flow: its steps as a tree with what became of each, what it waits for, and messages sent to it.
import { useMemo, useState } from "preact/hooks";
import { ApiError, get, seg, send } from "../api/client";
import { useResource, type Resource } from "../api/resource";
import { may } from "../api/session";
import type { Flow, Page, Run, RunStep } from "../api/types";
import { linesOf, signalsOf, stepsOf, UNTOLD, waitsFor, whatOf, type Line, type Step } from "../lib/flow";
import { count, money, plural, tail } from "../lib/format";
import { Obj, write } from "../lib/json";
import { check, fieldOf, startOf, valueOf, type Fault, type Val } from "../lib/schema";
import { safe } from "../lib/text";
import { link, runLink, toolLink } from "../router";
import { Dialog } from "../ui/dialog";
import { SchemaForm, SelectField, TextField } from "../ui/form";
import { Button, Card, Empty, Foreign, Note, Refusal, Status, Time, Took } from "../ui/parts";
import { Table } from "../ui/table";
import { toast } from "../ui/toast";
import { versionPath } from "./flow-parts";
import { Loaded } from "./frame";
import { Rerun } from "./rerun";

/** The flow that a tool is, and its version. */
export function flowOf(tool: string): { name: string; version: string } | undefined {
  const m = /^flow\/([^@]+)@(\d+)$/.exec(tool);
  return m ? { name: m[1]!, version: m[2]! } : undefined;
}

export type FlowRun = { told: Resource<RunStep[]>; lines: Line[]; signals: Map<string, unknown>; more: ReadonlySet<string>; showMore: (path: string) => void };

/** What is known of a run of a flow; of other runs nothing is asked. */
export function useFlowRun(run: Run | undefined): FlowRun | undefined {
  const flow = run && flowOf(run.tool);
  const open = !!run && !run.ended_at;
  const [more, setMore] = useState<ReadonlySet<string>>(new Set());
  const told: Resource<RunStep[]> = useResource<RunStep[]>(flow ? `steps ${run.world}/${run.run_id}` : null, async (s) => (await get<Page<RunStep>>(`/v1/runs/${seg(run!.run_id)}/steps`, { world: run!.world }, s)).items, {
    kinds: ["RUN", "ASK"],
    match: (c) => c.kind === "ASK" || c.id === run?.run_id || !!told.data.peek()?.some((t) => t.run_id === c.id),
    ...(open ? { every: 2000 } : {}),
  });
  // A version that was removed explains nothing any more; what is told is shown all the same.
  const document = useResource<Step["below"]>(flow ? `document ${run.tool}` : null, async (s) => stepsOf((await get<Flow>(versionPath(flow!.name, flow!.version), {}, s).catch((e: unknown) => (e instanceof ApiError && e.status === 404 ? ({} as Flow) : Promise.reject(e)))).document));
  const steps = document.data.value;
  const lines = useMemo(() => (steps && told.data.value && run ? linesOf(steps, told.data.value, run.status, more) : []), [steps, told.data.value, run?.status, more]);
  const signals = useMemo(() => signalsOf(steps ?? []), [steps]);
  if (!flow) return undefined;
  return { told, lines, signals, more, showMore: (path) => setMore(new Set(more).add(path)) };
}

/** Why a step waits, in a few words. */
function why(line: Line): string {
  const now = line.tries.at(-1);
  const last = line.tries.at(-2);
  if (now?.status === "retrying" || (line.step?.kind === "call" && now?.status === "waiting")) return last?.error ? `failed with ${last.error.code} and is tried again` : "is tried again";
  if (line.step?.kind === "call") return "calls its tool";
  return line.step ? whatOf(line.step) : "waits";
}

const WAITS_SHOWN = 4;

/** Says of an open run of a flow which steps it waits for and until when, with a way to send what they want. */
export function FlowWaits({ run, flow }: { run: Run; flow: FlowRun }) {
  const [sending, setSending] = useState<string>();
  // What is asked of people stands above already.
  const waits = useMemo(() => waitsFor(flow.lines).filter((w) => !run.ask || !["ask", "approve"].includes(w.step?.kind ?? "")), [flow.lines, run.ask]);
  if (run.ended_at || waits.length === 0) return null;
  const wanted = [...new Set(waits.flatMap((w) => (w.step?.kind === "signal" ? [String(w.step.body["name"])] : [])))];
  return (
    <Note tone={wanted.length ? "warn" : "run"} icon="clock">
      <ul class="col tight">
        {waits.slice(0, WAITS_SHOWN).map((w) => (
          <li key={w.key}>
            Step <b><Foreign text={w.key} max={120} /></b> <Foreign text={why(w)} max={200} />
            {w.tries.at(-1)?.until && <>{w.step?.kind === "call" ? " at" : w.step?.kind === "sleep" ? ", until" : ", at the latest until"} <Time at={w.tries.at(-1)?.until} /> <span class="muted">(<Time at={w.tries.at(-1)?.until} as="relative" plain />)</span></>}.
          </li>
        ))}
        {waits.length > WAITS_SHOWN && <li class="muted">and {plural(waits.length - WAITS_SHOWN, "step")} more</li>}
      </ul>
      {wanted.length > 0 && may("run", run.world) && (
        <p class="row wrap">{wanted.map((name) => <Button key={name} small kind="primary" onClick={() => setSending(name)}>Send <Foreign text={name} max={80} /></Button>)}</p>
      )}
      {sending !== undefined && <SendSignal run={run} flow={flow} name={sending} onClose={() => setSending(undefined)} />}
    </Note>
  );
}

export function StepsTab({ run, flow }: { run: Run; flow: FlowRun }) {
  const [sending, setSending] = useState(false);
  const [again, setAgain] = useState<string>();
  // Values of a run that were not kept cannot be taken over.
  const mayAgain = !!run.ended_at && !run.kept && may("run", run.world);
  const known = flowOf(run.tool);
  return (
    <div class="col">
      <HowFar run={run} />
      <Loaded of={flow.told}>
        {() =>
          flow.lines.length === 0 ? (
            <Card><Empty icon="flow" title="No step has begun"><p>The steps of the flow stand here with what became of each.</p></Empty></Card>
          ) : (
            <Card flush title="Steps" actions={<span class="row wrap">{known && <a href={link(`/flows/${encodeURIComponent(known.name)}`, { version: known.version })}>The flow</a>}{!run.ended_at && may("run", run.world) && <Button small onClick={() => setSending(true)}>Send a message</Button>}</span>}>
              <Table label="Steps of the flow" rows={flow.lines} keyOf={(l) => l.key} hrefOf={(l) => { const id = l.tries.at(-1)?.run_id; return id ? runLink(run.world, id) : undefined; }} columns={[
                { name: "Step", cell: (l) => <StepName line={l} flow={flow} /> },
                { name: "State", width: "124px", cell: (l) => <StepState line={l} run={run} /> },
                { name: "Run", drop: 2, cell: (l) => <StepRuns line={l} run={run} /> },
                { name: "Began", drop: 3, width: "104px", cell: (l) => (l.tries[0] ? <Time at={l.tries[0].started_at} plain /> : "") },
                { name: "Took", num: true, drop: 1, width: "84px", cell: (l) => (l.tries[0] ? <Took from={l.tries[0].started_at} to={l.tries.at(-1)?.ended_at} /> : "") },
                { name: "Cost", num: true, drop: 1, width: "84px", cell: (l) => costOf(l) },
                ...(mayAgain ? [{ name: <span class="sr">Acts</span>, width: "64px", num: true, cell: (l: Line) => isTop(l) && <Button small kind="quiet" icon="again" label={safe(`Run again from ${l.key}`)} onClick={() => setAgain(l.key)} /> }] : []),
              ]} />
              {again !== undefined && <Rerun run={run} from={again} onClose={() => setAgain(undefined)} />}
              {sending && <SendSignal run={run} flow={flow} onClose={() => setSending(false)} />}
            </Card>
          )
        }
      </Loaded>
    </div>
  );
}

/** A step at the top of the document, which a new run can begin with. */
const isTop = (line: Line) => line.depth === 0 && !!line.step && line.when === undefined && line.state !== "";

/** How far a run of a flow is, as the core says it beside the run. */
type Progress = { cost_micro: number; steps: number; status?: unknown; cites?: string | null; restarts?: string | null; restarted_as?: string | null };

/** What its calls cost together, what it says of itself, and the runs it goes on from or goes on as. */
function HowFar({ run }: { run: Run }) {
  const flow = (run as Run & { flow?: Progress | null }).flow;
  if (!flow) return null;
  const other = (name: string, id: string | null | undefined) => id && <div><dt>{name}</dt><dd><a class="id" href={runLink(run.world, id)}><Foreign text={tail(id, 12)} /></a></dd></div>;
  const status = typeof flow.status === "string" ? flow.status : flow.status == null ? "" : JSON.stringify(flow.status);
  return (
    <dl class="strip">
      <div><dt>Its calls cost</dt><dd>{money(flow.cost_micro)}</dd></div>
      <div><dt>Steps so far</dt><dd>{count(flow.steps)}</dd></div>
      {status && <div><dt>It says</dt><dd class="break"><Foreign text={status} max={300} /></dd></div>}
      {other("Took over results of", flow.cites)}
      {other("Began anew after", flow.restarts)}
      {other("Began anew as", flow.restarted_as)}
    </dl>
  );
}

function costOf(line: Line) {
  const cost = line.tries.reduce((sum, t) => sum + t.cost_micro, 0);
  return cost ? money(cost) : <span class="muted">{line.tries.length ? "–" : ""}</span>;
}

function StepName({ line, flow }: { line: Line; flow: FlowRun }) {
  const inset = { paddingLeft: `${line.depth * 20}px` };
  if (line.hidden) return <div style={inset}><Button small kind="quiet" onClick={() => flow.showMore(line.name)}>Show {plural(line.hidden, "earlier one")}</Button></div>;
  return (
    <div class="step" style={inset}>
      {line.when && <span class="badge"><Foreign text={line.when} max={60} /></span>}
      <b class={line.state ? undefined : "muted"}><Foreign text={line.name} max={80} /></b>
      {line.step && <span class="muted">{line.step.kind === "call" ? <a class="plain" href={toolLink(whatOf(line.step))}><Foreign text={whatOf(line.step)} max={80} /></a> : <Foreign text={whatOf(line.step)} max={100} />}</span>}
    </div>
  );
}

function StepState({ line, run }: { line: Line; run: Run }) {
  const now = line.tries.at(-1);
  if (line.hidden || (!line.step && !now)) return null;
  if (!line.state) return <span class="muted">{run.ended_at ? "not done" : "not yet"}</span>;
  if (line.state === UNTOLD) return <span class="muted" title="It may have been left out: of steps that are over, only calls are kept.">–</span>;
  return <Status state={line.state} />;
}

/** The runs that did a step, one for each try, and why it did not succeed. */
function StepRuns({ line, run }: { line: Line; run: Run }) {
  const now = line.tries.at(-1);
  return (
    <span class="row wrap">
      {line.tries.map((t) => t.run_id && <a key={t.try} class="id" href={runLink(run.world, t.run_id)}>{line.tries.length > 1 || t.try > 1 ? `try ${t.try}` : `…${t.run_id.slice(-8)}`}</a>)}
      {now?.error && <a class="muted" href={`/docs/errors/${now.error.code}`} target="_blank" rel="noreferrer"><code><Foreign text={now.error.code} max={60} /></code></a>}
      {now?.until && !now.ended_at && <span class="muted">until <Time at={now.until} plain /></span>}
    </span>
  );
}

/** A message to the run: as a form where the flow says what it is to look like. It is sent once, however often one clicks. */
function SendSignal({ run, flow, name: given, onClose }: { run: Run; flow: FlowRun; name?: string; onClose: () => void }) {
  const names = [...flow.signals.keys()];
  const [name, setName] = useState(given ?? names[0] ?? "");
  const [free, setFree] = useState(names.length === 0);
  const schema = flow.signals.get(name);
  const field = useMemo(() => fieldOf((schema as Record<string, unknown> | undefined) ?? {}), [name]);
  const [value, setValue] = useState<Val>(() => startOf(field));
  const [faults, setFaults] = useState<Fault[]>([]);
  const [error, setError] = useState<ApiError>();
  const [key] = useState(() => crypto.randomUUID());
  const turn = (next: string) => {
    setName(next);
    setFaults([]);
    setValue(startOf(fieldOf((flow.signals.get(next) as Record<string, unknown> | undefined) ?? {})));
  };
  const submit = async () => {
    const found = check(field, value);
    setFaults(found);
    if (found.length || !name.trim()) return;
    setError(undefined);
    try {
      await send("POST", `/v1/runs/${seg(run.run_id)}/signals/${seg(name.trim())}?world=${seg(run.world)}`, write(new Obj([["value", valueOf(value) ?? null], ["idempotency_key", key]]), 0));
      toast("The message is kept for the run.");
      flow.told.reload();
      onClose();
    } catch (e) {
      const refused = e as ApiError;
      const all = refused.info.details?.["errors"];
      if (Array.isArray(all)) setFaults(all as Fault[]);
      setError(refused);
    }
  };
  const OTHER = "\u0000other";
  return (
    <Dialog title="A message to the run" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!name.trim()}>Send it</Button></>}>
      {names.length > 0 && <SelectField label="Message" value={free ? OTHER : name} onChange={(v) => (setFree(v === OTHER), turn(v === OTHER ? "" : v))} options={[...names.map((n) => ({ value: n, name: n })), { value: OTHER, name: "another one" }]} />}
      {free && <TextField label="Name" mono value={name} onInput={turn} hint="It is kept until a step takes a message of this name." />}
      <SchemaForm key={name} field={{ ...field, title: field.title || "Value" }} value={value} faults={faults} onChange={setValue} />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
