// Trying a tool: a form beside the JSON it makes, files by drop or by button, and the run live below.
import { useMemo, useRef, useState } from "preact/hooks";
import { ApiError, get, send } from "../api/client";
import { useResource } from "../api/resource";
import { session } from "../api/session";
import type { Page, Tool, World } from "../api/types";
import { bytes } from "../lib/format";
import { Obj, parse, write, type Json } from "../lib/json";
import { check, fieldOf, startOf, valueOf, type Fault, type Val } from "../lib/schema";
import { safe } from "../lib/text";
import { upload } from "../lib/upload";
import { place, setQuery } from "../router";
import { AreaField, SchemaForm, SelectField, TextField } from "../ui/form";
import { Button, Card, Foreign, Meter, Refusal } from "../ui/parts";
import { toastError } from "../ui/toast";
import { RunPanel } from "./run-panel";

type FileInput = { key: string; path: string; name: string; size: number; sent: number };

export function TryIt({ tool }: { tool: Tool }) {
  const field = useMemo(() => fieldOf(tool.input_schema ?? { type: "object" }), [tool.tool_id]);
  const [value, setValue] = useState<Val>(() => startOf(field));
  const [files, setFiles] = useState<FileInput[]>([]);
  const [raw, setRaw] = useState<string>();
  const [faults, setFaults] = useState<Fault[]>([]);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const [world, setWorld] = useState(() => (session.value.at === "in" && session.value.me.worlds?.[0]) || "default");
  const [mode, setMode] = useState("real");
  const [budget, setBudget] = useState("");
  const worlds = useResource<Page<World>>("worlds", (s) => get("/v1/worlds", { limit: 200 }, s), { kinds: ["WORLD"] });
  const q = place.value.query;
  const running = q.get("run");
  const inputs = (): Json => {
    const made = valueOf(value);
    const entries = made instanceof Obj ? made.entries.filter(([k]) => !files.some((f) => f.key === k)) : [];
    return new Obj([...entries, ...files.map((f): [string, Json] => [`${f.key}.world`, f.path])]);
  };
  const text = raw ?? write(inputs());
  const rawFault = useMemo(() => {
    if (raw === undefined) return undefined;
    try {
      return parse(raw) instanceof Obj ? undefined : "Inputs are an object: { … }.";
    } catch (e) {
      return (e as Error).message;
    }
  }, [raw]);
  const editRaw = (t: string) => {
    setRaw(t);
    try {
      const json = parse(t);
      if (json instanceof Obj) setValue(startOf(field, json));
    } catch {
      // The fault is shown below the field.
    }
  };
  const submit = async (e: Event) => {
    e.preventDefault();
    setError(undefined);
    if (rawFault) return;
    const fileKeys = new Set(files.map((f) => `/${f.key}`));
    const found = raw === undefined ? check(field, value).filter((f) => !fileKeys.has(f.path)) : [];
    setFaults(found);
    if (found.length) {
      setTimeout(() => document.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    const cost = budget.trim() === "" ? undefined : Number(budget);
    if (cost !== undefined && !(cost > 0)) return;
    setBusy(true);
    try {
      const body: [string, Json][] = [["tool", tool.tool_id], ["world", world], ["mode", mode], ["inputs", raw === undefined ? inputs() : parse(raw)]];
      const made = await send<{ run_id: string }>("POST", "/v1/runs", write(new Obj(cost === undefined ? body : [...body, ["budget_micro", parse(String(Math.round(cost * 1e6)))]]), 0));
      setQuery({ run: `${world}/${made.run_id}` });
    } catch (err) {
      const refused = err as ApiError;
      setError(refused);
      const at = refused.info?.details?.["path"];
      if (typeof at === "string") setFaults([{ path: at, message: refused.message }]);
    }
    setBusy(false);
  };
  const at = running?.indexOf("/") ?? -1;
  return (
    <div class="col loose">
      <div class="grid2">
        <Card title="Inputs">
          <form class="col" onSubmit={submit} noValidate>
            <SchemaForm key={raw === undefined ? "form" : "raw"} field={field} value={value} faults={faults} onChange={(v) => (setRaw(undefined), setValue(v))} />
            <Files tool={tool} world={world} files={files} onChange={setFiles} />
            <div class="grid3">
              <SelectField label="World" value={world} onChange={setWorld} options={(worlds.data.value?.items ?? [{ world }]).map((w) => ({ value: w.world, name: w.world }))} />
              {tool.mock && <SelectField label="Mode" value={mode} onChange={setMode} options={[{ value: "real", name: "Real: it acts" }, { value: "mock", name: "Mock: it pretends" }]} />}
              <TextField label="Budget in $" optional value={budget} onInput={setBudget} fault={budget && !(Number(budget) > 0) ? "A sum such as 0.50." : undefined} />
            </div>
            {error && <Refusal error={error} />}
            <div>
              <Button type="submit" kind="primary" icon="play" busy={busy} disabled={!!rawFault}>Run</Button>
            </div>
          </form>
        </Card>
        <Card title="As JSON">
          <AreaField label="Inputs as JSON" mono rows={14} value={text} onInput={editRaw} fault={rawFault} hint="What is changed here is sent as it stands." />
        </Card>
      </div>
      {running && at > 0 && (
        <Card title="The run">
          <RunPanel key={running} world={running.slice(0, at)} id={running.slice(at + 1)} />
        </Card>
      )}
    </div>
  );
}

function Files({ tool, world, files, onChange }: { tool: Tool; world: string; files: FileInput[]; onChange: (f: FileInput[]) => void }) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const current = useRef(files);
  current.current = files;
  const names = Object.keys(((tool.input_schema as { properties?: object })?.properties ?? {}) as object);
  const add = async (list: FileList | null) => {
    for (const file of Array.from(list ?? [])) {
      const free = names.find((n) => !current.current.some((f) => f.key === n)) ?? "file";
      const entry: FileInput = { key: free, path: `/uploads/${file.name}`, name: file.name, size: file.size, sent: 0 };
      onChange([...current.current, entry]);
      try {
        await upload(world, entry.path, file, file.type, new AbortController().signal, (sent) => onChange(current.current.map((f) => (f.path === entry.path ? { ...f, sent } : f))));
      } catch (e) {
        toastError(e);
        onChange(current.current.filter((f) => f.path !== entry.path));
      }
    }
  };
  return (
    <div class="field">
      <span class="label">Files <span class="muted">optional</span></span>
      {files.map((f, i) => (
        <div class="row wrap">
          <TextField label={<span class="sr">Input for {safe(f.name)}</span>} value={f.key} onInput={(key) => onChange(files.map((x, j) => (j === i ? { ...x, key } : x)))} list="input-names" />
          <span class="grow clip"><Foreign text={f.path} max={120} /> <span class="muted">{bytes(f.size)}</span></span>
          {f.sent < f.size && <Meter label={safe(`Uploading ${f.name}`)} max={f.size} parts={[{ value: f.sent }]} />}
          <Button kind="quiet" small icon="trash" label={safe(`Leave ${f.name} out`)} onClick={() => onChange(files.filter((_, j) => j !== i))} />
        </div>
      ))}
      <datalist id="input-names">{names.filter((n) => safe(n) === n).map((n) => <option value={n} />)}</datalist>
      <div class={over ? "drop over" : "drop"} onDragOver={(e) => (e.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)} onDrop={(e) => (e.preventDefault(), setOver(false), void add(e.dataTransfer?.files ?? null))}>
        <p>Drop a file here, or <Button small icon="up" onClick={() => input.current?.click()}>Choose a file</Button></p>
        <input ref={input} type="file" multiple hidden onChange={(e) => (void add(e.currentTarget.files), (e.currentTarget.value = ""))} />
      </div>
    </div>
  );
}
