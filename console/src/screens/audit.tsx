// The audit: who did what, chained so that nothing can be taken out unseen.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, get, send } from "../api/client";
import { useResource } from "../api/resource";
import { mayEverywhere } from "../api/session";
import type { AuditRecord, AuditVerdict, Page } from "../api/types";
import { count, fieldOf, momentIn, plural } from "../lib/format";
import { place, setQuery } from "../router";
import { Dialog } from "../ui/dialog";
import { JsonView } from "../ui/json";
import { save } from "../ui/output";
import { Badge, Button, Empty, Foreign, Note, Refusal, Skeleton, Time, zone } from "../ui/parts";
import { VirtualTable, type Column } from "../ui/table";
import { toast, toastError } from "../ui/toast";
import { Screen } from "./frame";

function useAudit(filter: Record<string, string | undefined>) {
  const key = JSON.stringify(filter);
  const s = useMemo(() => ({ rows: signal<AuditRecord[]>([]), cursor: signal<string | null | undefined>(undefined), error: signal<ApiError | undefined>(undefined), newest: true, more: () => {} }), [key]);
  useEffect(() => {
    const end = new AbortController();
    let busy = false;
    const page = async (cursor?: string): Promise<Page<AuditRecord>> => {
      const wanted = { ...filter, limit: 200, cursor, ...(s.newest ? { order: "desc" } : {}) };
      try {
        return await get<Page<AuditRecord>>("/v1/audit", wanted, end.signal);
      } catch (e) {
        if (!(e instanceof ApiError) || e.code !== "request.invalid" || !s.newest) throw e;
        s.newest = false;
        return get<Page<AuditRecord>>("/v1/audit", { limit: 200, cursor }, end.signal);
      }
    };
    const load = async (cursor?: string) => {
      if (busy) return;
      busy = true;
      try {
        const p = await page(cursor);
        s.rows.value = cursor ? [...s.rows.value, ...p.items] : p.items;
        s.cursor.value = p.items.length ? (p.next_cursor ?? null) : null;
      } catch (e) {
        if (!end.signal.aborted && e instanceof ApiError) s.error.value = e;
      }
      busy = false;
    };
    s.more = () => void (s.cursor.value && load(s.cursor.value));
    void load();
    return () => end.abort();
  }, [key]);
  return s;
}

const EXPORT_MAX = 100_000;
const FILTERS: [string, string][] = [["actor", "Who, such as grant:owner or grant:*"], ["event", "Event, such as tool.*"], ["subject", "About, such as world:lab"]];

/** Only records before a moment. */
function Until() {
  const q = place.value.query;
  return (
    <label class="row">
      <span class="muted nowrap">Before</span>
      <input class="input" type="datetime-local" aria-label={zone() === "utc" ? "Before, in UTC" : "Before"} value={fieldOf(q.get("until"), zone())} onChange={(e) => setQuery({ until: momentIn(e.currentTarget.value, zone()) }, false)} />
    </label>
  );
}

/** One record in full; who comes by its address may not have it in the list. */
function OneRecord({ id, known, onClose }: { id: string; known: AuditRecord | undefined; onClose: () => void }) {
  const found = useResource<AuditRecord | undefined>(known ? null : `record ${id}`, async (s) => (await get<Page<AuditRecord>>("/v1/audit", { after: Math.max(0, Number(id) - 1), limit: 1 }, s)).items.find((a) => String(a.id) === id));
  const record = known ?? found.data.value;
  return (
    <Dialog title={<>Record <Foreign text={id} max={40} /></>} wide onClose={onClose}>
      {record ? <JsonView value={record} open={3} label="Record" /> : found.error.value ? <Refusal error={found.error.value} /> : found.loading.value ? <Skeleton /> : <p class="muted">There is no such record, or your session may not see it.</p>}
    </Dialog>
  );
}

