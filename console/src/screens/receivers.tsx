// Receivers: who outside is told of what.
import { useState } from "preact/hooks";
import { ApiError, get, send } from "../api/client";
import { useResource } from "../api/resource";
import { may, mayEverywhere, session } from "../api/session";
import type { Page, Receiver, World } from "../api/types";
import { count } from "../lib/format";
import { go, place, receiverLink, setQuery } from "../router";
import { Dialog } from "../ui/dialog";
import { Check, SelectField, TextField } from "../ui/form";
import { Button, Card, Command, Empty, Foreign, Note, Refusal, Status, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { all } from "./tools";

/** What a receiver may be told of. */
export const EVENTS: Record<Receiver["on"][number], { name: string; when: string }> = {
  ask: { name: "asks", when: "a question or an approval waits" },
  run: { name: "runs", when: "a run has ended that no other run started" },
  budget: { name: "budgets", when: "a run was refused because a budget did not suffice" },
  agent: { name: "providers", when: "a provider died, does not answer or has changed" },
  schedule: { name: "schedules", when: "a schedule was paused because its rights have ended" },
};

/** What it is told of, in a few words. */
export function toldOf(r: Receiver): string {
  return r.on.map((on) => (on === "run" && r.statuses.length ? `${r.statuses.join(" or ")} runs` : EVENTS[on].name)).join(", ");
}

export default function Receivers() {
  const admin = may("admin");
  const list = useResource<Receiver[]>("receivers", (s) => all<Receiver>("/v1/receivers", {}, s), { every: 10_000 });
  const making = place.value.query.has("new");
  return (
    <Screen title="Receivers" of={list} lead={<>A <Word name="Receiver">receiver</Word> is told what happens: Slack, a program of yours, a service that wakes people. What it is owed is kept until it has it, for a day at most.</>} acts={admin && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "1" })}>New receiver</Button>}>
      <Loaded of={list}>
        {(rows) => rows.length === 0 ? (
          <Card>
            <Empty icon="bell" title="Nobody outside is told anything">
              <p>Receivers stand here with what they are told and whether it arrived. {admin ? "Add one here, or type" : "To add one, type"}</p>
              <Command text="wharf notify add phone --webhook - --slack --on ask" />
            </Empty>
          </Card>
        ) : (
          <Card flush>
            <Table label="Receivers" fixed rows={rows} keyOf={(r) => r.name} hrefOf={(r) => receiverLink(r.name)} columns={[
              { name: "Receiver", width: "18%", grow: true, cell: (r) => <a href={receiverLink(r.name)}><Foreign text={r.name} max={80} /></a> },
              { name: "State", width: "112px", cell: (r) => <Status state={r.state} /> },
              { name: "Told of", drop: 2, cell: (r) => toldOf(r) },
              { name: "World", width: "12%", drop: 3, cell: (r) => (r.world ? <Foreign text={r.world} max={60} /> : <span class="muted">all</span>) },
              { name: "Delivered", width: "92px", num: true, drop: 2, cell: (r) => count(r.sent) },
              { name: "Given up", width: "88px", num: true, drop: 1, cell: (r) => (r.parked ? <span class="status bad">{count(r.parked)}</span> : "0") },
              { name: "Last", width: "190px", drop: 1, cell: (r) => (r.last ? <span class="row"><Status state={r.last.state} /> <Time at={r.last.ended_at} plain /></span> : <span class="muted">nothing yet</span>) },
            ]} />
          </Card>
        )}
      </Loaded>
      {making && admin && <NewReceiver onClose={() => setQuery({ new: undefined })} />}
    </Screen>
  );
}

const STATUSES: Receiver["statuses"] = ["succeeded", "failed", "refused", "canceled"];
const ALL = "";

function NewReceiver({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [on, setOn] = useState(new Set<Receiver["on"][number]>(["ask"]));
  const [statuses, setStatuses] = useState(new Set<Receiver["statuses"][number]>(["failed", "refused"]));
  const [format, setFormat] = useState("json");
  const everywhere = mayEverywhere("admin");
  const [world, setWorld] = useState(() => (everywhere ? ALL : ((session.value.at === "in" && session.value.me.worlds?.[0]) || "default")));
  const [inside, setInside] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [made, setMade] = useState<Receiver>();
  const worlds = useResource<Page<World>>("worlds", (s) => get("/v1/worlds", { limit: 200 }, s), { kinds: ["WORLD"] });
  const turn = <T,>(of: Set<T>, one: T, yes: boolean) => {
    const next = new Set(of);
    if (yes) next.add(one);
    else next.delete(one);
    return next;
  };
  const submit = async () => {
    setError(undefined);
    try {
      setMade(await send<Receiver>("POST", "/v1/receivers", { name: name.trim(), url: url.trim(), on: [...on], format, allow_private: inside, ...(world ? { world } : {}), ...(on.has("run") && statuses.size < STATUSES.length ? { statuses: [...statuses] } : {}) }));
    } catch (e) {
      setError(e as ApiError);
    }
  };
  if (made)
    return (
      <Dialog title="The key is shown this once" onClose={() => go(receiverLink(made.name))} foot={<Button kind="primary" onClick={() => go(receiverLink(made.name))}>I have kept it</Button>}>
        <Note tone="warn">Copy it now. The receiver checks with it that what it is sent comes from this core; Slack needs none.</Note>
        <Command text={made.signing_key ?? ""} />
      </Dialog>
    );
  const options = [...(everywhere ? [{ value: ALL, name: "All worlds" }] : []), ...(worlds.data.value?.items ?? []).map((w) => ({ value: w.world, name: w.world }))];
  return (
    <Dialog title="A new receiver" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!name.trim() || !url.trim() || on.size === 0 || (on.has("run") && statuses.size === 0)}>Add the receiver</Button></>}>
      <TextField label="Name" value={name} onInput={setName} hint="Lower-case letters, digits, dots, dashes." autoFocus />
      <TextField label="Address" type="password" mono value={url} onInput={setUrl} hint="Where notifications are posted to, such as an incoming webhook of Slack. It is kept as a secret and never shown again." />
      <SelectField label="It reads" value={format} onChange={setFormat} options={[{ value: "json", name: "JSON, signed" }, { value: "slack", name: "Slack's form" }]} />
      <fieldset class="field"><legend>It is told when</legend>{(Object.keys(EVENTS) as Receiver["on"]).map((e) => <Check label={EVENTS[e].when} checked={on.has(e)} onChange={(yes) => setOn(turn(on, e, yes))} />)}</fieldset>
      {on.has("run") && <fieldset class="field"><legend>Runs that were</legend><div class="row wrap">{STATUSES.map((s) => <Check label={s} checked={statuses.has(s)} onChange={(yes) => setStatuses(turn(statuses, s, yes))} />)}</div></fieldset>}
      <SelectField label="World" value={world} onChange={setWorld} options={options.length ? options : [{ value: world, name: world }]} hint="Providers and schedules belong to no world: of them one for a single world is not told." />
      <Check label="It may lie on this machine or in a private network" checked={inside} onChange={setInside} />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
