// One receiver: what it is told, and what became of each notification.
import { get, seg } from "../api/client";
import { useResource } from "../api/resource";
import { may, mayEverywhere } from "../api/session";
import type { Delivery, Page, Receiver } from "../api/types";
import { count } from "../lib/format";
import { link, place, receiverLink, worldLink } from "../router";
import { Button, Card, Empty, Facts, Foreign, Note, Status, Tabs, Time } from "../ui/parts";
import { Table } from "../ui/table";
import { Loaded, Screen } from "./frame";
import { toldOf } from "./receivers";
import { actOn, StandingActs, type Standing } from "./standing";

export default function ReceiverScreen({ args }: { args: string[] }) {
  const name = args[0] ?? "";
  const base = `/v1/receivers/${seg(name)}`;
  const receiver = useResource<Receiver>(`receiver ${name}`, (s) => get(base, {}, s), { every: 5000 });
  const history = useResource<Delivery[]>(`deliveries ${name}`, async (s) => (await get<Page<Delivery>>(`${base}/history`, {}, s)).items, { every: 5000 });
  const reload = () => (receiver.reload(), history.reload());
  const tab = place.value.query.get("tab") ?? "all";
  return (
    <Screen title={name} heading={<Foreign text={name} max={150} />} of={receiver} crumb={<a href={link("/receivers")}>Receivers</a>} acts={receiver.data.value && <Acts r={receiver.data.value} base={base} reload={reload} />}>
      <Loaded of={receiver}>
        {(r) => (
          <>
            <dl class="strip">
              <div><dt class="sr">State</dt><dd><span role="status"><Status state={r.state} /></span></dd></div>
              <div><dt>Told of</dt><dd>{toldOf(r)}</dd></div>
              <div><dt>World</dt><dd>{r.world ? <a href={worldLink(r.world)}><Foreign text={r.world} max={80} /></a> : "all"}</dd></div>
              <div><dt>Delivered</dt><dd>{count(r.sent)}</dd></div>
              <div><dt>Given up</dt><dd>{r.parked ? <span class="status bad">{count(r.parked)}</span> : "0"}</dd></div>
            </dl>
            {r.state === "paused" && <Note tone="warn" icon="pause">What happens while it is paused is not kept for it.</Note>}
            <Card title="How it is told">
              <Facts items={[
                ["Form", r.format === "slack" ? "as Slack reads it" : "JSON, signed as Standard Webhooks are"],
                ["Address", <>kept as <code><Foreign text={r.url_secret} max={200} /></code>, shown nowhere</>],
                ["Only if", r.when && <code class="break"><Foreign text={r.when} max={2000} /></code>],
                ["With values of the run", !!r.include?.length && r.include.join(", ")],
                ["Signing key", <>kept as <code><Foreign text={r.key_secret} max={200} /></code></>],
                ["Where it may lie", r.allow_private ? "on this machine and in private networks, too" : "on the public internet"],
                ["Added", <><Time at={r.created_at} /> <span class="muted">by <Foreign text={r.created_by} max={60} /></span></>],
              ]} />
            </Card>
            <Tabs label="Which notifications" current={tab} hrefOf={(t) => `${receiverLink(name)}${t === "all" ? "" : `?tab=${t}`}`} tabs={[{ id: "all", name: "All" }, { id: "parked", name: "Given up", count: r.parked }]} />
            <Card flush>
              <Loaded of={history}>
                {(every) => {
                  const rows = tab === "parked" ? every.filter((d) => d.state === "parked") : every;
                  return rows.length === 0 ? <Empty icon="bell" title={tab === "parked" ? "Nothing was given up" : "It was told nothing yet"}><p>{tab === "parked" ? "A notification is given up when its receiver did not take it for a day." : "Each notification stands here with what became of it. Test sends one that tells nothing."}</p></Empty> : (
                    <Table label="What became of its notifications" rows={rows} keyOf={(d) => d.notification_id} columns={[
                      { name: "State", width: "110px", cell: (d) => <Status state={d.state} /> },
                      { name: "Told", cell: (d) => <code>{d.event}</code> },
                      { name: "About", drop: 1, cell: (d) => <About d={d} /> },
                      { name: "Happened", drop: 2, cell: (d) => <Time at={d.happened_at} plain /> },
                      { name: "Ended", drop: 3, cell: (d) => <Time at={d.ended_at} plain /> },
                      { name: "Tries", num: true, drop: 3, cell: (d) => count(d.tries) },
                      { name: "Answer", num: true, drop: 1, cell: (d) => d.status ?? <span class="muted">none</span> },
                      { name: "Why", drop: 2, cell: (d) => <span class="muted"><Foreign text={d.why ?? ""} max={200} /></span> },
                    ]} />
                  );
                }}
              </Loaded>
            </Card>
          </>
        )}
      </Loaded>
    </Screen>
  );
}

/** What a notification was about, as a link where it can be looked at. */
function About({ d }: { d: Delivery }) {
  const to = d.event.startsWith("ask.") ? link("/inbox", { ask: d.about }) : d.event.startsWith("run.") ? link("/runs", { id_prefix: d.about }) : undefined;
  const text = <Foreign text={d.about} max={120} />;
  return to ? <a class="id break" href={to}>{text}</a> : <span class="id break">{text}</span>;
}

function Acts({ r, base, reload }: { r: Receiver; base: string; reload: () => void }) {
  if (!(r.world ? may("admin", r.world) : mayEverywhere("admin"))) return null;
  const of: Standing = { base, kind: "receiver", name: r.name, list: link("/receivers"), goes: "Its address and its key are forgotten, and what it is owed is dropped.", state: r.state, reload };
  return <StandingActs of={of}><Button icon="bell" onClick={actOn(of, "test", "A test is on its way.")}>Test</Button></StandingActs>;
}
