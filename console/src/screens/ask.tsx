// One ask in full: what it is about, who asks through which runs, and the form or the buttons that end it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, getText, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Ask, AskDetail } from "../api/types";
import { at, bytes, money, plural, span } from "../lib/format";
import { fromJs, Obj, parse, write, type Json } from "../lib/json";
import { check, fieldOf, NEEDED, startOf, valueOf, type Fault, type Val } from "../lib/schema";
import { upload } from "../lib/upload";
import { link, runLink, toolLink } from "../router";
import { Code, Diff } from "../ui/code";
import { Dialog } from "../ui/dialog";
import { AreaField, SchemaForm } from "../ui/form";
import { Icon } from "../ui/icons";
import { JsonView } from "../ui/json";
import { Badge, Button, Card, Facts, Foreign, Note, now, Refusal, Status, Time } from "../ui/parts";
import { toast } from "../ui/toast";
import { Loaded } from "./frame";

/** With the arguments and those of the similar call as they were written. */
type Detail = AskDetail & { json?: Json | undefined; before?: Json | undefined };
const LONG = 1500;

async function load(id: string, signal: AbortSignal): Promise<Detail> {
  const text = await getText(`/v1/asks/${seg(id)}`, {}, signal);
  const json = parse(text) as Obj;
  const similar = json.get("similar_run");
  return { ...(JSON.parse(text) as AskDetail), json: json.get("inputs"), before: similar instanceof Obj ? similar.get("inputs") : undefined };
}

export function AskCard({ id, onDone }: { id: string; onDone: () => void }) {
  const detail = useResource<Detail>(`ask ${id}`, (s) => load(id, s), { kinds: ["ASK"], match: (c) => c.id === id });
  return (
    <Loaded of={detail}>
      {(d) => {
        const ask = d.ask;
        const decided = !!ask.decision;
        return (
          <article class="card" aria-labelledby="ask-title">
            <div class="body col">
              <div class="row wrap">
                <Badge tone={ask.kind === "approval" ? "warn" : "run"}>{ask.kind}</Badge>
                <span class="muted">asked <Time at={ask.created_at} as="relative" /></span>
                {!decided && ask.deadline && <><span class="muted" aria-hidden="true">·</span><Deadline ask={ask} /></>}
                {ask.audience !== "any" && <Badge>{ask.audience === "person" ? "for a person" : `for ${ask.audience}`}</Badge>}
              </div>
              <h2 id="ask-title" class="break"><AskTitle ask={ask} max={2000} /></h2>
              <Chain d={d} ask={ask} />
              {typeof ask.detail === "string" && <p class="break"><Foreign text={ask.detail} max={4000} /></p>}
              {ask.detail != null && typeof ask.detail === "object" && <Card title="What there is to know" level={3}><JsonView value={fromJs(ask.detail)} label="Detail" /></Card>}
              {d.kept && !decided && <Note icon="shield">What is asked here, and the answer, are not kept once the run has ended.</Note>}
              {decided ? <Decided ask={ask} /> : null}
            </div>
            {ask.kind === "approval" ? <Approval d={d} ask={ask} decided={decided} onDone={onDone} /> : <Question ask={ask} decided={decided} onDone={onDone} />}
          </article>
        );
      }}
    </Loaded>
  );
}

/** What the core says in the place of a text that was not kept. */
const NOT_KEPT = "Not kept, as the tool, its world or a rule of the owner says.";

/** What an ask is about; of one whose text was not kept, what else is known. */
export function AskTitle({ ask, max }: { ask: Ask; max: number }) {
  if (ask.title !== NOT_KEPT) return <Foreign text={ask.title} max={max} />;
  return <>{ask.kind === "approval" ? "An approval of" : "A question of"} <Foreign text={ask.tool} max={max} /> <span class="muted">(its text was not kept)</span></>;
}

