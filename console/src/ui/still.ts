// Rows that are held while the pointer is on their list.
import { useRef, useState } from "preact/hooks";
import { holdStill, type Still } from "../lib/still";
import { place } from "../router";

const NOTHING = new Set<string>();

/** Rows as they are to be shown. Another address is another list. */
export function useStill<T>(rows: T[], keyOf: (row: T) => string) {
  const [held, setHeld] = useState<{ at: string; rows: Map<string, T> }>();
  const at = `${place.value.path}?${place.value.query}`;
  const shown = useRef<T[]>(rows);
  const still: Still<T> = held && held.at === at ? holdStill(held.rows, rows, keyOf) : { rows, fresh: 0, gone: NOTHING };
  shown.current = still.rows;
  const hold = (these: T[]) => setHeld({ at, rows: new Map(these.map((row) => [keyOf(row), row])) });
  return {
    ...still,
    /** Shows what waited. */
    show: () => hold(rows),
    props: {
      // A finger is nowhere before it touches, and nothing moves under it while it does.
      onPointerEnter: (e: PointerEvent) => e.pointerType !== "touch" && hold(shown.current),
      onPointerLeave: () => setHeld(undefined),
    },
  };
}
