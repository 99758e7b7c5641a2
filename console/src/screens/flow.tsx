// One flow: its steps, its graph, a form to run it, its runs, what starts it, and its versions.
import { get, getText, path, send } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Flow, Page, Run, Schedule, Tool, Trigger } from "../api/types";
import { stepsOf } from "../lib/flow";
import { money, plural } from "../lib/format";
import { Obj, parse, type Json } from "../lib/json";
import { flowLink, go, link, place, runLink, scheduleLink, setQuery, toolLink, triggerLink } from "../router";
import { confirm } from "../ui/dialog";
import { JsonView } from "../ui/json";
import { Button, Card, Empty, Facts, Foreign, Menu, Refusal, Status, Tabs, Time, Took } from "../ui/parts";
import { Table } from "../ui/table";
import { toast } from "../ui/toast";
import { AddFlow, FlowGraph, Steps, versionPath } from "./flow-parts";
import { Loaded, Screen } from "./frame";
import { patternOf } from "./schedules";
import { all } from "./tools";
import { startOf } from "./trigger-new";
import { TryIt } from "./try-it";

/** A flow, and its document with numbers as they were written. */
type Read = { flow: Flow; document: Json };

async function read(at: string, signal: AbortSignal): Promise<Read> {
  const text = await getText(at, {}, signal);
  const json = parse(text);
  return { flow: JSON.parse(text) as Flow, document: (json instanceof Obj && json.get("document")) || new Obj([]) };
}

/** Whether a tool's id names a flow, in whatever version. */
const names = (tool: string, flow: string) => tool === `flow/${flow}` || tool.startsWith(`flow/${flow}@`);

function Runs({ tool }: { tool: string }) {
  const runs = useResource<Run[]>(`runs of ${tool}`, async (s) => (await get<Page<Run>>("/v1/runs", { tool, limit: 50 }, s)).items, { kinds: ["RUN"] });
  return (
    <Loaded of={runs}>
      {(rows) => rows.length === 0 ? <Card><Empty icon="runs" title="This version has not run yet"><p>Its runs stand here with their end and their cost. {may("run") && <a href={flowTab("run")}>Run it</a>}</p></Empty></Card> : (
        <Card flush actions={<a href={link("/runs", { tool })}>All</a>} title="Its runs">
          <Table label="Runs" rows={rows} keyOf={(r) => `${r.world}/${r.run_id}`} hrefOf={(r) => runLink(r.world, r.run_id)} columns={[
            { name: "Run", cell: (r) => <a class="id" href={runLink(r.world, r.run_id)}><Foreign text={r.run_id} max={60} /></a> },
            { name: "Status", cell: (r) => <Status state={r.status} /> },
            { name: "World", drop: 3, cell: (r) => <Foreign text={r.world} max={60} /> },
            { name: "Began", drop: 2, cell: (r) => <Time at={r.created_at} plain /> },
            { name: "Took", num: true, drop: 1, cell: (r) => <Took from={r.created_at} to={r.ended_at} /> },
            { name: "Cost", num: true, drop: 1, cell: (r) => money(r.cost_micro) },
          ]} />
        </Card>
      )}
    </Loaded>
  );
}

/** The address of another tab of what is shown. */
function flowTab(tab: string): string {
  const query = Object.fromEntries(place.value.query);
  return link(place.value.path, { ...query, tab, run: undefined, new: undefined });
}

function Starts({ name }: { name: string }) {
  const schedules = useResource<Schedule[]>("schedules", (s) => all<Schedule>("/v1/schedules", {}, s), { every: 15_000 });
  const triggers = useResource<Trigger[]>("triggers", (s) => all<Trigger>("/v1/triggers", {}, s), { every: 15_000 });
  const tool = `flow/${name}`;
  return (
    <div class="col">
      <Card title="Schedules" flush actions={may("run") && <a class="btn small" href={link("/schedules", { new: "1", tool })}>New schedule</a>}>
        <Loaded of={schedules}>
          {(every) => {
            const rows = every.filter((s) => names(s.tool, name));
            return rows.length === 0 ? <Empty level={3} icon="clock" title="No schedule starts it"><p>A schedule runs it by the clock.</p></Empty> : (
              <Table label="Schedules" rows={rows} keyOf={(s) => s.name} hrefOf={(s) => scheduleLink(s.name)} columns={[
                { name: "Schedule", cell: (s) => <a href={scheduleLink(s.name)}><Foreign text={s.name} max={80} /></a> },
                { name: "State", cell: (s) => <Status state={s.state} /> },
                { name: "When", drop: 1, cell: (s) => <code><Foreign text={patternOf(s)} max={80} /></code> },
              ]} />
            );
          }}
        </Loaded>
      </Card>
      <Card title="Triggers" flush actions={may("run") && <a class="btn small" href={link("/triggers", { new: "1", tool })}>New trigger</a>}>
        <Loaded of={triggers}>
          {(every) => {
            const rows = every.filter((t) => names(t.tool, name));
            return rows.length === 0 ? <Empty level={3} icon="hook" title="No trigger starts it"><p>A trigger lets somebody outside run it by calling an address.</p></Empty> : (
              <Table label="Triggers" rows={rows} keyOf={(t) => t.name} hrefOf={(t) => triggerLink(t.name)} columns={[
                { name: "Trigger", cell: (t) => <a href={triggerLink(t.name)}><Foreign text={t.name} max={80} /></a> },
                { name: "State", cell: (t) => <Status state={t.state} /> },
                { name: "Started by", drop: 1, cell: (t) => <Foreign text={startOf(t)} max={120} /> },
              ]} />
            );
          }}
        </Loaded>
      </Card>
    </div>
  );
}

