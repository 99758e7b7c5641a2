// A new trigger: what starts it, and what its runs are given.
import { useState } from "preact/hooks";
import { ApiError, get, send } from "../api/client";
import { useResource } from "../api/resource";
import { session } from "../api/session";
import type { Page, Trigger, World } from "../api/types";
import { Obj, parse, write, type Json } from "../lib/json";
import { go, place, triggerLink } from "../router";
import { Dialog } from "../ui/dialog";
import { AreaField, SelectField, TextField } from "../ui/form";
import { Button, Command, Note, Refusal } from "../ui/parts";

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

/** What can start one, as a choice and as a button. */
export const STARTS = [
  { value: "call", name: "somebody outside calls its address", button: "On a call" },
  { value: "file", name: "a file is written", button: "On a file" },
  { value: "run", name: "a run has ended", button: "On the end of a run" },
];

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

export function NewTrigger({ onClose }: { onClose: () => void }) {
  const [start, setStart] = useState(() => STARTS.find((o) => o.value === place.value.query.get("new"))?.value ?? "call");
  const [pattern, setPattern] = useState("");
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
  const called = start === "call";
  const wrong = !!fault || !!budgetFault || (called ? !fromHeaders || !fromQuery : !pattern.trim());
  const submit = async () => {
    if (wrong) return;
    setError(undefined);
    const call: [string, Json | undefined][] = [
      ["proof", proof], ["secret", secret.trim() || undefined], ["body", body.trim() || undefined],
      ["headers", fromHeaders?.length ? new Obj(fromHeaders) : undefined], ["query", fromQuery?.length ? new Obj(fromQuery) : undefined],
    ];
    const entries: [string, Json | undefined][] = [
      ["name", name.trim()], ["tool", tool.trim()], ["world", world], ["inputs", json],
      ...(called ? call : [[start === "file" ? "on_file" : "on_run", pattern.trim()] as [string, Json]]),
      ["budget_micro", cost === undefined ? undefined : parse(String(Math.round(cost * 1e6)))], ["allow", words(allow).length ? words(allow) : undefined],
    ];
    try {
      const added = await send<Trigger>("POST", "/v1/triggers", write(new Obj(entries.filter((e): e is [string, Json] => e[1] !== undefined)), 0));
      if (added.path) setMade(added);
      else go(triggerLink(added.name));
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
      <SelectField label="It starts a run when" value={start} onChange={setStart} options={STARTS.map(({ value, name }) => ({ value, name }))} />
      {start === "file" && <TextField label="Files whose path fits" mono value={pattern} onInput={setPattern} hint="Such as /inbox/** or /in/*.csv. In inputs, ${file.path} is its path." />}
      {start === "run" && <AreaField label="Runs of which this holds" mono rows={2} value={pattern} onInput={setPattern} hint={'Such as run.tool == "wharf/count" && run.status == "succeeded". In inputs, ${run.id} is its id.'} />}
      {called && (
        <>
          <SelectField label="How callers prove that they may" value={proof} onChange={(p) => setProof(p as Proof)} options={Object.entries(PROOFS).map(([value, p]) => ({ value, name: p.name }))} hint={`They send ${PROOFS[proof].how}.`} />
          <TextField label="Secret" optional type="password" mono value={secret} onInput={setSecret} hint="The one that the sender gave you. Empty: the core makes one and shows it once." />
          <TextField label="The body becomes the input" optional mono value={body} onInput={setBody} hint="It is read as JSON." />
          <div class="grid3">
            <AreaField label="Headers become inputs" optional mono rows={2} value={headers} onInput={setHeaders} hint={PAIRS} fault={fromHeaders ? undefined : "Each line has a name, = and a header."} />
            <AreaField label="Parameters become inputs" optional mono rows={2} value={query} onInput={setQueryText} hint={PAIRS} fault={fromQuery ? undefined : "Each line has a name, = and a parameter."} />
          </div>
        </>
      )}
      <AreaField label={called ? "Inputs that are the same each time, as JSON" : "Inputs, as JSON"} mono rows={3} value={inputs} onInput={setInputs} fault={fault} />
      <div class="grid3">
        <SelectField label="World" value={world} onChange={setWorld} options={(worlds.data.value?.items ?? [{ world }]).map((w) => ({ value: w.world, name: w.world }))} />
        <TextField label="Most a run may cost, in $" optional value={budget} onInput={setBudget} fault={budgetFault} />
      </div>
      <TextField label="Further tools its runs may call" optional mono value={allow} onInput={setAllow} hint="Such as llm/* mail/send. A flow needs those it calls." />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
