// Tokens and secrets. A token's text is shown once, a secret's never.
import { useState } from "preact/hooks";
import { all, ApiError, request, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import { may, mayEverywhere, session } from "../api/session";
import type { Secret, Token } from "../api/types";
import { money } from "../lib/format";
import { link, place, setQuery } from "../router";
import { confirm, Dialog } from "../ui/dialog";
import { Check, TextField } from "../ui/form";
import { Badge, Button, Card, Command, Empty, Foreign, Note, Refusal, Status, Tabs, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { toast } from "../ui/toast";
import { Loaded, Screen } from "./frame";
import { NarrowToken } from "./narrow-token";
import { endOf, RightsFields, useRights, wordsOf } from "./rights";

export default function Tokens() {
  const q = place.value.query;
  const tab = q.get("tab") ?? "tokens";
  const secrets = mayEverywhere("admin");
  return (
    <Screen title="Tokens and secrets" acts={<Acts tab={tab} secrets={secrets} />}>
      <Tabs label="Tokens or secrets" current={tab} hrefOf={(t) => link("/tokens", { tab: t === "tokens" ? undefined : t })} tabs={[{ id: "tokens", name: "Tokens" }, { id: "sessions", name: "Sessions" }, ...(secrets ? [{ id: "secrets", name: "Secrets" }] : [])]} />
      {tab === "secrets" ? <Secrets /> : <List sessions={tab === "sessions"} />}
      {q.get("new") === "narrower" && <NarrowToken onClose={() => setQuery({ new: undefined })} />}
    </Screen>
  );
}

function Acts({ tab, secrets }: { tab: string; secrets: boolean }) {
  if (tab === "secrets") return secrets ? <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "secret" })}>New secret</Button> : null;
  if (tab !== "tokens") return null;
  return (
    <>
      <Button icon="key" onClick={() => setQuery({ new: "narrower" })}>Narrow a token</Button>
      {may("admin") && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "token" })}>New token</Button>}
    </>
  );
}

function List({ sessions }: { sessions: boolean }) {
  const list = useResource<Token[]>("tokens", (s) => all<Token>("/v1/tokens", {}, s), { kinds: ["TOKEN"] });
  const me = session.value.at === "in" ? session.value.me : undefined;
  const revoke = (t: Token) => () =>
    confirm({ title: `Revoke ${t.label || t.token_id}?`, text: <p>It stops working at once, with all tokens narrowed from it{t.person ? "" : " or made with it"}{t.kind === "console" ? "; whoever uses this session is signed out" : ""}.</p>, act: "Revoke it", danger: true, run: async () => { await send("DELETE", `/v1/tokens/${seg(t.token_id)}`); list.reload(); } });
  return (
    <>
      <Loaded of={list}>
        {(everything) => {
          const rows = everything.filter((t) => (t.kind === "console") === sessions).sort((a, b) => (a.state === b.state ? (a.created_at < b.created_at ? 1 : -1) : a.state === "active" ? -1 : 1));
          return rows.length === 0 ? (
            <Card>{sessions ? <Empty icon="key" title="Nobody is signed in by a link or token"><p>Sessions of this page stand here, with their end.</p></Empty> : <Empty icon="key" title="There are no tokens besides the owner's"><p>A token gives a program or a person a part of your rights, and an end. Make one here, or type</p><Command text="wharf token create --label ci --verb run --verb read" /></Empty>}</Card>
          ) : (
            <Card flush>
              {!sessions && <p class="muted lead-in">A token can be narrowed without asking the core: here, or by <code>wharf token narrow --verb read</code>. The lesser one ends with it.</p>}
              <Table label={sessions ? "Sessions" : "Tokens"} rows={rows} keyOf={(t) => t.token_id} columns={[
                { name: "Label", tall: true, cell: (t) => <><Foreign text={t.label || "no label"} max={80} /> {t.person && <Badge tone="run">person</Badge>} {t.token_id === me?.session_id && <Badge tone="ok">this one</Badge>}<div class="muted id break"><Foreign text={t.token_id} /></div></> },
                { name: "State", cell: (t) => <Status state={t.state} /> },
                { name: "May", drop: 2, cell: (t) => t.verbs.join(", ") },
                { name: "Worlds", drop: 3, cell: (t) => (t.worlds ? t.worlds.join(", ") : <span class="muted">all</span>) },
                { name: "Tools", drop: 3, cell: (t) => (t.tools ? <code>{t.tools.join(", ")}</code> : <span class="muted">all</span>) },
                { name: "Budget", num: true, drop: 3, cell: (t) => (t.budget_micro != null ? money(t.budget_micro) : <span class="muted">–</span>) },
                { name: "Until", drop: 1, cell: (t) => (t.expires_at ? <Time at={t.expires_at} plain /> : <span class="muted">no end</span>) },
                { name: <span class="sr">Acts</span>, num: true, cell: (t) => t.state === "active" && <Button small kind="danger" onClick={revoke(t)}>Revoke</Button> },
              ]} />
            </Card>
          );
        }}
      </Loaded>
      {place.value.query.get("new") === "token" && <NewToken onClose={() => setQuery({ new: undefined })} onDone={list.reload} />}
    </>
  );
}

