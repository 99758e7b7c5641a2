// One world: its files, its money, its rules.
import { useState } from "preact/hooks";
import { address, all, ApiError, get, isMissingRoute, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import { may, mayEverywhere } from "../api/session";
import type { Costs, Token, Usage, World } from "../api/types";
import * as f from "../lib/format";
import { go, link, place, worldLink } from "../router";
import { confirm, Dialog } from "../ui/dialog";
import { SelectField, TextField } from "../ui/form";
import { Badge, Button, Card, Empty, Facts, Foreign, Menu, Refusal, Status, Tabs, Time, Tip } from "../ui/parts";
import { Table } from "../ui/table";
import { toast } from "../ui/toast";
import { DayChart } from "./day-chart";
import { FilesTab } from "./files";
import { Loaded, Screen } from "./frame";
import { Budget } from "./worlds";

export default function WorldScreen({ args }: { args: string[] }) {
  const id = args[0] ?? "";
  const base = `/v1/worlds/${seg(id)}`;
  const world = useResource<World>(`world ${id}`, (s) => get(base, {}, s), { kinds: ["WORLD", "RUN"], match: (c) => c.world === id || c.id === id });
  const usage = useResource<Usage>(`usage ${id}`, (s) => get(`${base}/usage`, {}, s), { kinds: ["RUN"], match: (c) => c.world === id });
  const tab = place.value.query.get("tab") ?? "files";
  const [edit, setEdit] = useState(false);
  return (
    <Screen
      title={id}
      heading={<Foreign text={id} />}
      of={world}
      crumb={<a href={link("/worlds")}>Worlds</a>}
      acts={
        may("admin", id) && (
          <>
            <Button onClick={() => setEdit(true)}>Settings</Button>
            <Menu label="More" items={[
              { name: "Clear away unused files", icon: "trash", onClick: () => collect(id) },
              mayEverywhere("admin") && id !== "default" && { name: "Remove this world", icon: "trash", danger: true, onClick: () => remove(id, usage.data.value) },
            ]} />
          </>
        )
      }
    >
      <Loaded of={world}>
        {(w) => (
          <>
            <dl class="strip">
              <div><dt>Spent</dt><dd>{f.money(w.spent_micro)}{w.limit_micro != null && <span class="muted"> of {f.money(w.limit_micro)}</span>}</dd></div>
              {w.held_micro > 0 && <div><dt>Held</dt><dd>{f.money(w.held_micro)}</dd></div>}
              {usage.data.value && <div><dt>Files</dt><dd>{f.count(usage.data.value.files)}, {f.bytes(usage.data.value.bytes)}</dd></div>}
              <div><dt>Files kept</dt><dd>{w.retention_days ? f.plural(w.retention_days, "day") : "without end"}</dd></div>
              {w.run_retention_days != null && <div><dt>Runs kept</dt><dd>{f.plural(w.run_retention_days, "day")}</dd></div>}
              {w.retain === "digest" && <div><dt>Values of runs</dt><dd><Tip text="Of what its runs were given and gave no more than digests are kept once they have ended."><Badge tone="odd">digests only</Badge></Tip></dd></div>}
              <div><dt class="sr">Runs</dt><dd><a href={link("/runs", { world: id })}>Its runs</a></dd></div>
            </dl>
            <Tabs label="Parts of this world" current={tab === "lineage" ? "files" : tab} hrefOf={(t) => worldLink(id, { tab: t === "files" ? undefined : t })} tabs={[{ id: "files", name: "Files" }, { id: "money", name: "Money" }, { id: "rules", name: "Rules", count: w.policy?.length }, ...(may("admin", id) ? [{ id: "tokens", name: "Tokens" }] : [])]} />
            {(tab === "files" || tab === "lineage") && <FilesTab world={id} onChange={usage.reload} />}
            {tab === "money" && <Money w={w} />}
            {tab === "rules" && <Rules w={w} />}
            {tab === "tokens" && <Tokens world={id} />}
            {edit && <Settings w={w} onClose={() => setEdit(false)} onDone={world.reload} />}
          </>
        )}
      </Loaded>
    </Screen>
  );
}

async function collect(id: string): Promise<void> {
  const dry = await send<{ files: number; leftovers: number; bytes: number }>("POST", `/v1/worlds/${seg(id)}/collect?dry=true`);
  confirm({
    title: `Clear away ${f.plural(dry.files + dry.leftovers, "file")}?`,
    text: <p>{f.bytes(dry.bytes)} of files that were neither read nor written within the world's retention, and leftovers of runs and uploads.</p>,
    act: "Clear them away",
    danger: true,
    run: async () => {
      const done = await send<{ files: number; bytes: number }>("POST", `/v1/worlds/${seg(id)}/collect`);
      toast(`${f.plural(done.files, "file")} removed, ${f.bytes(done.bytes)}.`);
    },
  });
}

function remove(id: string, usage: Usage | undefined): void {
  const files = (usage?.files ?? 0) + (usage?.local_files ?? 0);
  confirm({
    title: `Remove the world ${id}?`,
    text: <p>{files > 0 ? `${f.plural(files, "file")}, ${f.bytes((usage?.bytes ?? 0) + (usage?.local_bytes ?? 0))}, go with it.` : "It holds no files."} What its runs did stays on record.</p>,
    act: "Remove the world",
    danger: true,
    run: async () => {
      await send("DELETE", address(`/v1/worlds/${seg(id)}`, { force: files > 0 }));
      go(link("/worlds"));
    },
  });
}

function Money({ w }: { w: World }) {
  const costs = useResource<Costs>(`world costs ${w.world}`, (s) => get("/v1/costs", { by: "day", since: "30d", world: w.world }, s), { kinds: ["RUN"], match: (c) => c.world === w.world });
  const tools = useResource<Costs>(`world tools ${w.world}`, (s) => get("/v1/costs", { by: "tool", since: "30d", world: w.world }, s), { kinds: ["RUN"], match: (c) => c.world === w.world });
  return (
    <div class="grid2">
      <Card title="Budget">
        <div class="col">
          <Budget limit={w.limit_micro} spent={w.spent_micro} held={w.held_micro} />
          <Facts items={[["Limit", w.limit_micro != null ? f.money(w.limit_micro) : "none"], ["Spent", f.money(w.spent_micro)], ["Held", f.money(w.held_micro)], ["Over", w.over_micro ? f.money(w.over_micro) : undefined], ["Held for each attempt, at least", f.money(w.default_hold_micro)], ["When a tool never says its cost", w.unknown_cost === "held" ? "all that was held is booked" : "what it reported is booked"]]} />
        </div>
      </Card>
      <Card title="Spent by day, UTC">
<Loaded of={costs}>{(c) => <DayChart costs={c} count={30} />}</Loaded>
      </Card>
      <Card title="By tool, 30 days" flush>
        <Loaded of={tools}>{(c) => (c.items.length ? <Table label="Cost by tool" rows={c.items} keyOf={(i) => i.key} columns={[{ name: "Tool", cell: (i) => <Foreign text={i.key} max={80} /> }, { name: "Runs", num: true, cell: (i) => f.count(i.runs) }, { name: "Cost", num: true, cell: (i) => f.money(i.cost_micro) }]} /> : <p class="muted" style={{ padding: "12px 16px" }}>No run yet.</p>)}</Loaded>
      </Card>
    </div>
  );
}

function Rules({ w }: { w: World }) {
  if (!w.policy?.length)
    return <Card><Empty icon="shield" title="This world has no rules of its own"><p>Rules say which tools need an approval and by whom. The owner's rules count here. Set one with <code>wharf worlds set {w.world} --policy …</code>.</p></Empty></Card>;
  return (
    <Card flush>
      <Table label="Rules" rows={w.policy} keyOf={(r) => JSON.stringify(r)} columns={[
        { name: "Tool", cell: (r) => <code><Foreign text={r.tool} /></code> },
        { name: "When", cell: (r) => r.when ?? "always" },
        { name: "What", cell: (r) => (r.approve ? <Badge tone="warn">needs approval</Badge> : <Badge tone="ok">passes</Badge>) },
        { name: "By", drop: 1, cell: (r) => (r.audience === "person" || !r.audience ? "a person" : <Foreign text={r.audience} />) },
      ]} />
    </Card>
  );
}

function Tokens({ world }: { world: string }) {
  const list = useResource<Token[]>(`tokens of ${world}`, async (s) => {
    try {
      return await all<Token>("/v1/tokens", { world }, s);
    } catch (e) {
      if (!isMissingRoute(e) && (e as ApiError).code !== "request.invalid") throw e;
      return (await all<Token>("/v1/tokens", {}, s)).filter((t) => !t.worlds || t.worlds.includes(world));
    }
  }, { kinds: ["TOKEN"] });
  return (
    <Loaded of={list}>
      {(rows) => rows.length === 0 ? <Card><Empty icon="key" title="No token is for this world"><p><a href={link("/tokens", { new: "token" })}>Make one</a></p></Empty></Card> : (
        <Card flush><Table label="Tokens" rows={rows} keyOf={(t) => t.token_id} columns={[{ name: "Label", cell: (t) => <Foreign text={t.label || t.token_id} max={80} /> }, { name: "State", cell: (t) => <Status state={t.state} /> }, { name: "May", drop: 1, cell: (t) => t.verbs.join(", ") }, { name: "Until", drop: 2, cell: (t) => (t.expires_at ? <Time at={t.expires_at} plain /> : "without end") }]} /></Card>
      )}
    </Loaded>
  );
}

function Settings({ w, onClose, onDone }: { w: World; onClose: () => void; onDone: () => void }) {
  const dollars = (n: number | null | undefined) => (n == null ? "" : String(n / 1e6));
  const [limit, setLimit] = useState(dollars(w.limit_micro));
  const [hold, setHold] = useState(dollars(w.default_hold_micro));
  const [days, setDays] = useState(w.retention_days ? String(w.retention_days) : "");
  const [publish, setPublish] = useState<string>(w.publish ?? "direct");
  const [runDays, setRunDays] = useState(w.run_retention_days ? String(w.run_retention_days) : "");
  const [retain, setRetain] = useState<string>(w.retain ?? "full");
  const [unknown, setUnknown] = useState<string>(w.unknown_cost ?? "reported");
  const [error, setError] = useState<ApiError>();
  const submit = async () => {
    try {
      await send("PATCH", `/v1/worlds/${seg(w.world)}`, { limit_micro: limit.trim() ? Math.round(Number(limit) * 1e6) : null, default_hold_micro: Math.round(Number(hold || 0) * 1e6), retention_days: days.trim() ? Number(days) : null, run_retention_days: runDays.trim() ? Number(runDays) : null, retain, publish, unknown_cost: unknown });
      toast("The settings are kept.");
      onDone();
      onClose();
    } catch (e) {
      setError(e as ApiError);
    }
  };
  return (
    <Dialog title={<>Settings of <Foreign text={w.world} /></>} onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary">Keep these settings</Button></>}>
      <TextField label="Limit in dollars" optional value={limit} onInput={setLimit} hint="The most its runs may cost. Empty: no limit." />
      <TextField label="Held for each attempt, in dollars" value={hold} onInput={setHold} hint="The least that is set aside, unless the tool is free." />
      <TextField label="Days files are kept" optional value={days} onInput={setDays} hint="After their last use. Empty: without end." />
      <TextField label="Days runs are kept" optional value={runDays} onInput={setRunDays} hint="Older ones that have ended are removed for good. Empty: without end." />
      <SelectField label="Values of runs that have ended" value={retain} onChange={setRetain} options={[{ value: "full", name: "are kept" }, { value: "digest", name: "go; only digests are kept" }]} />
      <SelectField label="Outputs are seen" value={publish} onChange={setPublish} options={[{ value: "direct", name: "as each is written" }, { value: "staged", name: "all at once, when the run has succeeded" }]} />
      <SelectField label="When a tool never says its cost" value={unknown} onChange={setUnknown} options={[{ value: "reported", name: "book what it reported" }, { value: "held", name: "book all that was held" }]} />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
