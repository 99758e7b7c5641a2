// A run inside another screen: its state, progress, text and outputs, live.
import { getText, seg } from "../api/client";
import { useResource } from "../api/resource";
import { useRunStream } from "../api/run-stream";
import type { Run } from "../api/types";
import { money, percent } from "../lib/format";
import { Obj, parse, type Json } from "../lib/json";
import { link, runLink } from "../router";
import { JsonView } from "../ui/json";
import { OutputView } from "../ui/output";
import { CodeLink, Foreign, Meter, Note, Status, Took } from "../ui/parts";
import { Loaded } from "./frame";
import { Waits } from "./run-why";

export function RunPanel({ world, id }: { world: string; id: string }) {
  const run = useResource<{ run: Run; outputs: Json }>(`panel ${world}/${id}`, async (s) => {
    const text = await getText(`/v1/runs/${seg(id)}`, { world }, s);
    const json = parse(text);
    return { run: JSON.parse(text) as Run, outputs: json instanceof Obj ? (json.get("outputs") ?? null) : null };
  }, { kinds: ["RUN", "ASK"], match: (c) => c.kind === "ASK" || c.id === id });
  const live = useRunStream(world, id, () => run.reload());
  const version = live.version.value;
  const phase = [...live.stream.phases.values()].at(-1);
  const ask = [...live.stream.asks.values()].find((a) => !a.decided);
  return (
    <Loaded of={run}>
      {({ run: r, outputs }) => {
        const open = !r.ended_at;
        return (
          <div class="col" data-run={id}>
            <div class="row wrap">
              <span role="status"><Status state={r.status} /></span>
              <Took from={r.started_at} to={r.ended_at} />
              {r.cost_micro > 0 && <span>{money(r.cost_micro)}</span>}
              <span class="grow" />
              <a href={runLink(world, id)}>Open the run</a>
            </div>
            {open && phase && <div class="progress"><Foreign text={phase.phase} max={60} /><Meter label={phase.phase} max={1} parts={[{ value: phase.fraction ?? 0 }]} /><span class="num">{phase.fraction == null ? "" : percent(phase.fraction, 1)}</span></div>}
            {open && ask && <Note tone="warn" icon="pause">It waits for you: <a href={link("/inbox", { ask: ask.ask.ask_id })}><Foreign text={ask.ask.title} max={200} /></a></Note>}
            {open && !ask && r.waiting_for && <Note tone="run" icon="clock"><Waits of={r.waiting_for} /></Note>}
            {r.error && <Note tone="bad"><Foreign text={r.error.message} max={2000} /> <CodeLink code={r.error.code} /></Note>}
            {outputs instanceof Obj && outputs.entries.length > 0 && <JsonView value={outputs} open={3} label="Outputs" />}
            {live.stream.log.lines.length > 0 && <OutputView log={live.stream.log} version={version} live={open} name={id} />}
          </div>
        );
      }}
    </Loaded>
  );
}