/** How a decision is told. */
export function decisionWord(decision: string): string {
  return ({ allow: "allowed", deny: "denied", off_script: "answered otherwise" } as Record<string, string>)[decision] ?? decision;
}

function Deadline({ ask }: { ask: Ask }) {
  const end = at(ask.deadline);
  if (end === undefined) return null;
  const left = end - now.value;
  return <span class={left < 3_600_000 ? "status warn" : "muted"}>{left > 0 ? `${span(left)} left` : "its time is over"}</span>;
}

function Decided({ ask }: { ask: Ask }) {
  return (
    <div role="status">
      <Note tone={ask.decision === "deny" ? "bad" : ask.decision ? "ok" : undefined}>
        {ask.decision ? <>It was <strong>{decisionWord(ask.decision)}</strong></> : "It is decided"}
        {ask.decided_by && <> by <strong><Foreign text={ask.decided_by.replace(/^grant:/, "")} max={100} /></strong></>}
        {ask.decided_at && <>, <Time at={ask.decided_at} as="relative" /></>}.{ask.reason && <> <Foreign text={ask.reason} max={1000} /></>}
      </Note>
    </div>
  );
}

function Chain({ d, ask }: { d: Detail; ask: Ask }) {
  return (
    <div class="chain">
      <span class="muted">{ask.caller ? <Foreign text={ask.caller} max={60} /> : "Somebody"}</span>
      {d.chain.map((c) => (
        <>
          <Icon name="right" size={12} />
          <a href={runLink(c.world, c.run_id)}><Foreign text={c.tool} max={80} /></a>
        </>
      ))}
      <span class="muted">in <a href={link(`/worlds/${seg(ask.world)}`)}><Foreign text={ask.world} max={60} /></a></span>
    </div>
  );
}

function errorOf(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, { code: "page.failed", message: String(e), retryable: false });
}

/** How long one stops typing before what stands there is looked at. */
const PAUSE_MS = 600;

function answerOf(value: Val): string {
  return write(new Obj([["value", valueOf(value) ?? null]]), 0);
}

/** What the core would refuse an answer for; nothing is answered by it. */
async function wouldTake(ask: Ask, body: string, signal: AbortSignal): Promise<Fault[]> {
  try {
    await send("POST", `/v1/questions/${seg(ask.ask_id)}/answer?dry=true`, body, signal);
    return [];
  } catch (e) {
    const all = errorOf(e).info.details?.["errors"];
    return Array.isArray(all) ? (all as Fault[]) : [];
  }
}

