// All parts on one page, for those who change them.
import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { OutputLog } from "../lib/output";
import { check, fieldOf, startOf, type Val } from "../lib/schema";
import { Screen } from "../screens/frame";
import { Chart } from "./chart";
import { Code, Diff } from "./code";
import { confirm } from "./dialog";
import { AreaField, Check, SchemaForm, SelectField, TextField } from "./form";
import { Graph } from "./graph";
import { Icon } from "./icons";
import { JsonView } from "./json";
import { OutputView } from "./output";
import { Badge, Button, Card, Command, Empty, Facts, Foreign, Menu, Meter, Note, Refusal, Skeleton, Status, Tabs, Time, Word } from "./parts";
import { Table, VirtualTable } from "./table";
import { toast } from "./toast";

const COLOURS = ["bg", "surface", "sunken", "hover", "selected", "accent", "ok", "bad", "warn", "run", "odd", "calm", "chart-1", "chart-2", "chart-3", "chart-4"];
const STATES = ["queued", "waiting", "running", "succeeded", "failed", "refused", "canceled", "available", "quarantined", "crashed", "backing_off"];
const ICONS = ["home", "runs", "inbox", "tool", "provider", "world", "money", "seat", "audit", "key", "system", "search", "check", "x", "copy", "play", "stop", "again", "warn", "info", "clock", "pause", "file", "folder", "up", "download", "trash", "plus", "menu", "more", "sun", "moon", "bell", "out", "shield", "link", "sort"];
const SCHEMA = { type: "object", required: ["name", "size"], properties: { name: { type: "string", title: "Name", maxLength: 40 }, size: { type: "integer", title: "Size", minimum: 1, maximum: 10 }, colour: { enum: ["red", "green", "blue"], title: "Colour" }, tags: { type: "array", title: "Tags", items: { type: "string", maxLength: 20 } }, when: { type: "string", format: "date", title: "When" } } };

const log = new OutputLog();
log.push("stdout", new Date(0).toISOString(), "plain\n\u001b[31mred\u001b[0m and \u001b[1;32mbold green\u001b[0m\n<script>alert(1)</script> \u202eback\u202c\n");
log.push("stderr", new Date(0).toISOString(), "a warning\n");

export default function Gallery() {
  const field = fieldOf(SCHEMA);
  const [value, setValue] = useState<Val>(() => startOf(field));
  const [text, setText] = useState("");
  const [on, setOn] = useState(true);
  const times = Array.from({ length: 40 }, (_, i) => 1_700_000_000_000 + i * 60_000);
  return (
    <Screen title="Design">
      <Card title="Colours"><div class="swatches">{COLOURS.map((c) => <div style={{ background: `var(--${c})`, color: /^(bg|surface|sunken|hover|selected)$/.test(c) ? "var(--text)" : "var(--surface)" }}>{c}</div>)}</div></Card>
      <Card title="Icons"><div class="row wrap">{ICONS.map((n) => <span title={n}><Icon name={n} size={20} /></span>)}</div></Card>
      <Card title="States"><div class="row wrap">{STATES.map((s) => <Status state={s} />)}</div></Card>
      <Card title="Buttons"><div class="row wrap"><Button>Plain</Button><Button kind="primary" icon="play">Primary</Button><Button kind="danger" icon="trash">Danger</Button><Button kind="quiet">Quiet</Button><Button small>Small</Button><Button disabled>Disabled</Button><Button pressed>Pressed</Button><Menu label="Menu" items={[{ name: "One", icon: "copy" }, { name: "Two", danger: true }]} /><Button onClick={() => toast("Done.")}>Toast</Button><Button onClick={() => confirm({ title: "Remove it?", text: <p>It is gone for good.</p>, act: "Remove it", danger: true, run: async () => {} })}>Dialog</Button></div></Card>
      <Card title="Badges, words, times"><div class="row wrap"><Badge>calm</Badge><Badge tone="ok">ok</Badge><Badge tone="warn">warn</Badge><Badge tone="bad">bad</Badge><Badge tone="run">run</Badge><Badge tone="odd">odd</Badge><Word name="World" /><Time at={Date.now() - 90_000} as="relative" /><Foreign text={"foreign \u202etext\u202c \u0007"} /></div></Card>
      <Card title="Notes"><div class="col"><Note>Plain.</Note><Note tone="run">Something goes on.</Note><Note tone="ok">Well.</Note><Note tone="warn">Mind this.</Note><Refusal error={new ApiError(409, { code: "ask.decided", message: "The ask is decided already.", retryable: false })} /></div></Card>
      <Card title="Tabs"><Tabs label="An example" current="a" hrefOf={() => "/ui"} tabs={[{ id: "a", name: "First" }, { id: "b", name: "Second", count: 12 }]} /></Card>
      <div class="grid2">
        <Card title="Fields"><div class="col"><TextField label="Text" value={text} onInput={setText} hint="A hint." /><TextField label="Wrong" value="x" onInput={() => {}} fault="This must be a number." /><AreaField label="Area" value={text} onInput={setText} /><SelectField label="Select" value="a" onChange={() => {}} options={[{ value: "a", name: "A" }]} /><Check label="Check" checked={on} onChange={setOn} /></div></Card>
        <Card title="A form from a schema"><SchemaForm field={field} value={value} faults={check(field, value)} onChange={setValue} /></Card>
      </div>
      <div class="grid2">
        <Card title="JSON"><JsonView value={{ a: 1, list: [1, 2, { deep: true }], text: "<b>text</b>", none: null }} open={3} /></Card>
        <Card title="Code and difference"><div class="col"><Code label="Code" text={"let a = 1;\n"} /><Diff label="Difference" before={"a\nb\nc"} after={"a\nB\nc"} /></div></Card>
      </div>
      <OutputView log={log} version={1} live={false} name="gallery" />
      <div class="grid2">
        <Card title="Chart"><Chart label="An example" times={times} format={String} lines={[{ name: "Waves", color: "--chart-1", fill: true, values: times.map((_, i) => 5 + Math.sin(i / 4) * 4) }]} /></Card>
        <Card title="Graph"><Graph label="An example" nodes={[{ id: "a", label: "/in.txt", kind: "file" }, { id: "b", label: "wharf/echo", kind: "run", here: true }, { id: "c", label: "/out.txt", kind: "file" }]} edges={[["a", "b"], ["b", "c"]]} /></Card>
      </div>
      <Card title="Table" flush><Table label="An example" rows={[1, 2, 3]} keyOf={String} columns={[{ name: "Number", cell: (n) => n }, { name: "Square", num: true, cell: (n) => n * n }]} /></Card>
      <Card title="A long table" flush><div style={{ height: "240px", display: "flex", flexDirection: "column" }}><VirtualTable label="A long example" rows={Array.from({ length: 100_000 }, (_, i) => i)} keyOf={String} columns={[{ name: "Number", cell: (n) => n }, { name: "Square", num: true, cell: (n) => n * n }]} /></div></Card>
      <div class="grid2"><Card title="Meter and facts"><Meter label="40 of 100" max={100} parts={[{ value: 40 }, { value: 20, cls: "held" }]} /><Facts items={[["Name", "value"], ["Other", "value"]]} /></Card><Card title="Waiting"><Skeleton /></Card></div>
      <Card><Empty title="An empty state"><p>It says what would be here and how to get it.</p><Command text="wharf run wharf/count n=20" /></Empty></Card>
    </Screen>
  );
}
