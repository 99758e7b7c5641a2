// Flows: several steps in a document, which the core itself goes through.
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Flow } from "../api/types";
import { flowLink, link, place, setQuery } from "../router";
import { Button, Card, Command, Empty, Foreign, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { AddFlow } from "./flow-parts";
import { Loaded, Screen } from "./frame";
import { all } from "./tools";

export default function Flows() {
  const list = useResource<Flow[]>("flows", (s) => all<Flow>("/v1/flows", {}, s), { every: 15_000 });
  const write = may("flow:write");
  return (
    <Screen title="Flows" of={list} lead={<>A <Word name="Flow">flow</Word> is a <Word name="Tool">tool</Word> made of several steps. Each call in it is a run; after a crash it goes on where it stood.</>} acts={write && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "1" })}>New flow</Button>}>
      <Loaded of={list}>
        {(rows) => rows.length === 0 ? (
          <Card>
            <Empty icon="flow" title="Nobody has added a flow">
              <p>Flows stand here with their steps, their runs and what starts them. Write the steps down (<a href="/docs/flows" target="_blank" rel="noreferrer">how</a>), and add them{write && " here, or type"}:</p>
              <Command text="wharf flow add digest.yaml" />
            </Empty>
          </Card>
        ) : (
          <Card flush>
            <Table label="Flows" rows={rows} keyOf={(f) => f.name} hrefOf={(f) => flowLink(f.name)} columns={[
              { name: "Flow", cell: (f) => <a href={flowLink(f.name)}><Foreign text={f.name} max={80} /></a> },
              { name: "What it does", drop: 2, cell: (f) => <span class="muted"><Foreign text={f.description} max={240} /></span> },
              { name: "Version", num: true, cell: (f) => f.version },
              { name: "Added", drop: 1, cell: (f) => <Time at={f.added_at} plain /> },
              { name: <span class="sr">Runs</span>, drop: 3, cell: (f) => <a class="plain" href={link("/runs", { tool: f.tool_id })} aria-label={`Runs of ${f.name}`}>Runs</a> },
            ]} />
          </Card>
        )}
      </Loaded>
      {place.value.query.has("new") && write && <AddFlow onClose={() => setQuery({ new: undefined })} onDone={list.reload} />}
    </Screen>
  );
}