function NewToken({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [label, setLabel] = useState("");
  const rights = useRights(["read"]);
  const [person, setPerson] = useState(false);
  const [budget, setBudget] = useState("");
  const [error, setError] = useState<ApiError>();
  const [made, setMade] = useState<Token>();
  const me = session.value.at === "in" ? session.value.me : undefined;
  const submit = async () => {
    const { verbs, end } = rights;
    const [ttl, worlds, tools] = [endOf(end), wordsOf(rights.worlds), wordsOf(rights.tools)];
    try {
      setMade(await send<Token>("POST", "/v1/tokens", { label: label.trim(), verbs: [...verbs], ...(worlds.length ? { worlds } : {}), ...(tools.length ? { tools } : {}), ...(ttl ? { ttl_ms: ttl } : {}), ...(budget.trim() ? { budget_micro: Math.round(Number(budget) * 1e6) } : {}), person }));
      onDone();
    } catch (e) {
      setError(e as ApiError);
    }
  };
  if (made)
    return (
      <Dialog title="The token is shown this once" onClose={onClose} foot={<Button kind="primary" onClick={onClose}>I have kept it</Button>}>
        <Note tone="warn">Copy it now. Nobody can show it again, the core keeps only how to recognise it.</Note>
        <Command text={made.token ?? ""} />
      </Dialog>
    );
  return (
    <Dialog title="A new token" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={rights.verbs.size === 0}>Make the token</Button></>}>
      <TextField label="Label" value={label} onInput={setLabel} hint="What it is for." autoFocus />
      <RightsFields of={rights} verbs={me?.verbs} />
      <TextField label="Budget in dollars" optional value={budget} onInput={setBudget} hint="Needs exactly one world." />
      {me?.person && <Check label="It belongs to a person" hint="who may decide what is reserved for people" checked={person} onChange={setPerson} />}
      {error && <Refusal error={error} />}
    </Dialog>
  );
}

function Secrets() {
  const list = useResource<Secret[]>("secrets", (s) => all<Secret>("/v1/secrets", {}, s));
  return (
    <>
      <Loaded of={list}>
        {(rows) => rows.length === 0 ? <Card><Empty icon="key" title="No secret is kept"><p>Secrets are given to providers whose approval names them, and are never shown again.</p><Command text="wharf secret set MAIL_KEY" /></Empty></Card> : (
          <Card flush><Table label="Secrets" rows={rows} keyOf={(s) => s.name} columns={[{ name: "Name", cell: (s) => <code><Foreign text={s.name} max={100} /></code> }, { name: "Set", cell: (s) => <Time at={s.set_at} /> }, { name: <span class="sr">Acts</span>, num: true, cell: (s) => <Button small kind="danger" onClick={() => confirm({ title: `Forget ${s.name}?`, text: <p>Providers that need it fail at their next start.</p>, act: "Forget it", danger: true, run: async () => { await send("DELETE", `/v1/secrets/${seg(s.name)}`); list.reload(); } })}>Forget</Button> }]} /></Card>
        )}
      </Loaded>
      {place.value.query.get("new") === "secret" && <NewSecret onClose={() => setQuery({ new: undefined })} onDone={list.reload} />}
    </>
  );
}

function NewSecret({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [error, setError] = useState<ApiError>();
  const submit = async () => {
    try {
      await request(`/v1/secrets/${seg(name.trim())}`, { method: "PUT", body: value, type: "application/octet-stream" });
      toast("The secret is kept.");
      onDone();
      onClose();
    } catch (e) {
      setError(e as ApiError);
    }
  };
  return (
    <Dialog title="A new secret" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!name.trim() || !value}>Keep it</Button></>}>
      <TextField label="Name" mono value={name} onInput={setName} autoFocus hint="A name that is there already gets the new value." />
      <TextField label="Value" type="password" mono value={value} onInput={setValue} hint="It is never shown again." />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
