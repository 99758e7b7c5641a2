// Triggers: who outside starts what by calling an address.
import { useState } from "preact/hooks";
import { ApiError, get, send } from "../api/client";
import { useResource } from "../api/resource";
import { may, session } from "../api/session";
import type { Page, Trigger, World } from "../api/types";
import { Obj, parse, write, type Json } from "../lib/json";
import { go, place, setQuery, toolLink, triggerLink, worldLink } from "../router";
import { Dialog } from "../ui/dialog";
import { AreaField, SelectField, TextField } from "../ui/form";
import { Button, Card, Command, Empty, Foreign, Note, Refusal, Status, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { all } from "./tools";

type Proof = NonNullable<Trigger["proof"]>;
/** What a caller sends to prove that it may. */
export const PROOFS: Record<Proof, { name: string; how: string }> = {
  standard: { name: "Standard Webhooks", how: "a signature over an id, a time and the body, as Standard Webhooks say" },
  github: { name: "GitHub", how: "the signature that GitHub makes with the secret of its webhook" },
  stripe: { name: "Stripe", how: "the signature that Stripe makes with the signing secret of its endpoint" },
  token: { name: "A token", how: "the secret in the header authorization: Bearer …" },
};

/** The address that somebody outside calls, as this browser reaches the core. */
export const hookOf = (t: Trigger) => `${location.origin}${t.path ?? ""}`;

/** What starts it: a call of its hook, a file, or a run. */
export function startOf(t: Trigger): string {
  if (t.on_file) return `files ${t.on_file}`;
  if (t.on_run) return `runs where ${t.on_run}`;
  return t.proof ? `calls, proof: ${PROOFS[t.proof].name}` : "calls";
}

export default function Triggers() {
  const list = useResource<Trigger[]>("triggers", (s) => all<Trigger>("/v1/triggers", {}, s), { every: 10_000 });
  const making = place.value.query.has("new");
  return (
    <Screen title="Triggers" of={list} lead={<>A <Word name="Trigger">trigger</Word> lets somebody outside start a <Word name="Run">run</Word>: a push at GitHub, a payment at Stripe, a form of your own. A delivery that comes twice starts one run.</>} acts={may("run") && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "1" })}>New trigger</Button>}>
      <Loaded of={list}>
        {(rows) => rows.length === 0 ? (
          <Card>
            <Empty icon="hook" title="Nobody outside starts anything">
              <p>Triggers stand here with the address to call and how callers prove that they may. {may("run") ? "Make one here, or type" : "To make one, type"}</p>
              <Command text="wharf trigger add greet --webhook wharf/echo --proof token --query text=message" />
            </Empty>
          </Card>
        ) : (
          <Card flush>
            <Table label="Triggers" fixed rows={rows} keyOf={(t) => t.name} hrefOf={(t) => triggerLink(t.name)} columns={[
              { name: "Trigger", width: "22%", grow: true, cell: (t) => <a href={triggerLink(t.name)}><Foreign text={t.name} max={80} /></a> },
              { name: "State", width: "112px", cell: (t) => <Status state={t.state} /> },
              { name: "Tool", drop: 1, cell: (t) => <a class="plain tail" href={toolLink(t.tool)}><Foreign text={t.tool} max={80} /></a> },
              { name: "Started by", width: "26%", drop: 2, cell: (t) => <Foreign text={startOf(t)} max={120} /> },
              { name: "World", width: "14%", drop: 3, cell: (t) => <a class="plain" href={worldLink(t.world)}><Foreign text={t.world} max={60} /></a> },
            ]} />
          </Card>
        )}
      </Loaded>
      {making && may("run") && <NewTrigger onClose={() => setQuery({ new: undefined, tool: undefined })} />}
    </Screen>
  );
}

/** Lines such as `input=header`, as pairs; `undefined` if one does not fit. */
function pairsOf(text: string): [string, string][] | undefined {
  const out: [string, string][] = [];
  for (const line of text.split(/[\n,]/).map((l) => l.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1 || at === line.length - 1) return undefined;
    out.push([line.slice(0, at).trim(), line.slice(at + 1).trim()]);
  }
  return out;
}

const PAIRS = "One a line: input=name.";
const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

