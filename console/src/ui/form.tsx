// Fields with labels, and forms made from a JSON Schema.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useId, useRef, useState } from "preact/hooks";
import { Num, parse, write, type Json } from "../lib/json";
import { Draft, startOf, valueOf, type Fault, type Field as Plan, type Val } from "../lib/schema";
import { safe } from "../lib/text";
import { Button, Foreign } from "./parts";
import { toastError } from "./toast";

type Props = { label: ComponentChildren; hint?: ComponentChildren; fault?: string | undefined; children: (ids: { id: string; describedBy: string | undefined; invalid: boolean | undefined }) => ComponentChildren; optional?: boolean };

export function Field({ label, hint, fault, children, optional }: Props) {
  const id = useId();
  const describedBy = [hint && `${id}-h`, fault && `${id}-f`].filter(Boolean).join(" ") || undefined;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {optional && <span class="muted"> optional</span>}
      </label>
      {hint && (
        <span class="hint" id={`${id}-h`}>
          {hint}
        </span>
      )}
      {children({ id, describedBy, invalid: fault ? true : undefined })}
      {fault && (
        <span class="fault" id={`${id}-f`}>
          {fault}
        </span>
      )}
    </div>
  );
}

type TextProps = { label: ComponentChildren; value: string; onInput: (v: string) => void; hint?: ComponentChildren; fault?: string | undefined; optional?: boolean; type?: string; placeholder?: string; mono?: boolean; autoFocus?: boolean; autoComplete?: string; required?: boolean; list?: string };

export function TextField(p: TextProps) {
  return (
    <Field label={p.label} hint={p.hint} fault={p.fault} optional={p.optional ?? false}>
      {(a) => (
        <input class={p.mono ? "input mono" : "input"} id={a.id} aria-describedby={a.describedBy} aria-invalid={a.invalid} type={(p.type ?? "text") as "text"} value={p.value} placeholder={p.placeholder} autoFocus={p.autoFocus} autoComplete={p.autoComplete ?? "off"} spellcheck={false} required={p.required} list={p.list} onInput={(e) => p.onInput(e.currentTarget.value)} />
      )}
    </Field>
  );
}

export function AreaField(p: Omit<TextProps, "type"> & { rows?: number }) {
  return (
    <Field label={p.label} hint={p.hint} fault={p.fault} optional={p.optional ?? false}>
      {(a) => (
        <textarea class={p.mono ? "area mono" : "area"} id={a.id} aria-describedby={a.describedBy} aria-invalid={a.invalid} rows={p.rows ?? 4} placeholder={p.placeholder} autoFocus={p.autoFocus} spellcheck={!p.mono} value={p.value} onInput={(e) => p.onInput(e.currentTarget.value)} />
      )}
    </Field>
  );
}

