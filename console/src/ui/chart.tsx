// Charts over time. The drawing comes when it is needed; the same figures stand in a table below it.
import { useEffect, useRef, useState } from "preact/hooks";
import { clock, exact, type Zone } from "../lib/format";
import { theme } from "../theme";
import { now, zone } from "./parts";
import "uplot/dist/uPlot.min.css";

export type Line = { name: string; color: string; values: (number | null)[]; fill?: boolean; bars?: boolean };

/** A day, in UTC as the core counts them. */
function dayOf(t: number): string {
  return new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "short" }).format(t);
}

/** All days of a span, so that days without anything show as such. */
export function days(count: number, end: number): string[] {
  return Array.from({ length: count }, (_, i) => new Date(end - (count - 1 - i) * 86_400_000).toISOString().slice(0, 10));
}

/** Marks at 1, 2, 4, 8 … bytes. */
const BYTES = Array.from({ length: 50 }, (_, i) => 2 ** i);
/** Marks at 1, 2, 5, 10 … of what is never less than one. */
const WHOLE = Array.from({ length: 45 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3));
const MARKS = { bytes: BYTES, whole: WHOLE };

/** `at` is the zone of its times, where that is not what the page shows. `marks` says where lines across may lie; `empty` is how high a chart reaches that has nothing but zeros. */
export function Chart({ label, times, lines, format, height = 150, day = false, marks, empty = 1, at }: { label: string; times: number[]; lines: Line[]; format: (n: number) => string; height?: number; day?: boolean; marks?: keyof typeof MARKS; empty?: number; at?: Zone }) {
  const box = useRef<HTMLDivElement>(null);
  const [table, setTable] = useState(false);
  const dark = theme.value;
  const shown = at ?? zone();
  useEffect(() => {
    let plot: { destroy(): void; setSize(s: { width: number; height: number }): void } | undefined;
    let gone = false;
    const el = box.current;
    if (!el || times.length === 0) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const size = new ResizeObserver(() => plot?.setSize({ width: el.clientWidth, height }));
    void import("uplot").then(({ default: UPlot }) => {
      if (gone) return;
      const bars = UPlot.paths.bars?.({ size: [0.7, 24], radius: 0.15 });
      const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: `11px ${colour("--font")}` };
      plot = new UPlot(
        {
          width: el.clientWidth,
          height,
          cursor: { points: { size: 6 }, y: false },
          legend: { show: false },
          // A bar is as wide as its step: the first and the last one have half of theirs beyond their moment.
          scales: { ...(lines.some((l) => l.bars) && times.length > 1 ? { x: { range: (_u: unknown, min: number, max: number): [number, number] => [min - (max - min) / (times.length - 1) / 2, max + (max - min) / (times.length - 1) / 2] } } : {}), y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.15 : empty] } },
          axes: [
            { ...axis, grid: { show: false }, size: 26, space: 70, values: (_u, all, _axis, _space, step) => all.map((t) => (day ? dayOf(t * 1000) : clock(t * 1000, now.peek(), shown).replace(/^.*, /, "").slice(0, step < 60 ? 8 : 5))) },
            { ...axis, size: 58, ...(marks ? { incrs: MARKS[marks] } : {}), values: (_u, all) => all.map((v) => format(v)) },
          ],
          series: [{}, ...lines.map((l) => ({ label: l.name, stroke: colour(l.color), width: 1.6, points: { show: l.values.filter((v) => v != null).length < 4, size: 4 }, ...(l.fill ? { fill: `${colour(l.color)}22` } : {}), ...(l.bars && bars ? { paths: bars, fill: colour(l.color), width: 0 } : {}) }))],
        },
        [times.map((t) => t / 1000), ...lines.map((l) => l.values)],
        el,
      );
      size.observe(el);
    });
    return () => {
      gone = true;
      size.disconnect();
      plot?.destroy();
    };
  }, [times, lines, height, dark, shown]);
  return (
    <figure class="col tight">
      <div class="row wrap">
        <div class="legend grow" aria-hidden="true">
          {lines.map((l) => (
            <span>
              <i style={{ background: `var(${l.color})` }} />
              {l.name}
            </span>
          ))}
        </div>
        <button type="button" class="btn quiet small edge" aria-expanded={table} onClick={() => setTable(!table)}>
          {table ? "Hide the table" : "As a table"}
        </button>
      </div>
      <div class="chart" ref={box} role="img" aria-label={label} style={{ height: `${height}px` }} />
      {table && (
        <div class="tablebox" style={{ maxHeight: "260px" }} tabIndex={0} role="region" aria-label={label}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Time</th>
                {lines.map((l) => (
                  <th scope="col" class="num">
                    {l.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((t, i) => (
                <tr>
                  <td>{day ? dayOf(t) : exact(t, shown).slice(0, 16)}</td>
                  {lines.map((l) => (
                    <td class="num">{l.values[i] == null ? "–" : format(l.values[i]!)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </figure>
  );
}
