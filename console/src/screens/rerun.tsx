// Running a flow again from one of its steps: what the steps before it gave is taken over.
import { useState } from "preact/hooks";
import { ApiError, seg, send } from "../api/client";
import type { Run } from "../api/types";
import { go, runLink } from "../router";
import { Dialog } from "../ui/dialog";
import { Check, TextField } from "../ui/form";
import { Button, Foreign, Refusal } from "../ui/parts";
import { toast } from "../ui/toast";

export function Rerun({ run, from, onClose }: { run: Run; from: string; onClose: () => void }) {
  const [version, setVersion] = useState("");
  const [force, setForce] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const number = version.trim() ? Number(version) : undefined;
  const fault = number !== undefined && !(Number.isInteger(number) && number > 0) ? "A whole number from 1." : undefined;
  const submit = async () => {
    if (fault) return;
    setBusy(true);
    setError(undefined);
    try {
      const made = await send<{ run_id: string }>("POST", `/v1/runs/${seg(run.run_id)}/rerun?world=${seg(run.world)}`, { from, ...(number === undefined ? {} : { version: number }), ...(force ? { force } : {}) });
      onClose();
      go(runLink(run.world, made.run_id));
      toast("A new run has started.");
    } catch (e) {
      setError(e as ApiError);
      setBusy(false);
    }
  };
  return (
    <Dialog title={<>Run again from <Foreign text={from} max={80} />?</>} onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" icon="play" busy={busy} disabled={!!fault}>Run it</Button></>}>
      <p>A new run takes over what the steps before <b><Foreign text={from} max={80} /></b> gave, and the variables as they were then. Those steps are not done again and cost nothing; this one and all after it are. Approvals of later steps are asked for again.</p>
      <TextField label="Version of the flow" optional value={version} onInput={setVersion} fault={fault} hint="Empty: the one of this run. Another one must have the same steps before." />
      {(force || error?.code === "flow.tool_changed") && <Check label="Take results over although their tools are defined in another way now" checked={force} onChange={setForce} />}
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
