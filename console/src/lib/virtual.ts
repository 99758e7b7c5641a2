// Which rows of a long list are in the document.

export type Window = { first: number; end: number; before: number; after: number };

/** Rows to draw for a view of `height` at `top`, with some more on both sides; and the space the others take. */
export function windowOf(total: number, rowHeight: number, top: number, height: number, more = 12): Window {
  if (total <= 0 || rowHeight <= 0) return { first: 0, end: 0, before: 0, after: 0 };
  const seen = Math.max(0, Math.min(Math.floor(top / rowHeight), total - 1));
  const first = Math.max(0, seen - more);
  const end = Math.min(total, Math.ceil((Math.max(0, top) + Math.max(0, height)) / rowHeight) + more);
  const last = Math.max(end, Math.min(total, first + 1));
  return { first, end: last, before: first * rowHeight, after: (total - last) * rowHeight };
}

/** Where to scroll so that a row is in view; the place where one is if it is already. */
export function scrollFor(index: number, rowHeight: number, top: number, height: number): number {
  const from = index * rowHeight;
  if (from < top) return from;
  if (from + rowHeight > top + height) return from + rowHeight - height;
  return top;
}
