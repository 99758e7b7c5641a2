// Operators: seats, who sits there, what waits for them.
import { all, get, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import { mayEverywhere } from "../api/session";
import type { Seat } from "../api/types";
import { link, place, runLink, setQuery } from "../router";
import { confirm, Dialog } from "../ui/dialog";
import { JsonView } from "../ui/json";
import { Badge, Button, Card, Command, Empty, Foreign, Status, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";

export default function Operators() {
  const list = useResource<Seat[]>("operators", (s) => all<Seat>("/v1/operators", {}, s), { kinds: ["ASK", "PROVIDER"], every: 5000 });
  const shown = place.value.query.get("seat");
  return (
    <Screen title="Operators" of={list} lead={<>An operator is a person's program or a supervising model that answers, approves and does tasks. Its <Word name="Seat">seat</Word> keeps what waits for it.</>}>
      <Loaded of={list}>
        {(rows) => rows.length === 0 ? (
          <Card>
            <Empty icon="seat" title="Nobody has taken a seat">
              <p>Who takes one is shown here, with what waits there. To take one, type</p>
              <Command text='wharf operator --desc "night shift" --person' />
            </Empty>
          </Card>
        ) : (
          <Card flush>
            <Table label="Seats" rows={rows} keyOf={(s) => s.sid} columns={[
              { name: "Seat", tall: true, cell: (s) => <><a href={link("/operators", { seat: s.sid })}><Foreign text={s.desc || s.sid} max={100} /></a><div class="muted id break"><Foreign text={s.sid} /></div></> },
              { name: "Who", cell: (s) => <><Status state={s.connected ? "connected" : "away"} /> {s.person && <Badge tone="run">person</Badge>}</> },
              { name: "Waits", num: true, cell: (s) => (s.pending.length ? <Badge tone="warn">{s.pending.length}</Badge> : <span class="muted">–</span>) },
              { name: "Roles", drop: 2, cell: (s) => (s.roles?.length ? <Foreign text={s.roles.join(", ")} max={200} /> : <span class="muted">–</span>) },
              { name: "Last there", drop: 1, cell: (s) => (s.connected ? "now" : <Time at={s.last_seen} as="relative" plain />) },
              { name: <span class="sr">Acts</span>, num: true, drop: 2, cell: (s) => mayEverywhere("admin") && <Button small kind="danger" onClick={() => confirm({ title: `Give up the seat ${s.desc || s.sid}?`, text: <p>Its token stops working; {s.pending.length ? `${s.pending.length} requests that wait for it are asked elsewhere` : "nothing waits for it"}.</p>, act: "Give it up", danger: true, run: async () => { await send("DELETE", `/v1/operators/${seg(s.sid)}`); list.reload(); } })}>Give up</Button> },
            ]} />
          </Card>
        )}
      </Loaded>
      {shown && <SeatDialog sid={shown} />}
    </Screen>
  );
}

function SeatDialog({ sid }: { sid: string }) {
  const seat = useResource<Seat>(`seat ${sid}`, (s) => get(`/v1/operators/${seg(sid)}`, {}, s), { kinds: ["ASK"] });
  return (
    <Dialog title={<>Seat <Foreign text={sid} /></>} wide onClose={() => setQuery({ seat: undefined })}>
      <Loaded of={seat}>
        {(s) => {
          const waiting = s.waiting ?? [];
          return (
            <div class="col">
              <h3>What waits, and tasks in work</h3>
              {waiting.length === 0 ? <p class="muted">Nothing waits for this seat.</p> : <Table label="What waits for this seat" rows={waiting} keyOf={(w) => w.req_id} columns={[
                { name: "Kind", cell: (w) => w.kind },
                { name: "What", cell: (w) => <a href={w.ask_id ? link("/inbox", { ask: w.ask_id }) : runLink(w.world, w.run_id)}><Foreign text={w.title || w.tool} max={120} /></a> },
                { name: "State", cell: (w) => (w.taken ? <Badge tone="run">in work</Badge> : <Badge tone="warn">waits</Badge>) },
              ]} />}
              <details><summary>All of it</summary><JsonView value={s} open={2} label="Seat" /></details>
            </div>
          );
        }}
      </Loaded>
    </Dialog>
  );
}