function NewTrigger({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [tool, setTool] = useState(place.value.query.get("tool") ?? "");
  const [proof, setProof] = useState<Proof>("standard");
  const [secret, setSecret] = useState("");
  const [body, setBody] = useState("");
  const [headers, setHeaders] = useState("");
  const [query, setQueryText] = useState("");
  const [inputs, setInputs] = useState("{}");
  const [world, setWorld] = useState(() => (session.value.at === "in" && session.value.me.worlds?.[0]) || "default");
  const [budget, setBudget] = useState("");
  const [allow, setAllow] = useState("");
  const [error, setError] = useState<ApiError>();
  const [made, setMade] = useState<Trigger>();
  const worlds = useResource<Page<World>>("worlds", (s) => get("/v1/worlds", { limit: 200 }, s), { kinds: ["WORLD"] });
  const [fromHeaders, fromQuery] = [pairsOf(headers), pairsOf(query)];
  const cost = budget.trim() === "" ? undefined : Number(budget);
  const budgetFault = cost !== undefined && !(cost > 0) ? "A sum such as 0.50." : undefined;
  let json: Json = new Obj([]);
  let fault: string | undefined;
  try {
    json = parse(inputs.trim() || "{}");
    if (!(json instanceof Obj)) fault = "Inputs are an object: { … }.";
  } catch (e) {
    fault = (e as Error).message;
  }
  const wrong = !!fault || !fromHeaders || !fromQuery || !!budgetFault;
  const submit = async () => {
    if (wrong) return;
    setError(undefined);
    const entries: [string, Json | undefined][] = [
      ["name", name.trim()], ["tool", tool.trim()], ["proof", proof], ["world", world], ["inputs", json],
      ["secret", secret.trim() || undefined], ["body", body.trim() || undefined],
      ["headers", fromHeaders?.length ? new Obj(fromHeaders) : undefined], ["query", fromQuery?.length ? new Obj(fromQuery) : undefined],
      ["budget_micro", cost === undefined ? undefined : parse(String(Math.round(cost * 1e6)))], ["allow", words(allow).length ? words(allow) : undefined],
    ];
    try {
      setMade(await send<Trigger>("POST", "/v1/triggers", write(new Obj(entries.filter((e): e is [string, Json] => e[1] !== undefined)), 0)));
    } catch (e) {
      setError(e as ApiError);
    }
  };
  if (made)
    return (
      <Dialog title={made.secret ? "The secret is shown this once" : "The trigger is made"} onClose={() => go(triggerLink(made.name))} foot={<Button kind="primary" onClick={() => go(triggerLink(made.name))}>{made.secret ? "I have kept it" : "Done"}</Button>}>
        {made.secret && <><Note tone="warn">Copy it now and give it to the caller. Nobody can show it again.</Note><div class="field"><span class="label">Secret</span><Command text={made.secret} /></div></>}
        <div class="field"><span class="label">Address to call</span><Command text={hookOf(made)} /></div>
      </Dialog>
    );
  return (
    <Dialog title="A new trigger" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!name.trim() || !tool.trim() || wrong}>Make the trigger</Button></>}>
      <TextField label="Name" value={name} onInput={setName} hint="Lower-case letters, digits, dots, dashes." autoFocus />
      <TextField label="Tool" mono value={tool} onInput={setTool} hint="Such as wharf/echo, or a flow: flow/digest." />
      <SelectField label="How callers prove that they may" value={proof} onChange={(p) => setProof(p as Proof)} options={Object.entries(PROOFS).map(([value, p]) => ({ value, name: p.name }))} hint={`They send ${PROOFS[proof].how}.`} />
      <TextField label="Secret" optional type="password" mono value={secret} onInput={setSecret} hint="The one that the sender gave you. Empty: the core makes one and shows it once." />
      <TextField label="The body becomes the input" optional mono value={body} onInput={setBody} hint="It is read as JSON." />
      <div class="grid3">
        <AreaField label="Headers become inputs" optional mono rows={2} value={headers} onInput={setHeaders} hint={PAIRS} fault={fromHeaders ? undefined : "Each line has a name, = and a header."} />
        <AreaField label="Parameters become inputs" optional mono rows={2} value={query} onInput={setQueryText} hint={PAIRS} fault={fromQuery ? undefined : "Each line has a name, = and a parameter."} />
      </div>
      <AreaField label="Inputs that are the same each time, as JSON" mono rows={3} value={inputs} onInput={setInputs} fault={fault} />
      <div class="grid3">
        <SelectField label="World" value={world} onChange={setWorld} options={(worlds.data.value?.items ?? [{ world }]).map((w) => ({ value: w.world, name: w.world }))} />
        <TextField label="Most a run may cost, in $" optional value={budget} onInput={setBudget} fault={budgetFault} />
      </div>
      <TextField label="Further tools its runs may call" optional mono value={allow} onInput={setAllow} hint="Such as llm/* mail/send. A flow needs those it calls." />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
