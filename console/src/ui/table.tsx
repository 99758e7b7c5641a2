// Tables. A long one draws only the rows in view and says how many there are.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../lib/format";
import { windowOf } from "../lib/virtual";
import { go } from "../router";
import { Skeleton } from "./parts";
import { useStill } from "./still";

export type Column<T> = {
  name: ComponentChildren;
  /** What a cell shows. */
  cell: (row: T) => ComponentChildren;
  num?: boolean;
  /** 3 goes first when the page is narrow, then 2, then 1. */
  drop?: 1 | 2 | 3;
  width?: string;
  tall?: boolean;
  /** Takes what is left where the page is narrow, whatever its width. */
  grow?: boolean;
};

const cls = <T,>(c: Column<T>) => [c.num && "num", c.drop && `p${c.drop}`, c.tall && "tall", c.grow && "grow"].filter(Boolean).join(" ") || undefined;

/** A click anywhere in a row opens what the row is about, unless it meant something else. */
function openRow(event: MouseEvent, to: string | undefined): void {
  if (!to || (event.target as Element).closest("a,button,input,label,.tip") || getSelection()?.toString()) return;
  if (event.metaKey || event.ctrlKey) window.open(to, "_blank", "noopener");
  else go(to);
}

function Head<T>({ columns }: { columns: Column<T>[] }) {
  return (
    <thead>
      <tr>
        {columns.map((c) => (
          <th scope="col" class={cls(c)} style={c.width ? { width: c.width } : undefined}>
            {c.name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

export function Table<T>({ label, columns, rows, hrefOf, keyOf, fixed }: { label: string; columns: Column<T>[]; rows: T[]; hrefOf?: (row: T) => string | undefined; keyOf: (row: T) => string; fixed?: boolean }) {
  const still = useStill(rows, keyOf);
  return (
    <div class="tablebox" tabIndex={0} role="region" aria-label={label} {...still.props}>
      {still.fresh > 0 && <Fresh count={still.fresh} show={still.show} />}
      <table class={fixed ? "table fixed" : "table"} aria-label={label}>
        <Head columns={columns} />
        <tbody>
          {still.rows.map((row) => {
            const to = hrefOf?.(row);
            const key = keyOf(row);
            const gone = still.gone.has(key);
            return (
              <tr key={key} class={gone ? "gone" : to ? "link" : undefined} inert={gone} onClick={(e) => openRow(e, to)}>
                {columns.map((c) => (
                  <td class={cls(c)}>{c.cell(row)}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** How many rows wait to be shown while the pointer is on the list. */
export function Fresh({ count: n, show }: { count: number; show: () => void }) {
  return (
    <button type="button" class="btn primary small fresh" onClick={show}>
      {count(n)} new
    </button>
  );
}

export const ROW = 36;

type VirtualProps<T> = {
  label: string;
  columns: Column<T>[];
  rows: T[];
  /** How many there are in all, if that is known; -1 if not. */
  total?: number;
  hrefOf?: (row: T) => string | undefined;
  keyOf: (row: T) => string;
  /** Called when the end comes into view. */
  onEnd?: () => void;
  more?: boolean;
  onTop?: (top: boolean) => void;
  selected?: string | undefined;
};

export function VirtualTable<T>(p: VirtualProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    let frame = 0;
    const look = () => {
      frame = 0;
      setView({ top: el.scrollTop, height: el.clientHeight });
      p.onTop?.(el.scrollTop < ROW);
    };
    const soon = () => (frame ||= requestAnimationFrame(look));
    el.addEventListener("scroll", soon, { passive: true });
    const size = new ResizeObserver(soon);
    size.observe(el);
    look();
    return () => {
      el.removeEventListener("scroll", soon);
      size.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  const w = windowOf(p.rows.length, ROW, view.top, view.height);
  useEffect(() => {
    if (p.more && w.end >= p.rows.length - 20) p.onEnd?.();
  }, [w.end, p.rows.length, p.more]);
  return (
    <div class="tablebox virtual" ref={box} tabIndex={0} role="region" aria-label={p.label}>
      <table class="table fixed" aria-label={p.label} aria-rowcount={p.total === undefined ? p.rows.length + 1 : p.total < 0 ? -1 : p.total + 1}>
        <Head columns={p.columns} />
        <tbody>
          {w.before > 0 && (
            <tr class="space" aria-hidden="true">
              <td style={{ height: `${w.before}px` }} />
            </tr>
          )}
          {p.rows.slice(w.first, w.end).map((row, i) => {
            const to = p.hrefOf?.(row);
            const key = p.keyOf(row);
            return (
              <tr key={key} aria-rowindex={w.first + i + 2} class={to ? "link" : undefined} aria-selected={p.selected === key ? true : undefined} onClick={(e) => openRow(e, to)}>
                {p.columns.map((c) => (
                  <td class={cls(c)}>{c.cell(row)}</td>
                ))}
              </tr>
            );
          })}
          {w.after > 0 && (
            <tr class="space" aria-hidden="true">
              <td style={{ height: `${w.after}px` }} />
            </tr>
          )}
        </tbody>
      </table>
      {p.more && (
        <div class="loadmore">
          <Skeleton lines={2} />
        </div>
      )}
    </div>
  );
}
