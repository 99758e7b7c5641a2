// Triggers: what starts runs by itself: a call from outside, a file that is written, a run that has ended.
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Trigger } from "../api/types";
import { place, setQuery, toolLink, triggerLink, worldLink } from "../router";
import { Button, Card, Command, Empty, Foreign, Status, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { NewTrigger, startOf, STARTS } from "./trigger-new";
import { all } from "./tools";

export default function Triggers() {
  const list = useResource<Trigger[]>("triggers", (s) => all<Trigger>("/v1/triggers", {}, s), { every: 10_000 });
  const making = place.value.query.has("new");
  return (
    <Screen title="Triggers" of={list} lead={<>A <Word name="Trigger">trigger</Word> starts a <Word name="Run">run</Word> when something happens: a call from outside, such as a push at GitHub or a payment at Stripe, a file that is written, or a run that has ended. What comes twice starts one run.</>} acts={may("run") && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "call" })}>New trigger</Button>}>
      <Loaded of={list}>
        {(rows) => rows.length === 0 ? (
          <Card>
            <Empty icon="hook" title="Nothing starts by itself">
              <p>Triggers stand here with what starts them: calls of an address, files, or ends of runs. {may("run") ? "Make one here, or type" : "To make one, type"}</p>
              {may("run") && <div class="row wrap center">{STARTS.map((o) => <Button small onClick={() => setQuery({ new: o.value })}>{o.button}</Button>)}</div>}
              <Command text="wharf trigger add greet --webhook wharf/echo --proof token --query text=message" />
            </Empty>
          </Card>
        ) : (
          <Card flush>
            <Table label="Triggers" fixed rows={rows} keyOf={(t) => t.name} hrefOf={(t) => triggerLink(t.name)} columns={[
              { name: "Trigger", width: "22%", grow: true, cell: (t) => <a href={triggerLink(t.name)}><Foreign text={t.name} max={80} /></a> },
              { name: "State", width: "112px", cell: (t) => <Status state={t.state} /> },
              { name: "Tool", drop: 1, cell: (t) => <a class="plain tail" href={toolLink(t.tool)}><Foreign text={t.tool} max={80} /></a> },
              { name: "Started by", width: "26%", drop: 2, cell: (t) => <Foreign text={startOf(t)} max={120} /> },
              { name: "World", width: "14%", drop: 3, cell: (t) => <a class="plain" href={worldLink(t.world)}><Foreign text={t.world} max={60} /></a> },
            ]} />
          </Card>
        )}
      </Loaded>
      {making && may("run") && <NewTrigger onClose={() => setQuery({ new: undefined, tool: undefined })} />}
    </Screen>
  );
}