function Question({ ask, decided, onDone }: { ask: Ask; decided: boolean; onDone: () => void }) {
  const field = useMemo(() => fieldOf(ask.schema ?? { type: "string" }), [ask.ask_id]);
  const [value, setValue] = useState<Val>(() => startOf(field));
  const [faults, setFaults] = useState<Fault[]>([]);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const changed = useRef(false);
  // As one types the page looks at each field, and once nothing is wrong there the core says whether it would take it.
  useEffect(() => {
    if (!changed.current || decided) return;
    const end = new AbortController();
    const timer = setTimeout(() => {
      const found = check(field, value);
      setFaults(found.filter((f) => tried || f.message !== NEEDED));
      if (found.length === 0) void wouldTake(ask, answerOf(value), end.signal).then((errors) => !end.signal.aborted && setFaults(errors), () => {});
    }, PAUSE_MS);
    return () => (clearTimeout(timer), end.abort());
  }, [value, tried, decided]);
  if (decided) return null;
  if (!may("answer", ask.world)) return <div class="decide muted">Your session may read this, not answer it.</div>;
  const end = async (body: string, done: string) => {
    setBusy(true);
    setError(undefined);
    try {
      await send("POST", `/v1/questions/${seg(ask.ask_id)}/answer`, body);
      toast(done);
      onDone();
    } catch (e) {
      const refused = errorOf(e);
      const all = refused.info.details?.["errors"];
      if (Array.isArray(all)) setFaults(all as Fault[]);
      setError(refused);
    }
    setBusy(false);
  };
  const put = async (file: File) => {
    const path = `/uploads/${file.name}`;
    await upload(ask.world, path, file, file.type, new AbortController().signal, () => {});
    return path;
  };
  const submit = (e: Event) => {
    e.preventDefault();
    const found = check(field, value);
    setFaults(found);
    setTried(true);
    if (found.length) {
      setTimeout(() => document.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    void end(answerOf(value), "Answered.");
  };
  return (
    <form onSubmit={submit} noValidate>
      <div class="body col" style={{ paddingTop: 0 }}>
        <SchemaForm field={field} value={value} faults={faults} onChange={(v) => ((changed.current = true), setValue(v))} put={may("run", ask.world) ? put : undefined} />
        {error && <Refusal error={error} />}
      </div>
      <div class="decide">
        <Button type="submit" kind="primary" busy={busy}>Answer</Button>
        <Button onClick={() => end('{"status":"declined"}', "Declined.")}>Decline</Button>
      </div>
    </form>
  );
}

function Approval({ d, ask, decided, onDone }: { d: Detail; ask: Ask; decided: boolean; onDone: () => void }) {
  const args = d.json ?? fromJs(d.inputs ?? {});
  const text = write(args);
  const long = text.length > LONG;
  const [seen, setSeen] = useState(!long);
  const [act, setAct] = useState<"once" | "parent" | "deny">();
  const def = d.definition;
  const sideEffects = def?.side_effects;
  const lines = text.split("\n").length;
  return (
    <>
      <div class="body col" style={{ paddingTop: 0 }}>
        <Card
          title="Arguments"
          level={3}
          actions={long && <Button small onClick={() => setSeen(true)} disabled={seen}>{seen ? "All of it is open" : `Open all ${plural(lines, "line")}, ${plural(text.length, "character")}`}</Button>}
        >
          {d.kept?.inputs ? <><p>They were not kept.</p><p><a href="/docs/operations#what-is-kept-of-a-runs-values" target="_blank" rel="noreferrer">What goes, and when</a></p></> : seen ? <Code text={text} label="The exact arguments" max={8_000_000} /> : <Code text={`${text.slice(0, LONG)}\n…`} label="The beginning of the arguments" />}
          {ask.args_digest && <p class="muted break">Digest <code>{ask.args_digest}</code></p>}
        </Card>
        {!d.same_definition && def && <Note tone="bad">The tool has changed since this was asked. What is shown below is its definition now; the core refuses an approval of the old one.</Note>}
        {ask.files && ask.files.length > 0 && (
          <Card title="Files it is bound to" level={3}>
            <Facts items={ask.files.map((f) => [<Foreign text={f.name} />, <><Foreign text={f.path} max={300} /> <span class="muted">{bytes(f.bytes)}{f.b3 && <> · <code>{f.b3.slice(0, 16)}…</code></>}</span></>])} />
          </Card>
        )}
        <Facts
          items={[
            ["Tool", <><a href={toolLink(ask.tool)}><Foreign text={ask.tool} /></a>{ask.tool_hash && <span class="muted"> · definition <code>{ask.tool_hash.slice(0, 16)}…</code></span>}</>],
            ["What it does", def?.description && <Foreign text={def.description} max={2000} />],
            ["Side effects", sideEffects == null ? "It does not say" : sideEffects ? <Badge tone="warn">it acts on the world outside</Badge> : "none"],
            ["Price", def?.free ? "free" : def?.max_cost_micro != null ? `up to ${money(def.max_cost_micro)}` : "It names none"],
            ["Its provider may", d.permissions?.length ? <ul>{d.permissions.filter((p) => p.approved).map((p) => <li><Foreign text={p.meaning} max={300} /></li>)}</ul> : undefined],
            ["Decided before", d.previous.length === 0 && "never about this tool"],
          ]}
        />
        {def?.input_schema !== undefined && (
          <details>
            <summary>The tool's definition</summary>
            <JsonView value={fromJs(def)} open={2} label="Definition" />
          </details>
        )}
        {d.similar_run && (
          <details open={seen && !long}>
            <summary>Compared with the last similar call</summary>
            <p>That was the run <a href={runLink(d.similar_run.world, d.similar_run.run_id)}>{d.similar_run.run_id}</a>.</p>
            <Diff label="Difference to the last similar call" before={write(d.before ?? fromJs(d.similar_run.inputs ?? {}))} after={text} />
          </details>
        )}
        {d.previous.length > 0 && (
          <details>
            <summary>{plural(d.previous.length, "decision")} about this tool before</summary>
            <ul class="col tight">{d.previous.map((p) => <li class="row wrap"><Status state={decisionWord(p.decision ?? "decided")} /> <AskTitle ask={p} max={120} /> <span class="muted">{p.decided_by && <>by <Foreign text={p.decided_by.replace(/^grant:/, "")} max={60} />, </>}<Time at={p.decided_at ?? p.created_at} as="relative" /></span></li>)}</ul>
          </details>
        )}
      </div>
      {!decided &&
        (may("approve", ask.world) ? (
          <div class="decide">
            <button type="button" class="btn primary" data-act="allow" disabled={!seen} aria-describedby={seen ? undefined : "why-not-yet"} onClick={() => setAct("once")}>Allow once</button>
            {d.chain.length > 1 && <Button onClick={() => setAct("parent")} disabled={!seen}>Allow for this parent</Button>}
            <button type="button" class="btn danger" data-act="deny" onClick={() => setAct("deny")}>Deny</button>
            {!seen && <span class="muted" id="why-not-yet">Open the arguments first.</span>}
          </div>
        ) : (
          <div class="decide muted">Your session may read this, not decide it.</div>
        ))}
      {act && <DecideDialog ask={ask} act={act} onClose={() => setAct(undefined)} onDone={onDone} />}
    </>
  );
}

function DecideDialog({ ask, act, onClose, onDone }: { ask: Ask; act: "once" | "parent" | "deny"; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    const proof = { ...(ask.args_digest ? { args_digest: ask.args_digest } : {}), ...(ask.tool_hash ? { tool_hash: ask.tool_hash } : {}) };
    const full = act === "deny" ? { decision: "deny", ...(reason.trim() ? { reason: reason.trim() } : {}), ...proof } : { decision: "allow", ...(act === "parent" ? { scope: "parent" } : {}), ...proof };
    try {
      await send("POST", `/v1/approvals/${seg(ask.ask_id)}/decide`, full);
      toast(act === "deny" ? "Denied." : "Allowed.");
      onClose();
      onDone();
    } catch (e) {
      setError(errorOf(e));
    }
    setBusy(false);
  };
  const title = act === "deny" ? `Deny ${ask.tool}?` : act === "parent" ? `Allow ${ask.tool} for this parent?` : `Allow ${ask.tool} once?`;
  return (
    <Dialog
      title={<Foreign text={title} max={200} />}
      onClose={onClose}
      onSubmit={submit}
      foot={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button type="submit" kind={act === "deny" ? "danger" : "primary"} solid busy={busy} autoFocus={act !== "deny"}>{act === "deny" ? "Deny it" : act === "parent" ? "Allow for this parent now" : "Allow it once"}</Button>
        </>
      }
    >
      <p class="break"><Foreign text={ask.title} max={500} /></p>
      {act === "once" && <p class="muted">It may run with exactly the arguments shown, this one time.</p>}
      {act === "parent" && <p class="muted">Later runs of this tool that the same caller starts within the same parent run are allowed, too, whatever their arguments.</p>}
      {act === "deny" && <AreaField label="Reason" optional value={reason} onInput={setReason} rows={2} hint="The caller is told." autoFocus />}
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
