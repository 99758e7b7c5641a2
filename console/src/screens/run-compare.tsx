// Two runs side by side: what differs in inputs, outputs and how they went.
import { useState } from "preact/hooks";
import { getText, seg } from "../api/client";
import { useResource } from "../api/resource";
import type { Run } from "../api/types";
import { money, span } from "../lib/format";
import { Obj, parse, write, type Json } from "../lib/json";
import { runLink, setQuery } from "../router";
import { Diff } from "../ui/code";
import { TextField } from "../ui/form";
import { Button, Card, Foreign, Status } from "../ui/parts";
import { Loaded } from "./frame";

type Side = { run: Run; inputs: Json; outputs: Json };

export function Compare({ a, with: other }: { a: Side; with: string }) {
  const [text, setText] = useState("");
  if (other === "?")
    return (
      <Card title="Compare with another run" actions={<Button kind="quiet" small icon="x" label="Close" onClick={() => setQuery({ compare: undefined })} />}>
        <form class="row wrap" onSubmit={(e) => (e.preventDefault(), text.trim() && setQuery({ compare: text.trim() }))}>
          <div class="grow"><TextField label="Id of the other run" hint="In another world: world/run" mono value={text} onInput={setText} autoFocus /></div>
          <Button type="submit" kind="primary">Compare</Button>
        </form>
      </Card>
    );
  const at = other.indexOf("/");
  const [world, id] = at < 0 ? [a.run.world, other] : [other.slice(0, at), other.slice(at + 1)];
  return <Both a={a} world={world} id={id} />;
}

/** Values as text, or the digest of those that were not kept: equal ones have equal digests. */
function shown(side: Side, what: "inputs" | "outputs"): string {
  const kept = side.run.kept?.[what];
  return kept ? `not kept: BLAKE3 ${kept.b3}, ${kept.bytes} bytes` : write(side[what]);
}

function Both({ a, world, id }: { a: Side; world: string; id: string }) {
  const b = useResource<Side>(`compare ${world}/${id}`, async (s) => {
    const text = await getText(`/v1/runs/${seg(id)}`, { world }, s);
    const json = parse(text) as Obj;
    return { run: JSON.parse(text) as Run, inputs: json.get("inputs") ?? null, outputs: json.get("outputs") ?? null };
  });
  const took = (r: Run) => (r.started_at && r.ended_at ? span(Date.parse(r.ended_at) - Date.parse(r.started_at)) : "–");
  return (
    <Card title="Compared" actions={<Button kind="quiet" small icon="x" label="Stop comparing" onClick={() => setQuery({ compare: undefined })} />}>
      <Loaded of={b}>
        {(o) => (
          <div class="col">
            <div class="tablebox" tabIndex={0} role="region" aria-label="Both runs">
            <table class="table" aria-label="Both runs">
              <thead><tr><th scope="col">Run</th><th scope="col">Status</th><th scope="col" class="num">Took</th><th scope="col" class="num">Cost</th></tr></thead>
              <tbody>
                {[o.run, a.run].map((r, i) => (
                  <tr><td>{i ? "This one" : <a href={runLink(r.world, r.run_id)}><Foreign text={r.run_id} max={60} /></a>}</td><td><Status state={r.status} /></td><td class="num">{took(r)}</td><td class="num">{money(r.cost_micro)}</td></tr>
                ))}
              </tbody>
            </table>
            </div>
            <h3>Inputs</h3>
            <Diff label="Difference of the inputs" before={shown(o, "inputs")} after={shown(a, "inputs")} />
            <h3>Outputs</h3>
            <Diff label="Difference of the outputs" before={shown(o, "outputs")} after={shown(a, "outputs")} />
          </div>
        )}
      </Loaded>
    </Card>
  );
}
