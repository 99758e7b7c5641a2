// Worlds: what owns data, budget and rights.
import { useState } from "preact/hooks";
import { ApiError, send } from "../api/client";
import { useResource } from "../api/resource";
import { mayEverywhere } from "../api/session";
import type { World } from "../api/types";
import { money } from "../lib/format";
import { go, place, setQuery, worldLink } from "../router";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/form";
import { Button, Card, Empty, Foreign, Meter, Refusal, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { all } from "./tools";

/** A budget as a bar: spent, set aside, left. */
export function Budget({ limit, spent, held }: { limit: number | null | undefined; spent: number; held: number }) {
  if (limit == null) return <span class="muted">no limit</span>;
  return <Meter label={`${money(spent)} spent and ${money(held)} held of ${money(limit)}`} max={Math.max(limit, spent + held)} parts={[{ value: spent, cls: spent > limit ? "over" : "" }, { value: held, cls: "held" }]} />;
}

export default function Worlds() {
  const list = useResource<World[]>("all worlds", (s) => all<World>("/v1/worlds", {}, s), { kinds: ["WORLD", "RUN"] });
  const making = place.value.query.has("new");
  return (
    <Screen title="Worlds" of={list} lead={<>A <Word name="World">world</Word> owns files, a budget and rules about approvals. Every run belongs to one.</>} acts={mayEverywhere("admin") && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "1" })}>New world</Button>}>
      <Loaded of={list}>
        {(worlds) =>
          worlds.length === 0 ? (
            <Card><Empty icon="world" title="No world is within your reach"><p>A world owns files, a budget and rules about approvals. Your token is for worlds that do not exist any more.</p></Empty></Card>
          ) : (
            <Card flush>
              <Table label="Worlds" rows={worlds} keyOf={(w) => w.world} hrefOf={(w) => worldLink(w.world)} columns={[
                { name: "World", cell: (w) => <a href={worldLink(w.world)}><Foreign text={w.world} max={80} /></a> },
                { name: "Spent", num: true, cell: (w) => money(w.spent_micro) },
                { name: "Held", num: true, drop: 2, cell: (w) => (w.held_micro ? money(w.held_micro) : <span class="muted">–</span>) },
                { name: "Limit", num: true, drop: 1, cell: (w) => (w.limit_micro != null ? money(w.limit_micro) : <span class="muted">none</span>) },
                { name: "Budget", drop: 2, width: "22%", cell: (w) => <Budget limit={w.limit_micro} spent={w.spent_micro} held={w.held_micro} /> },
                { name: "Rules", num: true, drop: 3, cell: (w) => w.policy?.length || <span class="muted">–</span> },
                { name: "Made", drop: 3, cell: (w) => <Time at={w.created_at} plain /> },
              ]} />
            </Card>
          )
        }
      </Loaded>
      {making && mayEverywhere("admin") && <NewWorld onClose={() => setQuery({ new: undefined })} />}
    </Screen>
  );
}

function NewWorld({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [limit, setLimit] = useState("");
  const [error, setError] = useState<ApiError>();
  const submit = async () => {
    try {
      await send("POST", "/v1/worlds", { world: name.trim(), ...(limit.trim() ? { limit_micro: Math.round(Number(limit) * 1e6) } : {}) });
      onClose();
      go(worldLink(name.trim()));
    } catch (e) {
      setError(e as ApiError);
    }
  };
  return (
    <Dialog title="A new world" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!name.trim()}>Make the world</Button></>}>
      <TextField label="Name" value={name} onInput={setName} hint="Lower-case letters, digits, dots, dashes." autoFocus />
      <TextField label="Limit in dollars" optional value={limit} onInput={setLimit} hint="The most its runs may cost in all." fault={limit && !(Number(limit) >= 0) ? "A sum such as 25 or 0.50." : undefined} />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
