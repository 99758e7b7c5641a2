// JSON as a tree that opens where one looks. Numbers stay as written; long lists and long texts come in parts.
import { useState } from "preact/hooks";
import { count, plural } from "../lib/format";
import { fromJs, Num, Obj, write, type Json } from "../lib/json";
import { cut } from "../lib/text";
import { Button, copy, Foreign } from "./parts";

const OPEN_DEPTH = 2;
const ITEMS = 100;
const TEXT = 2000;
/** About how many values are drawn before somebody opens more. */
const ROOM = 500;

export function JsonView({ value, open = OPEN_DEPTH, label = "JSON" }: { value: Json | unknown; open?: number; label?: string }) {
  const json = isJson(value) ? value : fromJs(value);
  return (
    <div class="col tight">
      <div class="json" role="group" aria-label={label}>
        <Node value={json} depth={0} open={open} room={ROOM} />
      </div>
      <div>
        <Button kind="quiet" small icon="copy" onClick={() => copy(write(json))}>
          Copy JSON
        </Button>
      </div>
    </div>
  );
}

function isJson(v: unknown): v is Json {
  return v === null || v instanceof Obj || v instanceof Num || typeof v === "string" || typeof v === "boolean";
}

/** `room` is how many values may be drawn in it unasked: what an outer one has, shared among those within. */
function Node({ name, value, depth, open, room }: { name?: string; value: Json; depth: number; open: number; room: number }) {
  const size = Array.isArray(value) ? value.length : value instanceof Obj ? value.entries.length : 0;
  const [shown, setShown] = useState(depth < open && (depth === 0 || size <= room));
  const [limit, setLimit] = useState(ITEMS);
  const key = name !== undefined && (
    <span class="key">
      <Foreign text={name} max={400} />:{" "}
    </span>
  );
  if (!Array.isArray(value) && !(value instanceof Obj)) {
    return (
      <div class="line">
        {key}
        <Leaf value={value} />
      </div>
    );
  }
  const entries: [string | undefined, Json][] = Array.isArray(value) ? value.map((v, i) => [String(i), v]) : value.entries;
  const [a, b] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0)
    return (
      <div class="line">
        {key}
        <span class="none">
          {a}
          {b}
        </span>
      </div>
    );
  return (
    <div>
      <button type="button" aria-expanded={shown} onClick={() => setShown(!shown)}>
        <span aria-hidden="true">{shown ? "▾ " : "▸ "}</span>
        {key}
        <span class="none">
          {a}
          {!shown && ` ${plural(entries.length, Array.isArray(value) ? "item" : "field")} ${b}`}
        </span>
      </button>
      {shown && (
        <>
          <ul>
            {entries.slice(0, limit).map(([k, v]) => (
              <li>
                <Node name={k ?? ""} value={v} depth={depth + 1} open={open} room={room / Math.max(1, size)} />
              </li>
            ))}
            {entries.length > limit && (
              <li>
                <button type="button" onClick={() => setLimit(limit + 1000)}>
                  … {count(entries.length - limit)} more
                </button>
              </li>
            )}
          </ul>
          <span class="none">{b}</span>
        </>
      )}
    </div>
  );
}

function Leaf({ value }: { value: null | boolean | string | Num }) {
  const [all, setAll] = useState(false);
  if (value === null) return <span class="none">null</span>;
  if (typeof value === "boolean") return <span class="lit">{String(value)}</span>;
  if (value instanceof Num) return <span class="lit">{value.text}</span>;
  const text = all ? cut(value, 1_000_000) : cut(value, TEXT);
  return (
    <span>
      <span class="str">
        "<Foreign text={text} />"
      </span>
      {value.length > TEXT && !all && (
        <button type="button" onClick={() => setAll(true)}>
          … {count(value.length - TEXT)} more characters
        </button>
      )}
    </span>
  );
}
