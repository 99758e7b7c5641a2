// Running a run again with changes. Fields whose credentials were taken out when the run was stored are demanded.
import { useMemo, useState } from "preact/hooks";
import { ApiError, get, path, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import type { Run, Tool } from "../api/types";
import { Obj, write, type Json } from "../lib/json";
import { check, fieldOf, startOf, valueOf, type Fault, type Val } from "../lib/schema";
import { go, runLink } from "../router";
import { Dialog } from "../ui/dialog";
import { SchemaForm, SelectField } from "../ui/form";
import { Button, Note, Refusal } from "../ui/parts";
import { Loaded } from "./frame";

type Stored = { run: Run; inputs: Json };

export function AgainDialog({ d, onClose }: { d: Stored; onClose: () => void }) {
  const tool = useResource<Tool>(`tool ${d.run.tool}`, (s) => get(`/v1/tools/${path(d.run.tool)}`, {}, s));
  return (
    <Loaded of={tool}>{(t) => <Form d={d} tool={t} onClose={onClose} />}</Loaded>
  );
}

/** Inputs as they can be sent again: files by their path in the world. */
export function resend(inputs: Json, world: string): Json {
  if (!(inputs instanceof Obj)) return inputs;
  const prefix = `world://${world}/`;
  return new Obj(inputs.entries.map(([k, v]) => (typeof v === "string" && v.startsWith(prefix) ? [`${k}.world`, `/${v.slice(prefix.length)}`] : [k, v])));
}

function Form({ d, tool, onClose }: { d: Stored; tool: Tool; onClose: () => void }) {
  const start = useMemo(() => resend(d.inputs, d.run.world), []);
  const isFile = start instanceof Obj && start.entries.some(([k]) => k.endsWith(".world"));
  const field = useMemo(() => (isFile ? fieldOf({}, "inputs") : fieldOf(tool.input_schema)), []);
  const [value, setValue] = useState<Val>(() => startOf(field, start));
  const [faults, setFaults] = useState<Fault[]>([]);
  const [mode, setMode] = useState<string>(d.run.mode);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const stripped = (error?.info.details?.["fields"] as string[] | undefined) ?? [];
  const submit = async () => {
    const found = check(field, value);
    setFaults(found);
    if (found.length) return;
    setBusy(true);
    try {
      const body = new Obj([["tool", d.run.tool], ["world", d.run.world], ["mode", mode], ["inputs", valueOf(value) ?? new Obj([])]]);
      const made = await send<{ run_id: string }>("POST", "/v1/runs", write(body, 0));
      onClose();
      go(runLink(d.run.world, made.run_id));
    } catch (e) {
      setError(e as ApiError);
      const at = (e as ApiError).info?.details?.["path"];
      if (typeof at === "string") setFaults([{ path: at, message: (e as ApiError).message }]);
    }
    setBusy(false);
  };
  return (
    <Dialog title="Run again with changes" wide onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Close</Button><Button type="submit" kind="primary" icon="play" busy={busy}>Run</Button></>}>
      {d.run.kept && <Note tone="warn">The inputs of this run were not kept. Give them anew.</Note>}
      {stripped.length > 0 && <Note tone="warn">These were not stored and have to be given again: {stripped.join(", ")}.</Note>}
      <SchemaForm field={field} value={value} faults={faults} onChange={setValue} />
      {tool.mock && <SelectField label="Mode" value={mode} onChange={setMode} options={[{ value: "real", name: "Real: it acts" }, { value: "mock", name: "Mock: it pretends" }]} />}
      {error && <Refusal error={error} />}
    </Dialog>
  );
}

export { seg };
