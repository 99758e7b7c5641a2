// A call of a trigger's hook without a proof: what its run would be given, and the run.
import { useState } from "preact/hooks";
import { ApiError, request } from "../api/client";
import type { Trigger } from "../api/types";
import { Obj, parse, write, type Json } from "../lib/json";
import { safe } from "../lib/text";
import { runLink } from "../router";
import { Dialog } from "../ui/dialog";
import { AreaField, TextField } from "../ui/form";
import { JsonView } from "../ui/json";
import { Button, Note, Refusal } from "../ui/parts";

type Told = { inputs: Json; run?: string | undefined };

export function TestTrigger({ t, base, onClose, onDone }: { t: Trigger; base: string; onClose: () => void; onDone: () => void }) {
  const headers = [...new Set(Object.values(t.headers))];
  const params = [...new Set(Object.values(t.query))];
  const [body, setBody] = useState("{}");
  const [values, setValues] = useState<Record<string, string>>({});
  const [told, setTold] = useState<Told>();
  const [error, setError] = useState<ApiError>();
  let json: Json = null;
  let fault: string | undefined;
  try {
    json = body.trim() ? parse(body) : null;
  } catch (e) {
    fault = (e as Error).message;
  }
  const part = (names: string[], kind: string) => names.flatMap((n): [string, Json][] => { const v = values[`${kind} ${n}`]; return v ? [[n, v]] : []; });
  const call = (dry: boolean) => async () => {
    if (fault) return;
    setError(undefined);
    setTold(undefined);
    try {
      const sent = new Obj([["body", json], ["headers", new Obj(part(headers, "header"))], ["query", new Obj(part(params, "query"))], ["dry_run", dry]]);
      const answer = parse(await (await request(`${base}/test`, { method: "POST", body: write(sent, 0), type: "application/json" })).text());
      const get = (key: string) => (answer instanceof Obj ? answer.get(key) : undefined);
      const run = get("run_id");
      setTold({ inputs: get("inputs") ?? new Obj([]), run: typeof run === "string" ? run : undefined });
      if (!dry) onDone();
    } catch (e) {
      setError(e as ApiError);
    }
  };
  const field = (name: string, kind: string, label: string) => <TextField label={safe(`${label} ${name}`)} optional mono value={values[`${kind} ${name}`] ?? ""} onInput={(v) => setValues({ ...values, [`${kind} ${name}`]: v })} />;
  return (
    <Dialog title={`Call ${t.name} by hand`} wide onClose={onClose} onSubmit={call(false)} foot={<><Button onClick={onClose}>Close</Button><Button onClick={call(true)} disabled={!!fault}>Only show the inputs</Button><Button type="submit" kind="primary" icon="play" disabled={!!fault || t.state !== "active"}>Start a run</Button></>}>
      <p class="muted">Nobody outside is asked, and no proof is needed: you may start such a run anyway.</p>
      <AreaField label="Body, as JSON" optional mono rows={5} value={body} onInput={setBody} fault={fault} />
      {headers.map((n) => field(n, "header", "Header"))}
      {params.map((n) => field(n, "query", "Parameter"))}
      {error && <Refusal error={error} />}
      {told && (
        <div class="col tight" role="status">
          <Note tone="ok">{told.run ? <>A run was started: <a class="id" href={runLink(t.world, told.run)}>{told.run.slice(-12)}</a></> : "This is what its run would be given."}</Note>
          <JsonView value={told.inputs} open={3} label="Inputs of the run" />
        </div>
      )}
    </Dialog>
  );
}
