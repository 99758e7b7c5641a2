// Schedules: runs that the core starts by the clock; when each comes next, and what became of its last time.
import { useState } from "preact/hooks";
import { ApiError, get, send } from "../api/client";
import { useResource } from "../api/resource";
import { may, session } from "../api/session";
import type { Page, Schedule, World } from "../api/types";
import { plural } from "../lib/format";
import { Obj, parse, write, type Json } from "../lib/json";
import { go, place, scheduleLink, setQuery, toolLink, worldLink } from "../router";
import { Dialog } from "../ui/dialog";
import { AreaField, SelectField, TextField } from "../ui/form";
import { Badge, Button, Card, Command, Empty, Foreign, Refusal, Status, Word } from "../ui/parts";
import { Table } from "../ui/table";
import { toast } from "../ui/toast";
import { Loaded, Screen } from "./frame";
import { all } from "./tools";

const LENGTHS: [number, string][] = [[86_400_000, "day"], [3_600_000, "hour"], [60_000, "minute"], [1000, "second"]];

/** A length of time that somebody chose, in the largest unit it is a whole number of. */
function lengthIn(ms: number): string {
  const [unit, name] = LENGTHS.find(([u]) => ms % u === 0) ?? [1, "millisecond"];
  return plural(ms / unit, name);
}

/** When it fires, in words. */
export function patternOf(s: Schedule): string {
  if (s.cron) return `${s.cron} ${s.tz}`;
  if (s.every_ms != null) return `every ${lengthIn(s.every_ms)}`;
  return s.at ? "once" : "–";
}

/** A time as the clocks of its zone show it: what the core wrote, without the seconds nobody chose. */
export function timeOf(text: string): string {
  const m = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(:\d{2})?(?:\.\d+)?(Z|[+-]\d{2}:?\d{2})?/.exec(text);
  return m ? `${m[1]} ${m[2]}${m[3] && m[3] !== ":00" ? m[3] : ""} ${!m[4] || /^(Z|\+00:?00)$/.test(m[4]) ? "UTC" : m[4]}` : text;
}

export default function Schedules() {
  const list = useResource<Schedule[]>("schedules", (s) => all<Schedule>("/v1/schedules", {}, s), { kinds: ["RUN"], every: 5000 });
  const making = place.value.query.has("new");
  return (
    <Screen title="Schedules" of={list} lead={<>A <Word name="Schedule">schedule</Word> starts a <Word name="Run">run</Word> by the clock. Its runs have a part of the rights it was made with, and end with them.</>} acts={may("run") && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: "1" })}>New schedule</Button>}>
      <Loaded of={list}>
        {(rows) =>
          rows.length === 0 ? (
            <Card>
              <Empty icon="clock" title="Nothing starts by the clock">
                <p>Schedules stand here with their next time and what became of the last one. To make one, type</p>
                <Command text="wharf schedule add nightly --cron '0 3 * * *' --tz Europe/Berlin wharf/echo text=night" />
              </Empty>
            </Card>
          ) : (
            <Card flush>
              <Table label="Schedules" fixed rows={rows} keyOf={(s) => s.name} hrefOf={(s) => scheduleLink(s.name)} columns={[
                { name: "Schedule", width: "16%", grow: true, cell: (s) => <a href={scheduleLink(s.name)}><Foreign text={s.name} max={80} /></a> },
                { name: "State", width: "112px", cell: (s) => <Status state={s.state} /> },
                { name: "When", drop: 2, cell: (s) => <code><Foreign text={patternOf(s)} max={80} /></code> },
                { name: "Next", width: "228px", drop: 1, cell: (s) => (s.next[0] ? <span class="nowrap">{timeOf(s.next[0])}</span> : <span class="muted">–</span>) },
                { name: "Tool", drop: 2, cell: (s) => <a class="plain tail" href={toolLink(s.tool)}><Foreign text={s.tool} max={80} /></a> },
                { name: "World", width: "10%", drop: 3, cell: (s) => <a class="plain" href={worldLink(s.world)}><Foreign text={s.world} max={60} /></a> },
                { name: "Last time", width: "116px", cell: (s) => (s.last ? <Status state={s.last.state} /> : <span class="muted">none yet</span>) },
              ]} />
            </Card>
          )
        }
      </Loaded>
      {making && may("run") && <NewSchedule onClose={() => setQuery({ new: undefined })} />}
    </Screen>
  );
}

