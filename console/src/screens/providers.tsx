// Providers: what executes runs, and whether it is well.
import { get } from "../api/client";
import { itemsOf, useWindows } from "../api/resource";
import { KIND_NAMES } from "../api/providers";
import type { Page, Provider } from "../api/types";
import { count } from "../lib/format";
import { link, place, providerLink, setQuery } from "../router";
import { Badge, Card, Command, Empty, Foreign, More, Status, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { TextFilter } from "./filters";
import { Loaded, Screen } from "./frame";

export const UNWELL = ["unhealthy", "backing_off", "crashed", "drifted"];

export default function Providers() {
  const q = place.value.query;
  const filter = { kind: q.get("kind") ?? undefined, q: q.get("q") ?? undefined };
  const list = useWindows(`providers ${JSON.stringify(filter)}`, (cursor, s) => get<Page<Provider>>("/v1/providers", { ...filter, limit: 200, cursor }, s), itemsOf, { kinds: ["PROVIDER"], every: 15_000 });
  const shown = list.data.value;
  return (
    <Screen title="Providers" of={list} acts={<span class="muted">{shown && `${count(shown.items.length)}${shown.more ? "+" : ""} ${shown.items.length === 1 ? "provider" : "providers"}`}</span>} lead={<>A <Word name="Provider">provider</Word> executes the runs of its tools. Those that the core launches start, stop and are watched here.</>}>
      <div class="filters">
        <TextFilter name="q" label="Search providers" wide />
        <select class="select" aria-label="Kind" value={filter.kind ?? ""} onChange={(e) => setQuery({ kind: e.currentTarget.value || undefined })}>
          <option value="">All kinds</option>
          {Object.entries(KIND_NAMES).map(([k, n]) => <option value={k}>{n}</option>)}
        </select>
      </div>
      <Loaded of={list}>
        {({ items: rows }) =>
          rows.length === 0 ? (
            <Card>
              {filter.kind || filter.q ? <Empty icon="search" title="No provider matches"><p><a href={link("/providers")}>Show all providers</a></p></Empty> : (
                <Empty icon="provider" title="Providers appear here once they are added">
                  <p>A <Word name="Provider">provider</Word> executes the runs of its tools. Add an agent from a folder, or an MCP server:</p>
                  <Command text="wharf agents add ./my-agent" />
                  <Command text="wharf mcp add files --npm @modelcontextprotocol/server-filesystem@2026.8.31" />
                </Empty>
              )}
            </Card>
          ) : (
            <Card flush>
              <Table label="Providers" rows={rows} keyOf={(p) => p.kind + p.provider_id} hrefOf={(p) => providerLink(p.provider_id)} columns={[
                { name: "Provider", tall: true, cell: (p) => <><a href={providerLink(p.provider_id)}><Foreign text={p.name || p.provider_id} max={100} /></a>{p.name && p.name !== p.provider_id && <div class="muted id break"><Foreign text={p.provider_id} max={100} /></div>}</> },
                { name: "State", tall: true, cell: (p) => <><Status state={p.state} steady />{p.reason && <div class="muted"><Foreign text={p.reason} max={120} /></div>}</> },
                { name: "Kind", drop: 2, cell: (p) => KIND_NAMES[p.kind] ?? p.kind },
                { name: "Version", drop: 3, cell: (p) => (p.version ? <Foreign text={p.version} max={30} /> : <span class="muted">–</span>) },
                { name: "Sandbox", drop: 3, cell: (p) => (p.sandbox ? <Badge tone={p.sandbox === "none" ? "warn" : undefined}>{p.sandbox}</Badge> : <span class="muted">–</span>) },
                { name: "Tools", num: true, drop: 1, cell: (p) => p.tools?.length ?? 0 },
                { name: "Last sign of life", drop: 3, cell: (p) => <Time at={p.last_heartbeat} as="relative" plain /> },
              ]} />
              <More of={list} what="providers" />
            </Card>
          )
        }
      </Loaded>
    </Screen>
  );
}