export function SelectField({ label, value, options, onChange, hint }: { label: ComponentChildren; value: string; options: { value: string; name: string }[]; onChange: (v: string) => void; hint?: ComponentChildren }) {
  return (
    <Field label={label} hint={hint}>
      {(a) => (
        <select class="select" id={a.id} aria-describedby={a.describedBy} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
          {options.map((o) => (
            <option value={o.value}>{safe(o.name)}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, checked, onChange, hint }: { label: ComponentChildren; checked: boolean; onChange: (v: boolean) => void; hint?: ComponentChildren }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(e) => onChange(e.currentTarget.checked)} />
      <span>
        {label}
        {hint && <span class="muted"> {hint}</span>}
      </span>
    </label>
  );
}

export type FormState = { value: Val; faults: Fault[]; onChange: (v: Val) => void };

/** How a file is put where a form can name it; gives back its path. Without it a path is typed. */
export type PutFile = (file: File) => Promise<string>;
const Put = createContext<PutFile | undefined>(undefined);

/** A form for a schema. Faults are shown where they are. */
export function SchemaForm({ field, value, faults, onChange, put }: { field: Plan; put?: PutFile | undefined } & FormState) {
  return (
    <Put.Provider value={put}>
      <Part field={field} value={value} faults={faults} onChange={onChange} path="" top />
    </Put.Provider>
  );
}

type PartProps = { field: Plan; value: Val; faults: Fault[]; onChange: (v: Val) => void; path: string; top?: boolean };

function Part(p: PartProps) {
  const { field, value, faults, path } = p;
  const fault = faults.find((f) => f.path === path)?.message;
  const name = p.top && !field.name ? field.title || "Answer" : field.title || field.name || "Value";
  const label = (
    <>
      <Foreign text={name} max={200} />
      {!field.required && <span class="muted"> optional</span>}
    </>
  );
  const hint = field.hint ? <Foreign text={field.hint} max={1000} /> : undefined;
  const plan = field.plan;
  switch (plan.kind) {
    case "fixed":
      return (
        <div class="field">
          <span class="label">{label}</span>
          <code>
            <Foreign text={write(plan.value, 0)} max={400} />
          </code>
        </div>
      );
    case "boolean":
      return <Choice label={label} hint={hint} fault={fault} options={[{ name: "Yes", value: true }, { name: "No", value: false }]} value={value} optional={!field.required} onChange={p.onChange} />;
    case "choice":
      if (plan.options.length <= 7) return <Choice label={label} hint={hint} fault={fault} options={plan.options} value={value} optional={!field.required} onChange={p.onChange} />;
      return (
        <Field label={label} hint={hint} fault={fault}>
          {(a) => (
            <select class="select" id={a.id} aria-describedby={a.describedBy} aria-invalid={a.invalid} value={value === undefined ? "" : write(value as Json, 0)} onChange={(e) => p.onChange(plan.options.find((o) => write(o.value, 0) === e.currentTarget.value)?.value)}>
              <option value="">–</option>
              {plan.options.map((o) => (
                <option value={write(o.value, 0)}>{safe(o.name)}</option>
              ))}
            </select>
          )}
        </Field>
      );
    case "choices":
      return <Several {...p} label={label} hint={hint} fault={fault} options={plan.options} />;
    case "number":
      return <NumberPart {...p} label={label} hint={hint} fault={fault} whole={plan.whole} />;
    case "file":
      return <FilePart {...p} label={label} hint={hint} fault={fault} />;
    case "text":
      return <TextPart {...p} label={label} hint={hint} fault={fault} />;
    case "list":
      return <ListPart {...p} label={label} hint={hint} fault={fault} item={plan.item} />;
    case "object":
      return <ObjectPart {...p} label={label} hint={hint} fault={fault} fields={plan.fields} />;
    default:
      return <JsonPart {...p} label={label} hint={hint} fault={fault} />;
  }
}

type Shown = { label: ComponentChildren; hint: ComponentChildren; fault: string | undefined };

function Choice({ label, hint, fault, options, value, onChange, optional }: Shown & { options: { name: string; value: Json }[]; value: Val; onChange: (v: Val) => void; optional: boolean }) {
  const id = useId();
  const now = value === undefined || value instanceof Draft ? undefined : write(value as Json, 0);
  return (
    <fieldset class="field" aria-describedby={fault ? `${id}-f` : undefined}>
      <legend>{label}</legend>
      {hint && <span class="hint">{hint}</span>}
      <div class="choices">
        {options.map((o) => (
          <label class="choice">
            <input type="radio" name={id} checked={write(o.value, 0) === now} onChange={() => onChange(o.value)} />
            <span>
              <Foreign text={o.name} max={200} />
            </span>
          </label>
        ))}
        {optional && now !== undefined && (
          <Button kind="quiet" small onClick={() => onChange(undefined)}>
            Clear
          </Button>
        )}
      </div>
      {fault && (
        <span class="fault" id={`${id}-f`}>
          {fault}
        </span>
      )}
    </fieldset>
  );
}

function Several({ label, hint, fault, options, value, onChange }: PartProps & Shown & { options: { name: string; value: Json }[] }) {
  const list = Array.isArray(value) ? (value as Json[]) : [];
  const has = (v: Json) => list.some((e) => write(e, 0) === write(v, 0));
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      {hint && <span class="hint">{hint}</span>}
      {options.map((o) => (
        <Check label={<Foreign text={o.name} />} checked={has(o.value)} onChange={(on) => onChange(on ? [...list, o.value] : list.filter((e) => write(e, 0) !== write(o.value, 0)))} />
      ))}
      {fault && <span class="fault">{fault}</span>}
    </fieldset>
  );
}

function NumberPart({ label, hint, fault, whole, value, onChange }: PartProps & Shown & { whole: boolean }) {
  const text = value instanceof Num ? value.text : value instanceof Draft ? value.text : "";
  const set = (t: string) => {
    const s = t.trim();
    if (s === "") onChange(undefined);
    else if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(s)) onChange(new Num(s));
    else onChange(new Draft(t, whole ? "This must be a whole number." : "This must be a number."));
  };
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(a) => <input class="input" id={a.id} aria-describedby={a.describedBy} aria-invalid={a.invalid} inputMode={whole ? "numeric" : "decimal"} autoComplete="off" value={text} onInput={(e) => set(e.currentTarget.value)} />}
    </Field>
  );
}

const INPUT_TYPES: Record<string, string> = { date: "date", time: "time", email: "email", uri: "url", password: "password" };

function TextPart({ field, label, hint, fault, value, onChange }: PartProps & Shown) {
  const text = typeof value === "string" ? value : "";
  const format = field.plan.kind === "text" ? field.plan.format : undefined;
  const set = (t: string) => onChange(t === "" && !field.required ? undefined : t);
  const long = field.plan.kind === "text" && field.plan.long;
  if (format === "date-time") {
    const local = text ? new Date(Date.parse(text) - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 19) : "";
    return (
      <Field label={label} hint={hint ?? "Your local time."} fault={fault}>
        {(a) => <input class="input" id={a.id} type="datetime-local" step="1" aria-describedby={a.describedBy} aria-invalid={a.invalid} value={local} onInput={(e) => onChange(e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : undefined)} />}
      </Field>
    );
  }
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(a) =>
        long ? (
          <textarea class="area" id={a.id} rows={text.length > 80 || text.includes("\n") ? 5 : 2} aria-describedby={a.describedBy} aria-invalid={a.invalid} value={text} onInput={(e) => set(e.currentTarget.value)} />
        ) : (
          <input class="input" id={a.id} type={(INPUT_TYPES[format ?? ""] ?? "text") as "text"} autoComplete="off" aria-describedby={a.describedBy} aria-invalid={a.invalid} value={text} onInput={(e) => set(e.currentTarget.value)} />
        )
      }
    </Field>
  );
}

