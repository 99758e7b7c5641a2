// Running a run again with changes. Fields whose credentials were taken out when the run was stored are demanded.
import { useMemo, useState } from "preact/hooks";
import { ApiError, get, path, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import type { Run, Tool } from "../api/types";
import { Obj, parse, write, type Json } from "../lib/json";
import { check, fieldOf, startOf, valueOf, type Fault, type Field, type Val } from "../lib/schema";
import { go, runLink } from "../router";
import { Dialog } from "../ui/dialog";
import { SchemaForm, SelectField, TextField } from "../ui/form";
import { Button, Foreign, Note, Refusal } from "../ui/parts";
import { Loaded } from "./frame";

type Stored = { run: Run; inputs: Json };

export function AgainDialog({ d, stripped, onClose }: { d: Stored; stripped: string[]; onClose: () => void }) {
  const tool = useResource<Tool>(`tool ${d.run.tool}`, (s) => get(`/v1/tools/${path(d.run.tool)}`, {}, s));
  return (
    <Loaded of={tool}>{(t) => <Form d={d} tool={t} known={stripped} onClose={onClose} />}</Loaded>
  );
}

/** Inputs as they can be sent again: files by their path in the world. */
export function resend(inputs: Json, world: string): Json {
  if (!(inputs instanceof Obj)) return inputs;
  const prefix = `world://${world}/`;
  return new Obj(inputs.entries.map(([k, v]) => (typeof v === "string" && v.startsWith(prefix) ? [`${k}.world`, `/${v.slice(prefix.length)}`] : [k, v])));
}

/** What differs from what was stored: new values, and null for what was taken away. */
function changed(from: Json, to: Json): Obj {
  const [before, after] = [from, to].map((it) => (it instanceof Obj ? it : new Obj([]))) as [Obj, Obj];
  const news = after.entries.filter(([k, v]) => { const old = before.get(k); return old === undefined || write(old, 0) !== write(v, 0); });
  const gone = before.entries.filter(([k]) => after.get(k) === undefined).map(([k]): [string, Json] => [k, null]);
  return new Obj([...news, ...gone]);
}

/** The same without some of its fields. */
function without(inputs: Json, fields: string[]): Json {
  return inputs instanceof Obj ? new Obj(inputs.entries.filter(([k]) => !fields.includes(k))) : inputs;
}

/** What has to be given again, at its field where there is one. */
function demand(field: Field, fields: string[]): Fault[] {
  const place = (k: string) => (field.plan.kind === "object" ? `/${k.replaceAll("~", "~0").replaceAll("/", "~1")}` : "");
  return fields.map((k) => ({ path: place(k), message: `${k} was not stored whole. Give it again.` }));
}

function Form({ d, tool, known, onClose }: { d: Stored; tool: Tool; known: string[]; onClose: () => void }) {
  const start = useMemo(() => resend(d.inputs, d.run.world), []);
  const isFile = start instanceof Obj && start.entries.some(([k]) => k.endsWith(".world"));
  const field = useMemo(() => (isFile ? fieldOf({}, "inputs") : fieldOf(tool.input_schema)), []);
  const [stripped, setStripped] = useState(known);
  const [value, setValue] = useState<Val>(() => startOf(field, without(start, known)));
  const [faults, setFaults] = useState<Fault[]>(() => demand(field, known));
  const [mode, setMode] = useState<string>(d.run.mode);
  const [seconds, setSeconds] = useState(d.run.timeout_ms == null ? "" : String(d.run.timeout_ms / 1000));
  const [dollars, setDollars] = useState(d.run.budget_micro == null ? "" : String(d.run.budget_micro / 1e6));
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const [timeout, budget] = [Math.round(Number(seconds) * 1000), Math.round(Number(dollars) * 1e6)];
  const secondsFault = seconds.trim() && !(timeout > 0) ? "A number such as 90." : undefined;
  // A limit that was there cannot be taken away by leaving it out: the core would repeat it.
  const dollarsFault = dollars.trim() ? (budget > 0 ? undefined : "A sum such as 0.50.") : d.run.budget_micro != null ? "It had a budget. Give one." : undefined;
  const submit = async () => {
    const now = valueOf(value) ?? new Obj([]);
    const missing = stripped.filter((k) => !(now instanceof Obj) || now.get(k) === undefined);
    const found = [...check(field, value), ...demand(field, missing)];
    setFaults(found);
    if (found.length || secondsFault || dollarsFault) return;
    setBusy(true);
    setError(undefined);
    try {
      // Outputs and what else the run was asked for are the core's to repeat, and so are limits that stay as they were.
      const limits: [string, Json][] = [];
      if (seconds.trim() && timeout !== d.run.timeout_ms) limits.push(["timeout_ms", parse(String(timeout))]);
      if (dollars.trim() && budget !== d.run.budget_micro) limits.push(["budget_micro", parse(String(budget))]);
      const body = new Obj([["mode", mode], ["inputs", changed(without(start, stripped), now)], ...limits]);
      const made = await send<{ run_id: string }>("POST", `/v1/runs/${seg(d.run.run_id)}/again?world=${seg(d.run.world)}`, write(body, 0));
      onClose();
      go(runLink(d.run.world, made.run_id));
    } catch (e) {
      const fields = (e as ApiError).code === "run.inputs_stripped" ? ((e as ApiError).info.details?.["fields"] as string[]) : [];
      if (fields.length) {
        setStripped(fields);
        setValue(startOf(field, without(now, fields)));
        setFaults(demand(field, fields));
        setBusy(false);
        return;
      }
      setError(e as ApiError);
      const at = (e as ApiError).info?.details?.["path"];
      if (typeof at === "string") setFaults([{ path: at, message: (e as ApiError).message }]);
    }
    setBusy(false);
  };
  return (
    <Dialog title="Run again with changes" wide onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Close</Button><Button type="submit" kind="primary" icon="play" busy={busy}>Run</Button></>}>
      {d.run.kept?.inputs && <Note tone="warn">The inputs of this run were not kept. Give them anew.</Note>}
      {stripped.length > 0 && <Note tone="warn">These were not stored whole, since they may contain credentials, and have to be given again: <Foreign text={stripped.join(", ")} max={500} />.</Note>}
      <SchemaForm field={field} value={value} faults={faults} onChange={setValue} />
      {tool.mock && <SelectField label="Mode" value={mode} onChange={setMode} options={[{ value: "real", name: "Real: it acts" }, { value: "mock", name: "Mock: it pretends" }]} />}
      <div class="grid3">
        <TextField label="Longest an attempt may run, in seconds" optional value={seconds} onInput={setSeconds} fault={secondsFault} />
        <TextField label="Most it may cost, in $" optional={d.run.budget_micro == null} value={dollars} onInput={setDollars} fault={dollarsFault} />
      </div>
      {error && <Refusal error={error} />}
    </Dialog>
  );
}

export { seg };
