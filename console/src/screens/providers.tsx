// Providers: what executes runs, and whether it is well.
import { useResource } from "../api/resource";
import { KIND_NAMES, providers } from "../api/providers";
import type { Provider } from "../api/types";
import { plural } from "../lib/format";
import { link, place, providerLink, setQuery } from "../router";
import { Badge, Card, Command, Empty, Foreign, Status, Time, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";

export const UNWELL = ["unhealthy", "backing_off", "crashed", "drifted"];

export default function Providers() {
  const q = place.value.query;
  const kind = q.get("kind") ?? "";
  const text = (q.get("q") ?? "").toLowerCase();
  const list = useResource<Provider[]>("providers", providers, { kinds: ["PROVIDER"], every: 15_000 });
  const rows = (list.data.value ?? []).filter((p) => (!kind || p.kind === kind) && (!text || `${p.provider_id} ${p.name}`.toLowerCase().includes(text)));
  return (
    <Screen title="Providers" of={list} acts={<span class="muted">{list.data.value && plural(rows.length, "provider")}</span>} lead={<>A <Word name="Provider">provider</Word> executes the runs of its tools. Those that the core launches start, stop and are watched here.</>}>
      <div class="filters">
        <input class="input" type="search" aria-label="Search providers" placeholder="Search providers" value={q.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value || undefined })} style={{ minWidth: "240px" }} />
        <select class="select" aria-label="Kind" value={kind} onChange={(e) => setQuery({ kind: e.currentTarget.value || undefined })}>
          <option value="">All kinds</option>
          {Object.entries(KIND_NAMES).map(([k, n]) => <option value={k}>{n}</option>)}
        </select>
      </div>
      <Loaded of={list}>
        {(all) =>
          rows.length === 0 ? (
            <Card>
              {all.length ? <Empty icon="search" title="No provider matches"><p><a href={link("/providers")}>Show all providers</a></p></Empty> : (
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
                { name: "Provider", tall: true, cell: (p) => <><a href={providerLink(p.provider_id)}><Foreign text={p.name || p.provider_id} max={100} /></a><div class="muted id break"><Foreign text={p.provider_id} max={100} /></div></> },
                { name: "State", tall: true, cell: (p) => <><Status state={p.state} steady />{p.reason && <div class="muted"><Foreign text={p.reason} max={120} /></div>}</> },
                { name: "Kind", drop: 2, cell: (p) => KIND_NAMES[p.kind] ?? p.kind },
                { name: "Version", drop: 3, cell: (p) => (p.version ? <Foreign text={p.version} max={30} /> : <span class="muted">–</span>) },
                { name: "Sandbox", drop: 3, cell: (p) => (p.sandbox ? <Badge tone={p.sandbox === "none" ? "warn" : undefined}>{p.sandbox}</Badge> : <span class="muted">–</span>) },
                { name: "Tools", num: true, drop: 1, cell: (p) => p.tools?.length ?? 0 },
                { name: "Last sign of life", drop: 3, cell: (p) => <Time at={p.last_heartbeat} as="relative" plain /> },
              ]} />
            </Card>
          )
        }
      </Loaded>
    </Screen>
  );
}