const WHENS = [{ value: "cron", name: "By a pattern" }, { value: "every", name: "After a length of time, again and again" }, { value: "at", name: "Once" }];
const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length such as `90s` or `12h` in milliseconds. */
function lengthOf(text: string): number | undefined {
  const [, number, unit] = /^(\d+)\s*([smhd])$/.exec(text.trim()) ?? [];
  return unit ? Number(number) * UNITS[unit]! : undefined;
}

function NewSchedule({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [tool, setTool] = useState(place.value.query.get("tool") ?? "");
  const [kind, setKind] = useState("cron");
  const [when, setWhen] = useState("");
  const [tz, setTz] = useState(() => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
  const [world, setWorld] = useState(() => (session.value.at === "in" && session.value.me.worlds?.[0]) || "default");
  const [inputs, setInputs] = useState("{}");
  const [overlap, setOverlap] = useState("skip");
  const [catchUp, setCatchUp] = useState("last");
  const [error, setError] = useState<ApiError>();
  const worlds = useResource<Page<World>>("worlds", (s) => get("/v1/worlds", { limit: 200 }, s), { kinds: ["WORLD"] });
  const every = kind === "every" ? lengthOf(when) : undefined;
  let json: Json | undefined;
  let fault: string | undefined;
  try {
    json = parse(inputs.trim() || "{}");
    if (!(json instanceof Obj)) fault = "Inputs are an object: { … }.";
  } catch (e) {
    fault = (e as Error).message;
  }
  const submit = async () => {
    if (fault || (kind === "every" && every === undefined)) return;
    setError(undefined);
    const time: [string, Json] = kind === "every" ? ["every_ms", parse(String(every))] : [kind, when.trim()];
    try {
      const body = new Obj([["name", name.trim()], ["tool", tool.trim()], time, ...(kind === "every" ? [] : [["tz", tz.trim()] as [string, Json]]), ["world", world], ["inputs", json ?? new Obj([])], ["overlap", overlap], ["catch_up", catchUp]]);
      const made = await send<Schedule>("POST", "/v1/schedules", write(body, 0));
      toast("The schedule is made.");
      go(scheduleLink(made.name));
    } catch (e) {
      setError(e as ApiError);
    }
  };
  const hints: Record<string, string> = { cron: "Minute, hour, day of the month, month, day of the week: 0 3 * * 1-5.", every: "Such as 90s, 15m or 12h; a second at least.", at: "Such as 2026-12-24T18:00." };
  return (
    <Dialog title="A new schedule" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!name.trim() || !tool.trim() || !when.trim() || !!fault}>Make the schedule</Button></>}>
      <TextField label="Name" value={name} onInput={setName} hint="Lower-case letters, digits, dots, dashes." autoFocus />
      <TextField label="Tool" mono value={tool} onInput={setTool} hint="Such as wharf/echo." />
      <div class="grid3">
        <SelectField label="When" value={kind} onChange={setKind} options={WHENS} />
        {kind !== "every" && <TextField label="Time zone" value={tz} onInput={setTz} />}
      </div>
      <TextField label={kind === "cron" ? "Pattern" : kind === "every" ? "Length" : "Time"} mono value={when} onInput={setWhen} hint={hints[kind]} fault={kind === "every" && when && every === undefined ? "A number and s, m, h or d." : undefined} />
      <AreaField label="Inputs as JSON" mono rows={4} value={inputs} onInput={setInputs} fault={fault} />
      <SelectField label="World" value={world} onChange={setWorld} options={(worlds.data.value?.items ?? [{ world }]).map((w) => ({ value: w.world, name: w.world }))} />
      <SelectField label="If the run before still goes on" value={overlap} onChange={setOverlap} options={[{ value: "skip", name: "the time is left out" }, { value: "parallel", name: "another run starts beside it" }, { value: "cancel_previous", name: "the run before is asked to stop" }]} />
      <SelectField label="Times that passed while the core was away" value={catchUp} onChange={setCatchUp} options={[{ value: "last", name: "the last of them is made up for" }, { value: "none", name: "are left out" }]} />
      {error && <Refusal error={error} />}
    </Dialog>
  );
}

/** What the badge of a paused schedule says. */
export function Paused({ s }: { s: Schedule }) {
  return <Badge tone="warn">{s.pause_cause === "rights_ended" ? "the rights it was made with have ended" : "somebody paused it"}</Badge>;
}
