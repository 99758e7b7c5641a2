// What was spent day by day, with days on which nothing was.
import { useMemo } from "preact/hooks";
import type { Costs } from "../api/types";
import { money } from "../lib/format";
import { Chart, days } from "../ui/chart";

export function DayChart({ costs, count }: { costs: Costs; count: number }) {
  const { times, lines } = useMemo(() => {
    const by = new Map(costs.items.map((i) => [i.key, i.cost_micro]));
    const all = days(count, Date.now());
    return { times: all.map((d) => Date.parse(`${d}T00:00:00Z`)), lines: [{ name: "Spent", color: "--chart-1", bars: true, values: all.map((d) => by.get(d) ?? 0) }] };
  }, [costs, count]);
  return <Chart label={`Spent by day, ${money(costs.total_micro)} in all`} times={times} lines={lines} format={money} marks="whole" empty={1e6} day />;
}