function RunIt({ tool }: { tool: string }) {
  const found = useResource<Tool>(`tool ${tool}`, (s) => get(`/v1/tools/${path(tool)}`, {}, s));
  if (!may("run")) return <Card><Empty icon="flow" title="Your session may not start runs"><p>It may read. A token with the verb <code>run</code> starts runs.</p></Empty></Card>;
  if (found.error.value && !found.data.value) return <Refusal error={found.error.value} retry={found.reload} />;
  return <Loaded of={found}>{(t) => <TryIt tool={t} />}</Loaded>;
}

function Acts({ f, reload }: { f: Flow; reload: () => void }) {
  const remove = () =>
    confirm({
      title: `Remove version ${f.version} of ${f.name}?`,
      text: <p>{f.versions.length === 1 ? "It is the only version: the flow is gone with it. " : ""}Runs that have ended stay as they are. While a run of it is under way, the core refuses.</p>,
      act: "Remove the version",
      danger: true,
      run: async () => {
        await send("DELETE", versionPath(f.name, f.version));
        toast(`Version ${f.version} is removed.`);
        if (f.versions.length === 1) go(link("/flows"));
        else (go(flowLink(f.name)), reload());
      },
    });
  return (
    <>
      {may("run") && <Button kind="primary" icon="play" onClick={() => go(flowTab("run"))}>Run it</Button>}
      {may("flow:write") && <Button icon="plus" onClick={() => setQuery({ new: "1" })}>New version</Button>}
      <Menu label="More" items={[may("flow:write") && { name: "Remove this version", icon: "trash", danger: true, onClick: remove }]} />
    </>
  );
}

const TABS = [{ id: "steps", name: "Steps" }, { id: "graph", name: "Graph" }, { id: "run", name: "Run it" }, { id: "runs", name: "Runs" }, { id: "starts", name: "What starts it" }, { id: "document", name: "Document" }];

export default function OneFlow({ args }: { args: string[] }) {
  const name = args[0] ?? "";
  const q = place.value.query;
  const version = q.get("version") ?? undefined;
  const tab = q.get("tab") ?? "steps";
  const flow = useResource<Read>(`flow ${name} ${version ?? ""}`, (s) => read(versionPath(name, version), s), { every: 15_000 });
  const known = flow.data.value;
  return (
    <Screen title={`Flow ${name}`} heading={<Foreign text={name} max={80} />} of={flow} crumb={<a href={link("/flows")}>Flows</a>} acts={known && <Acts f={known.flow} reload={flow.reload} />}>
      <Loaded of={flow}>
        {({ flow: f, document }) => {
          const steps = stepsOf(f.document);
          return (
            <>
              <p class="break"><Foreign text={f.description} max={2000} /></p>
              <dl class="strip">
                <div><dt>Tool</dt><dd><a href={toolLink(f.tool_id)}><Foreign text={f.tool_id} /></a></dd></div>
                <div><dt>{f.versions.length === 1 ? "Version" : "Versions"}</dt><dd class="row">{f.versions.map((n) => n === f.version ? <b key={n}>{n}</b> : <a key={n} aria-label={`Version ${n}`} href={flowLink(name, { version: String(n), tab: tab === "steps" ? undefined : tab })}>{n}</a>)}</dd></div>
                <div><dt>Added</dt><dd><Time at={f.added_at} /> <span class="muted">by <Foreign text={f.added_by} max={80} /></span></dd></div>
                <div><dt class="sr">Size</dt><dd>{plural(sizeOf(steps), "step")}</dd></div>
              </dl>
              <Tabs label="Parts of the flow" tabs={TABS.filter((t) => t.id !== "run" || may("run"))} current={tab} hrefOf={(id) => flowLink(name, { version, tab: id === "steps" ? undefined : id })} />
              {tab === "steps" && <Card>{steps.length ? <Steps steps={steps} /> : <p class="muted">It has no steps.</p>}</Card>}
              {tab === "graph" && <Card flush><FlowGraph key={f.tool_id} source={f.graph ?? ""} /></Card>}
              {tab === "run" && <RunIt tool={f.tool_id} />}
              {tab === "runs" && <Runs tool={f.tool_id} />}
              {tab === "starts" && <Starts name={f.name} />}
              {tab === "document" && (
                <div class="col">
                  {Object.keys(f.pins ?? {}).length > 0 && <Card title="Its tools are pinned"><Facts items={Object.entries(f.pins ?? {}).map(([tool, hash]) => [<a href={toolLink(tool)}><Foreign text={tool} /></a>, <code class="break">{String(hash)}</code>])} /></Card>}
                  <Card title="Document"><JsonView value={document} open={4} label="Document" /></Card>
                </div>
              )}
              {q.has("new") && may("flow:write") && <AddFlow document={document} onClose={() => setQuery({ new: undefined })} onDone={flow.reload} />}
            </>
          );
        }}
      </Loaded>
    </Screen>
  );
}

function sizeOf(steps: ReturnType<typeof stepsOf>): number {
  return steps.reduce((n, { step }) => n + 1 + sizeOf(step.below), 0);
}
