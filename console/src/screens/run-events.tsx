// The events of a run as they were, one row each; a row opens to show all of it.
import { useMemo, useState } from "preact/hooks";
import type { RunStream } from "../api/run-stream";
import type { Event } from "../api/types";
import { place, setQuery } from "../router";
import { Dialog } from "../ui/dialog";
import { JsonView } from "../ui/json";
import { Button, Card, Empty, Foreign, Time } from "../ui/parts";
import { VirtualTable, type Column } from "../ui/table";

const QUIET = ["text", "progress", "log", "partial"];

export function EventsTab({ stream, version }: { stream: RunStream; version: number }) {
  const [all, setAll] = useState(false);
  const open = place.value.query.get("event");
  const shown = open ? stream.events.find((e) => String(e.seq) === open) : undefined;
  const setShown = (e: Event | undefined) => setQuery({ event: e && String(e.seq) }, false);
  const rows = useMemo(() => (all ? stream.events.slice() : stream.events.filter((e) => !QUIET.includes(e.type))), [version, all, stream]);
  const columns: Column<Event>[] = [
    { name: "No.", width: "76px", num: true, cell: (e) => e.seq },
    { name: "When", width: "110px", drop: 2, cell: (e) => <Time at={e.at} plain /> },
    { name: "Event", width: "110px", cell: (e) => <button type="button" class="btn quiet small" onClick={() => setShown(e)}>{e.type}</button> },
    { name: "What", cell: (e) => <span class="muted"><Foreign text={brief(e)} max={240} /></span> },
  ];
  return (
    <div class="col">
      <div>
        <Button small pressed={all} onClick={() => setAll(!all)}>With text and progress</Button>
      </div>
      {rows.length === 0 ? (
        <Card><Empty icon="runs" title="No event yet"><p>Everything that happens to the run is listed here in its order.</p></Empty></Card>
      ) : (
        <div class="card" style={{ overflow: "hidden" }}>
          <div style={{ height: `${Math.min(640, 42 + rows.length * 36)}px`, display: "flex", flexDirection: "column" }}>
            <VirtualTable label="Events" columns={columns} rows={rows} keyOf={(e) => String(e.seq)} />
          </div>
        </div>
      )}
      {shown && (
        <Dialog title={`Event ${shown.seq}: ${shown.type}`} wide onClose={() => setShown(undefined)}>
          <JsonView value={shown} open={3} />
        </Dialog>
      )}
    </div>
  );
}

function brief(e: Event): string {
  const { seq: _s, run_id: _r, at: _a, type, ...rest } = e;
  const get = (k: string) => (rest[k] === undefined ? "" : String(rest[k]));
  switch (type) {
    case "text":
      return `${get("channel")}: ${get("text")}`;
    case "log":
      return `${get("level")}: ${get("text")}`;
    case "progress":
      return `${get("phase")} ${get("fraction")}`;
    case "question":
    case "approval":
      return get("title");
    case "decided":
      return `${get("decision")} by ${get("by")}`;
    case "finished":
      return get("status");
    default:
      return Object.entries(rest).map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : String(v)}`).join(", ");
  }
}
