// The difference of two texts, line by line.

export type Line = { kind: "same" | "add" | "del"; text: string };

const CELLS_MAX = 4_000_000;

/** The shortest way from one text to the other; for very long ones all of one, then all of the other. */
export function diff(before: string, after: string): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const same = (text: string): Line => ({ kind: "same", text });
  return [...a.slice(0, head).map(same), ...middle(x, y), ...a.slice(a.length - tail).map(same)];
}

function middle(x: string[], y: string[]): Line[] {
  const del = (text: string): Line => ({ kind: "del", text });
  const add = (text: string): Line => ({ kind: "add", text });
  if (x.length * y.length > CELLS_MAX) return [...x.map(del), ...y.map(add)];
  const w = y.length + 1;
  const t = new Uint32Array((x.length + 1) * w);
  for (let i = x.length - 1; i >= 0; i -= 1)
    for (let j = y.length - 1; j >= 0; j -= 1)
      t[i * w + j] = x[i] === y[j] ? t[(i + 1) * w + j + 1]! + 1 : Math.max(t[(i + 1) * w + j]!, t[i * w + j + 1]!);
  const out: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < x.length && j < y.length) {
    if (x[i] === y[j]) { out.push({ kind: "same", text: x[i]! }); i += 1; j += 1; }
    else if (t[(i + 1) * w + j]! >= t[i * w + j + 1]!) { out.push(del(x[i]!)); i += 1; }
    else { out.push(add(y[j]!)); j += 1; }
  }
  while (i < x.length) { out.push(del(x[i]!)); i += 1; }
  while (j < y.length) { out.push(add(y[j]!)); j += 1; }
  return out;
}
