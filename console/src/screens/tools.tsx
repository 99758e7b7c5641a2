// The catalog: every tool, whether its provider is up or not.
import { useMemo } from "preact/hooks";
import { get } from "../api/client";
import { useResource } from "../api/resource";
import type { Page, Tool } from "../api/types";
import { money, plural } from "../lib/format";
import { safe } from "../lib/text";
import { link, place, providerLink, setQuery, toolLink } from "../router";
import { Badge, Card, Command, Empty, Foreign, Status } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";

export async function all<T>(path: string, params: Record<string, string | undefined>, signal: AbortSignal, max = 2000): Promise<T[]> {
  const out: T[] = [];
  let cursor: string | undefined;
  do {
    const page: Page<T> = await get<Page<T>>(path, { ...params, limit: 200, cursor }, signal);
    out.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && out.length < max);
  return out;
}

export default function Tools() {
  const q = place.value.query;
  const text = (q.get("q") ?? "").toLowerCase();
  const state = q.get("state") ?? "";
  const tools = useResource<Tool[]>("tools", (s) => all<Tool>("/v1/tools", {}, s), { kinds: ["PROVIDER"], every: 15_000 });
  const rows = useMemo(() => (tools.data.value ?? []).filter((t) => (!text || t.tool_id.toLowerCase().includes(text) || t.description.toLowerCase().includes(text)) && (!state || t.state === state)), [tools.data.value, text, state]);
  const states = [...new Set((tools.data.value ?? []).map((t) => t.state))].sort();
  return (
    <Screen title="Tools" of={tools} acts={<span class="muted">{tools.data.value && plural(rows.length, "tool")}</span>}>
      <div class="filters">
        <input class="input" type="search" aria-label="Search tools" placeholder="Search tools" value={q.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value || undefined })} style={{ minWidth: "240px" }} />
        <select class="select" aria-label="State" value={state} onChange={(e) => setQuery({ state: e.currentTarget.value || undefined })}>
          <option value="">All states</option>
          {states.map((s) => <option value={s}>{s}</option>)}
        </select>
      </div>
      <Loaded of={tools} lines={10}>
        {(data) =>
          rows.length === 0 ? (
            <Card>
              {data.length ? (
                <Empty icon="search" title="No tool matches"><p><a href={link("/tools")}>Show all tools</a></p></Empty>
              ) : (
                <Empty icon="tool" title="Tools appear here when providers offer them"><p>Add an agent, a tool server or an MCP server, for example</p><Command text="wharf agents add ./my-agent" /></Empty>
              )}
            </Card>
          ) : (
            <Card flush>
              <Table label="Tools" rows={rows} keyOf={(t) => t.tool_id} hrefOf={(t) => toolLink(t.tool_id)} fixed columns={[
                { name: "Tool", width: "26%", grow: true, cell: (t) => <a class="tail" href={toolLink(t.tool_id)}><Foreign text={t.tool_id} max={120} /></a> },
                { name: "What it does", drop: 2, cell: (t) => <span class="muted"><Foreign text={t.description} max={240} /></span> },
                { name: "State", width: "132px", cell: (t) => <span title={t.state_reason ? safe(t.state_reason) : undefined}><Status state={t.state} /></span> },
                { name: "Provider", width: "16%", drop: 3, cell: (t) => <a class="plain" href={providerLink(t.provider)}><Foreign text={t.provider} max={80} /></a> },
                { name: "Traits", width: "190px", drop: 3, cell: (t) => <span class="row">{t.side_effects && <Badge tone="warn">acts</Badge>}{t.requires_directive && <Badge tone="odd">asks first</Badge>}{t.free && <Badge>free</Badge>}{t.max_cost_micro != null && <Badge>≤ {money(t.max_cost_micro)}</Badge>}</span> },
              ]} />
            </Card>
          )
        }
      </Loaded>
    </Screen>
  );
}
