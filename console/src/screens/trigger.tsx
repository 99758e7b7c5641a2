// One trigger: the address to call, what of a call becomes which input, and the runs it started.
import { useState } from "preact/hooks";
import { get, seg } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Page, Run, Trigger, TriggerFiring } from "../api/types";
import { money } from "../lib/format";
import { fromJs } from "../lib/json";
import { link, runLink, toolLink, worldLink } from "../router";
import { JsonView } from "../ui/json";
import { Button, Card, Command, Empty, Facts, Foreign, Note, Status, Time, Took } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { StandingActs } from "./standing";
import { TestTrigger } from "./trigger-test";
import { hookOf, PROOFS, startOf } from "./trigger-new";

/** Why it is paused, if nobody asked for it. */
const PAUSED: Record<string, string> = { rights_ended: "The rights it was made with have ended. ", too_fast: "It started runs too fast. ", too_much: "It owed too many runs. " };

export default function TriggerScreen({ args }: { args: string[] }) {
  const name = args[0] ?? "";
  const base = `/v1/triggers/${seg(name)}`;
  const trigger = useResource<Trigger>(`trigger ${name}`, (s) => get(base, {}, s), { every: 10_000 });
  const caller = `trigger.${name}`;
  const runs = useResource<Run[]>(`runs of trigger ${name}`, async (s) => (await get<Page<Run>>("/v1/runs", { caller, limit: 50 }, s)).items, { kinds: ["RUN"] });
  const history = useResource<TriggerFiring[]>(`history of trigger ${name}`, async (s) => (await get<Page<TriggerFiring>>(`${base}/history`, {}, s)).items, { every: 10_000 });
  const refused = (history.data.value ?? []).filter((x) => x.state === "refused");
  return (
    <Screen title={name} heading={<Foreign text={name} max={150} />} of={trigger} crumb={<a href={link("/triggers")}>Triggers</a>} acts={trigger.data.value && <Acts t={trigger.data.value} base={base} reload={trigger.reload} />}>
      <Loaded of={trigger}>
        {(t) => (
          <>
            <dl class="strip">
              <div><dt class="sr">State</dt><dd><span role="status"><Status state={t.state} /></span></dd></div>
              <div><dt>Tool</dt><dd><a href={toolLink(t.tool)}><Foreign text={t.tool} max={120} /></a></dd></div>
              <div><dt>World</dt><dd><a href={worldLink(t.world)}><Foreign text={t.world} max={80} /></a></dd></div>
              <div><dt>Started by</dt><dd><Foreign text={startOf(t)} max={200} /></dd></div>
            </dl>
            {t.state === "paused" && <Note tone="warn" icon="pause">{PAUSED[t.pause_cause ?? ""] ?? ""}{t.path ? "Calls of its address are refused until it is resumed." : "It starts nothing until it is resumed."}</Note>}
            {t.on_file && <Card title="What starts it"><p>A file of the world <code><Foreign text={t.world} max={80} /></code> is written whose path fits <code class="break"><Foreign text={t.on_file} max={400} /></code>.</p></Card>}
            {t.on_run && <Card title="What starts it"><p>A run of the world <code><Foreign text={t.world} max={80} /></code> ends of which this holds: <code class="break"><Foreign text={t.on_run} max={2000} /></code></p></Card>}
            {t.path && <Card title="How it is called">
              <div class="col">
                <p>Somebody sends a <code>POST</code> to this address{t.proof && <>, with {PROOFS[t.proof].how}</>}:</p>
                <Command text={hookOf(t)} />
                <p class="muted">The address is this core as your browser reaches it; a sender outside may have to use another host. {t.secret_name && <>The secret is kept as <code><Foreign text={t.secret_name} max={200} /></code> and shown nowhere.</>}</p>
              </div>
            </Card>}
            <div class="split even">
              {t.path && <Card title="What of a call becomes which input">
                <Facts items={[
                  ["The body, as JSON", t.body ? <code><Foreign text={t.body} max={120} /></code> : <span class="muted">is left out</span>],
                  ...Object.entries(t.headers).map(([input, header]) => [<>Header <code><Foreign text={header} max={120} /></code></>, <code><Foreign text={input} max={120} /></code>] as [preact.ComponentChildren, preact.ComponentChildren]),
                  ...Object.entries(t.query).map(([input, key]) => [<>Parameter <code><Foreign text={key} max={120} /></code></>, <code><Foreign text={input} max={120} /></code>] as [preact.ComponentChildren, preact.ComponentChildren]),
                ]} />
              </Card>}
              <Card title="Its runs">
                <Facts items={[
                  ["Most a run may cost", t.budget_micro != null ? money(t.budget_micro) : <span class="muted">as much as the world allows</span>],
                  ["May call besides", t.allow.length > 0 && <code class="break"><Foreign text={t.allow.join(", ")} max={300} /></code>],
                  ["Last time", t.last && <><Status state={t.last.state} /> <Time at={t.last.at} /> <span class="muted break"><Foreign text={t.last.about} max={120} /></span>{t.last.error && <> <Foreign text={t.last.error.message} max={300} /></>}</>],
                  ["Act as", <code><Foreign text={caller} max={120} /></code>],
                  ["Made", <><Time at={t.created_at} /> <span class="muted">by <Foreign text={t.created_by} max={60} /></span></>],
                  ["Its rights end", t.expires_at && <Time at={t.expires_at} as="relative" />],
                ]} />
              </Card>
            </div>
            {Object.keys(t.inputs).length > 0 && <Card title="Inputs that it hands in"><JsonView value={fromJs(t.inputs)} open={3} label="Inputs" /></Card>}
            <Card title="What it started" flush actions={<a href={link("/runs", { caller })}>All</a>}>
              <Loaded of={runs}>
                {(rows) => rows.length === 0 ? <Empty level={3} icon="hook" title={t.path ? "Nobody has called it yet" : "It has started nothing yet"}><p>Each run that it starts stands here.</p></Empty> : (
                  <Table label="Runs of this trigger" rows={rows} keyOf={(r) => r.run_id} hrefOf={(r) => runLink(r.world, r.run_id)} columns={[
                    { name: "Status", width: "128px", cell: (r) => <Status state={r.status} /> },
                    { name: "Run", cell: (r) => <a class="id" href={runLink(r.world, r.run_id)}><Foreign text={r.run_id.length > 18 ? `…${r.run_id.slice(-12)}` : r.run_id} /></a> },
                    { name: "Called", drop: 1, cell: (r) => <Time at={r.created_at} plain /> },
                    { name: "Took", num: true, drop: 2, cell: (r) => <Took from={r.created_at} to={r.ended_at} /> },
                    { name: "Cost", num: true, drop: 2, cell: (r) => money(r.cost_micro) },
                  ]} />
                )}
              </Loaded>
            </Card>
            {refused.length > 0 && (
              <Card title="What started nothing" flush>
                <Table label="What started nothing" rows={refused} keyOf={(x) => `${x.at} ${x.about}`} columns={[
                  { name: "When", width: "120px", cell: (x) => <Time at={x.at} plain /> },
                  { name: "About", drop: 1, cell: (x) => <span class="id break"><Foreign text={x.about} max={200} /></span> },
                  { name: "Why", tall: true, cell: (x) => x.error && <><a href={`/docs/errors/${x.error.code}`} target="_blank" rel="noreferrer"><code><Foreign text={x.error.code} max={60} /></code></a> <span class="muted break"><Foreign text={x.error.message} max={300} /></span></> },
                ]} />
              </Card>
            )}
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function Acts({ t, base, reload }: { t: Trigger; base: string; reload: () => void }) {
  const [testing, setTesting] = useState(false);
  if (!may("run", t.world)) return null;
  const goes = `${t.path ? "Its address answers nobody any more, and its secret is forgotten. " : "It starts nothing more. "}Runs it has started remain, those under way go on.`;
  return (
    <StandingActs of={{ base, kind: "trigger", name: t.name, list: link("/triggers"), goes, state: t.state, reload }}>
      {t.path && <Button icon="play" onClick={() => setTesting(true)}>Test</Button>}
      {testing && <TestTrigger t={t} base={base} onClose={() => setTesting(false)} onDone={reload} />}
    </StandingActs>
  );
}
