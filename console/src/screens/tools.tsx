// The catalog: every tool, whether its provider is up or not.
import { get } from "../api/client";
import { itemsOf, useWindows } from "../api/resource";
import type { Page, Tool } from "../api/types";
import { count, money } from "../lib/format";
import { safe } from "../lib/text";
import { link, place, setQuery, toolLink } from "../router";
import { Icon } from "../ui/icons";
import { Badge, Button, Card, Command, Empty, Foreign, More, Status, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { TextFilter } from "./filters";
import { Loaded, Screen } from "./frame";

const STATES = ["available", "starting", "unavailable", "disabled", "quarantined"];

export default function Tools() {
  const q = place.value.query;
  const filter = { q: q.get("q") ?? undefined, state: q.get("state") ?? undefined, provider: q.get("provider") ?? undefined };
  const tools = useWindows(`tools ${JSON.stringify(filter)}`, (cursor, s) => get<Page<Tool>>("/v1/tools", { ...filter, limit: 200, cursor }, s), itemsOf, { kinds: ["PROVIDER"], every: 15_000 });
  const shown = tools.data.value;
  const filtered = Object.values(filter).some(Boolean);
  return (
    <Screen title="Tools" of={tools} lead={<>A <Word name="Tool">tool</Word> is what can be run. One that acts changes something outside; one that asks first waits for your approval.</>} acts={<span class="muted">{shown && `${count(shown.items.length)}${shown.more ? "+" : ""} ${shown.items.length === 1 ? "tool" : "tools"}`}</span>}>
      <div class="filters">
        <TextFilter name="q" label="Search tools" wide />
        <select class="select" aria-label="State" value={filter.state ?? ""} onChange={(e) => setQuery({ state: e.currentTarget.value || undefined })}>
          <option value="">All states</option>
          {STATES.map((s) => <option value={s}>{s}</option>)}
        </select>
        {filter.provider && <Button small onClick={() => setQuery({ provider: undefined })}>Of <Foreign text={filter.provider} max={60} /> <Icon name="x" size={12} /></Button>}
      </div>
      <Loaded of={tools} lines={10}>
        {({ items: rows }) =>
          rows.length === 0 ? (
            <Card>
              {filtered ? (
                <Empty icon="search" title="No tool matches"><p><a href={link("/tools")}>Show all tools</a></p></Empty>
              ) : (
                <Empty icon="tool" title="Tools appear here when providers offer them"><p>Add an agent, a tool server or an MCP server, for example</p><Command text="wharf agents add ./my-agent" /></Empty>
              )}
            </Card>
          ) : (
            <Card flush>
              <Table label="Tools" rows={rows} keyOf={(t) => t.tool_id} hrefOf={(t) => toolLink(t.tool_id)} fixed columns={[
                { name: "Tool", width: "30%", grow: true, cell: (t) => <a class="tail" href={toolLink(t.tool_id)}><Foreign text={t.tool_id} max={120} /></a> },
                { name: "What it does", drop: 2, cell: (t) => <span class="muted"><Foreign text={t.description} max={240} /></span> },
                { name: "State", width: "132px", cell: (t) => <span title={t.state_reason ? safe(t.state_reason) : undefined}><Status state={t.state} /></span> },
                { name: "Traits", width: "200px", drop: 3, cell: (t) => <span class="row">{t.side_effects && <Badge tone="warn">acts</Badge>}{t.requires_directive && <Badge tone="odd">asks first</Badge>}{t.free && <Badge>free</Badge>}{t.max_cost_micro != null && <Badge>≤ {money(t.max_cost_micro)}</Badge>}</span> },
              ]} />
              <More of={tools} what="tools" />
            </Card>
          )
        }
      </Loaded>
    </Screen>
  );
}

export { all } from "../api/client";