/** A file by its path in the world, which one that is dropped or chosen gets. */
function FilePart({ field, label, hint, fault, value, onChange }: PartProps & Shown) {
  const put = useContext(Put);
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const take = async (list: FileList | null | undefined) => {
    const file = list?.[0];
    if (!file || !put) return;
    setBusy(true);
    try {
      onChange(await put(file));
    } catch (error) {
      toastError(error);
    }
    setBusy(false);
  };
  return (
    <div class="col tight">
      <Field label={label} hint={hint ?? "A file: its path in the world, or its content as text."} fault={fault}>
        {(a) => <input class="input mono" id={a.id} autoComplete="off" spellcheck={false} aria-describedby={a.describedBy} aria-invalid={a.invalid} value={typeof value === "string" ? value : ""} onInput={(e) => onChange(e.currentTarget.value === "" && !field.required ? undefined : e.currentTarget.value)} />}
      </Field>
      {put && (
        <div class={over ? "drop over" : "drop"} onDragOver={(e) => (e.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)} onDrop={(e) => (e.preventDefault(), setOver(false), void take(e.dataTransfer?.files))}>
          <p>Drop a file here, or <Button small icon="up" busy={busy} onClick={() => input.current?.click()}>Choose a file</Button></p>
          <input ref={input} type="file" hidden onChange={(e) => (void take(e.currentTarget.files), (e.currentTarget.value = ""))} />
        </div>
      )}
    </div>
  );
}

function ListPart({ field, label, hint, fault, item, value, onChange, path, faults }: PartProps & Shown & { item: Plan }) {
  const list = Array.isArray(value) ? (value as Val[]) : [];
  const set = (next: Val[]) => onChange(next.length === 0 && !field.required ? undefined : next);
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      {hint && <span class="hint">{hint}</span>}
      <div class="nest">
        {list.map((v, i) => (
          <div class="row top">
            <div class="grow">
              <Part field={{ ...item, title: `${item.title || "Item"} ${i + 1}` }} value={v} faults={faults} path={`${path}/${i}`} onChange={(n) => set(list.map((e, j) => (j === i ? n : e)))} />
            </div>
            <Button kind="quiet" small icon="trash" label={`Remove item ${i + 1}`} onClick={() => set(list.filter((_, j) => j !== i))} />
          </div>
        ))}
        <div>
          <Button small icon="plus" onClick={() => set([...list, startOf(item)])}>
            Add an item
          </Button>
        </div>
      </div>
      {fault && <span class="fault">{fault}</span>}
    </fieldset>
  );
}

function ObjectPart({ field, label, hint, fault, fields, value, onChange, path, faults, top }: PartProps & Shown & { fields: Plan[] }) {
  const map = value instanceof Map ? (value as Map<string, Val>) : undefined;
  const body = map && (
    <>
      {fields.map((f) => (
        <Part field={f} value={map.get(f.name)} faults={faults} path={`${path}/${f.name.replaceAll("~", "~0").replaceAll("/", "~1")}`} onChange={(v) => onChange(new Map(map).set(f.name, v))} />
      ))}
      {fields.length === 0 && <p class="muted">There is nothing to fill in.</p>}
    </>
  );
  if (top) return <div class="col">{body}{fault && <span class="fault">{fault}</span>}</div>;
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      {hint && <span class="hint">{hint}</span>}
      {body ? (
        <div class="nest">
          {body}
          {!field.required && (
            <div>
              <Button kind="quiet" small onClick={() => onChange(undefined)}>
                Leave it out
              </Button>
            </div>
          )}
        </div>
      ) : (
        <div>
          <Button small icon="plus" onClick={() => onChange(startOf({ ...field, required: true }))}>
            Fill it in
          </Button>
        </div>
      )}
      {fault && <span class="fault">{fault}</span>}
    </fieldset>
  );
}

function JsonPart({ field, label, hint, fault, value, onChange }: PartProps & Shown) {
  const [text, setText] = useState(() => {
    const v = valueOf(value);
    return v === undefined ? "" : write(v);
  });
  const set = (t: string) => {
    setText(t);
    if (t.trim() === "") return onChange(undefined);
    try {
      onChange(parse(t));
    } catch (error) {
      onChange(new Draft(t, (error as Error).message));
    }
  };
  return (
    <Field label={label} hint={hint ?? (field.plan.kind === "json" ? "As JSON: text in quotes, numbers without." : undefined)} fault={fault}>
      {(a) => <textarea class="area mono" id={a.id} rows={4} spellcheck={false} aria-describedby={a.describedBy} aria-invalid={a.invalid} value={text} onInput={(e) => set(e.currentTarget.value)} />}
    </Field>
  );
}
