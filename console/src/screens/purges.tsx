// Orders to remove runs: which runs go, how far each order has come, and a way to call one off.
import { get, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { Page, Purge } from "../api/types";
import * as f from "../lib/format";
import { confirm } from "../ui/dialog";
import { Button, Card, Command, Empty, Foreign, Meter, Status, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { toast } from "../ui/toast";

export function Purges() {
  // Only administrators may read it; for others it is not there.
  const list = useResource<Purge[] | null>("purges", (s) => get<Page<Purge>>("/v1/purges", {}, s).then((p) => p.items, () => null), { every: 2000 });
  const rows = list.data.value;
  if (!rows) return null;
  return (
    <Card title="Runs being removed" flush>
      {rows.length === 0 ? (
        <Empty icon="trash" title="No order removes runs" level={3}>
          <p>Orders to remove old runs stand here with how far they have come, also after a restart. To give one, type</p>
          <Command text="wharf runs purge --older-than 30d" />
        </Empty>
      ) : (
        <Table
          label="Orders to remove runs"
          rows={rows}
          keyOf={(p) => p.purge_id}
          columns={[
            { name: "State", width: "112px", cell: (p) => <Status state={p.state} /> },
            { name: "Which runs", tall: true, cell: (p) => <span class="break">{about(p)}</span> },
            { name: "How far", tall: true, cell: (p) => <Progress p={p} /> },
            { name: "Ordered", drop: 1, cell: (p) => <><Time at={p.ordered_at} /> <span class="muted">by <Foreign text={p.ordered_by} max={40} /></span></> },
            { name: <span class="sr">Act</span>, width: "104px", num: true, cell: (p) => p.state === "running" && may("admin") && <Button small kind="danger" onClick={() => callOff(p, list.reload)}>Call off</Button> },
          ]}
        />
      )}
    </Card>
  );
}

/** How many statuses there are in which a run has ended. */
const ENDED = 4;

/** What an order is about, in words. */
function about(p: Purge) {
  const narrowed: [string, string | null | undefined][] = [
    ["tool", p.tool],
    ["caller", p.caller],
    ["correlation", p.correlation_id],
  ];
  return (
    <>
      {p.status.length > 0 && p.status.length < ENDED ? p.status.join(", ") : "All that have ended,"} before <Time at={p.until} />
      {p.since && <>, from <Time at={p.since} /> on</>}
      {narrowed.map(([name, value]) => value && <>, {name} <Foreign text={value} max={120} /></>)}
      <span class="muted"> in {p.worlds.length <= 3 ? <Foreign text={p.worlds.join(", ")} max={200} /> : f.plural(p.worlds.length, "world")}</span>
    </>
  );
}

function Progress({ p }: { p: Purge }) {
  const left = p.left ?? 0;
  const all = p.purged + left;
  const text = p.state === "running" ? `${f.count(p.purged)} of ${f.count(all)} removed` : `${f.plural(p.purged, "run")} removed`;
  return (
    <div class="col tight">
      {p.state === "running" && <Meter label={text} max={Math.max(1, all)} parts={[{ value: p.purged }]} />}
      <span>
        {text}
        {p.kept > 0 && <span class="muted">, {f.count(p.kept)} stay: runs in progress need them</span>}
        {p.ended_at && <span class="muted">, <Time at={p.ended_at} as="relative" /></span>}
      </span>
    </div>
  );
}

function callOff(p: Purge, reload: () => void): void {
  confirm({
    title: "Call this order off?",
    text: <p>{f.plural(p.purged, "run")} {p.purged === 1 ? "is" : "are"} gone and {p.purged === 1 ? "stays" : "stay"} gone. {p.left != null && <>About {f.plural(p.left, "run")} more would be removed otherwise.</>}</p>,
    act: "Call it off",
    danger: true,
    run: async () => {
      await send("POST", `/v1/purges/${seg(p.purge_id)}/cancel`);
      toast("The order is called off.");
      reload();
    },
  });
}