export default function Audit() {
  const q = place.value.query;
  const filter = Object.fromEntries(["actor", "event", "subject", "since", "until"].map((k) => [k, q.get(k) ?? undefined]));
  const list = useAudit(filter);
  const [verdict, setVerdict] = useState<AuditVerdict>();
  const rows = list.rows.value;
  const open = q.get("record");
  const setShown = (a: AuditRecord | undefined) => setQuery({ record: a && String(a.id) }, false);
  const columns: Column<AuditRecord>[] = [
    { name: "When", width: "108px", cell: (a) => <Time at={a.at} plain /> },
    { name: "Event", width: "172px", grow: true, cell: (a) => <button type="button" class="btn quiet small" onClick={() => setShown(a)}><code>{a.event}</code></button> },
    { name: "Who", drop: 1, width: "20%", cell: (a) => <Foreign text={a.actor} max={80} /> },
    { name: "About", cell: (a) => <Foreign text={a.subject} max={120} /> },
    { name: "Severity", width: "110px", drop: 3, cell: (a) => (a.severity === "info" ? <span class="muted">info</span> : <Badge tone={a.severity === "warn" ? "warn" : "bad"}>{a.severity}</Badge>) },
    { name: "Facts", drop: 3, cell: (a) => <code class="muted"><Foreign text={a.facts && Object.keys(a.facts).length ? JSON.stringify(a.facts) : ""} max={120} /></code> },
  ];
  const verify = async () => {
    try {
      setVerdict(await send<AuditVerdict>("POST", "/v1/audit/verify"));
    } catch (e) {
      toastError(e);
    }
  };
  const exportAll = async () => {
    const out: string[] = [];
    let cursor: string | undefined;
    try {
      do {
        const p: Page<AuditRecord> = await get("/v1/audit", { ...(list.newest ? filter : {}), limit: 200, cursor });
        out.push(...p.items.map((a) => JSON.stringify(a)));
        cursor = p.items.length ? (p.next_cursor ?? undefined) : undefined;
      } while (cursor && out.length < EXPORT_MAX);
      if (cursor) toast(`These are the ${list.newest ? "newest" : "oldest"} ${count(out.length)} records. wharf audit export writes all of them.`, "warn");
      save(`${out.join("\n")}\n`, "audit.jsonl", "application/x-ndjson");
    } catch (e) {
      toastError(e);
    }
  };
  return (
    <Screen title="Audit" fill acts={mayEverywhere("admin") && <><Button icon="download" onClick={exportAll}>Export</Button><Button kind="primary" icon="shield" onClick={verify}>Verify the chain</Button></>}>
      {verdict && (
        <div role="status">
          {verdict.ok ? <Note tone="ok">The chain is whole: {plural(verdict.records, "record")} in {plural(verdict.chains, "chain")}.</Note> : <Note tone="bad"><p>The chain is broken.</p><ul>{verdict.findings.map((x) => <li><Foreign text={x} max={300} /></li>)}</ul></Note>}
        </div>
      )}
      <div class="filters">
        {FILTERS.map(([k, label]) => <input class="input" aria-label={label} placeholder={label} value={q.get(k) ?? ""} style={{ minWidth: "200px" }} onChange={(e) => setQuery({ [k]: e.currentTarget.value.trim() || undefined }, false)} />)}
        <select class="select" aria-label="Time" value={q.get("since") ?? ""} onChange={(e) => setQuery({ since: e.currentTarget.value || undefined }, false)}>
          <option value="">Any time</option>
          {[["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"]].map(([v, n]) => <option value={v}>{n}</option>)}
        </select>
        <Until />
        <span class="muted">{rows.length > 0 && `${count(rows.length)}${list.cursor.value ? "+" : ""} shown, ${list.newest ? "newest" : "oldest"} first`}</span>
      </div>
      {list.error.value ? <Refusal error={list.error.value} /> : list.cursor.value === undefined ? <div class="card fillcard"><div class="body"><Skeleton lines={12} /></div></div> : rows.length === 0 ? (
        <div class="card"><Empty icon="audit" title="No record fits"><p>Who did what is recorded here, without payloads. Take a filter away to see more.</p></Empty></div>
      ) : (
        <div class="card fillcard"><VirtualTable label="Audit" columns={columns} rows={rows} total={-1} keyOf={(a) => String(a.id)} more={!!list.cursor.value} onEnd={() => list.more()} /></div>
      )}
      {open && <OneRecord id={open} known={rows.find((a) => String(a.id) === open)} onClose={() => setShown(undefined)} />}
    </Screen>
  );
}

