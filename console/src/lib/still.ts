// Lists do not jump under the pointer: while it is on one, rows stay where they are, and what is new waits to be shown.

export type Still<T> = { rows: T[]; fresh: number; gone: Set<string> };

/** What is shown of a list whose rows are held: known rows in their places, with what is new in them; what follows after the last of them; the rest waits. */
export function holdStill<T>(held: Map<string, T>, rows: T[], keyOf: (row: T) => string): Still<T> {
  const now = new Map(rows.map((row) => [keyOf(row), row]));
  const gone = new Set([...held.keys()].filter((key) => !now.has(key)));
  let tail = rows.length;
  while (tail > 0 && !held.has(keyOf(rows[tail - 1]!))) tail -= 1;
  const fresh = rows.slice(0, tail).filter((row) => !held.has(keyOf(row))).length;
  return { rows: [...[...held].map(([key, last]) => now.get(key) ?? last), ...rows.slice(tail)], fresh, gone };
}
