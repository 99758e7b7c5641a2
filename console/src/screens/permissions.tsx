// What a provider may do, in plain words; approved whole, in part, or not at all.
import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import type { Provider } from "../api/types";
import { Dialog } from "../ui/dialog";
import { Check, SelectField } from "../ui/form";
import { Badge, Button, Card, Foreign, Note, Refusal } from "../ui/parts";

export function Permissions({ of: p, onApprove }: { of: Provider; onApprove?: ((body: Record<string, unknown>) => Promise<unknown>) | undefined }) {
  const [open, setOpen] = useState(false);
  const list = p.permissions ?? [];
  return (
    <Card title="Permissions" actions={onApprove && <Button small onClick={() => setOpen(true)}>{p.permissions_approved ? "Change the approval" : "Approve"}</Button>}>
      {list.length === 0 ? (
        <p class="muted">It asks for nothing beyond running in its sandbox.</p>
      ) : (
        <ul class="col tight">
          {list.map((x) => (
            <li class="row wrap">
              {x.approved ? <Badge tone="ok">approved</Badge> : x.narrowed_to?.length ? <Badge tone="warn">narrowed</Badge> : <Badge>not approved</Badge>}
              <span class="break"><Foreign text={x.meaning} max={400} /></span>
              {x.narrowed_to?.map((n) => <code><Foreign text={n} max={200} /></code>)}
            </li>
          ))}
        </ul>
      )}
      {p.wishes && p.wishes.length > 0 && (
        <div class="col tight" style={{ marginTop: "12px" }}>
          <h3>What it wants beyond what is usual</h3>
          {p.wishes.map((w) => <p><Badge tone={w.granted ? "ok" : undefined}>{w.granted ? "granted" : "not granted"}</Badge> <Foreign text={w.meaning} max={400} /></p>)}
        </div>
      )}
      {open && onApprove && <Approve p={p} list={list} onApprove={onApprove} onClose={() => setOpen(false)} />}
    </Card>
  );
}

function Approve({ p, list, onApprove, onClose }: { p: Provider; list: { permission: string; meaning: string; approved: boolean }[]; onApprove: (body: Record<string, unknown>) => Promise<unknown>; onClose: () => void }) {
  const fresh = !p.permissions_approved;
  const [chosen, setChosen] = useState(new Set(list.filter((x) => x.approved || fresh).map((x) => x.permission)));
  const [sandbox, setSandbox] = useState<string>(p.sandbox_wanted ?? "standard");
  const [error, setError] = useState<ApiError>();
  const submit = async () => {
    try {
      const all = list.every((x) => chosen.has(x.permission));
      await onApprove({ ...(all ? { all: true } : { permissions: [...chosen] }), ...(p.manifest_hash ? { manifest_hash: p.manifest_hash } : {}), ...(p.sandbox_wanted ? { sandbox } : {}) });
      onClose();
    } catch (e) {
      setError(e as ApiError);
    }
  };
  return (
    <Dialog title={<>What may <Foreign text={p.name || p.provider_id} max={80} /> do?</>} onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary">Approve {chosen.size} of {list.length}</Button></>}>
      {list.length === 0 && <p>It asks for nothing beyond running in its sandbox.</p>}
      {list.map((x) => <Check label={<Foreign text={x.meaning} max={300} />} hint={<code><Foreign text={x.permission} max={200} /></code>} checked={chosen.has(x.permission)} onChange={(on) => { const next = new Set(chosen); if (on) next.add(x.permission); else next.delete(x.permission); setChosen(next); }} />)}
      {p.sandbox_wanted && <SelectField label="Sandbox" value={sandbox} onChange={setSandbox} options={["none", "basic", "standard", "strict"].map((s) => ({ value: s, name: s }))} />}
      {sandbox === "none" && <Note tone="warn">Without a sandbox it can do whatever the core's own user can.</Note>}
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
