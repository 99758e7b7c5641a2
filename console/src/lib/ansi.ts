// Colours and styles of terminal output. Nothing else of what escapes can do is done: the cursor does not move, no title
// is set, no link is made. What is not a colour or a style is dropped.

export type Style = { fg?: number; bg?: number; bold?: boolean; dim?: boolean; italic?: boolean; underline?: boolean; strike?: boolean; inverse?: boolean };
export type Span = { text: string; style: Style };

const PLAIN: Style = {};

/** Reads text piece by piece; style and an unfinished escape are carried over to the next piece. */
export class Ansi {
  private rest = "";

  constructor(public style: Style = PLAIN) {}

  /** The spans of a piece of text. */
  feed(piece: string): Span[] {
    let text = this.rest + piece;
    this.rest = "";
    // An escape may be torn apart by the end of the piece; it is kept for later, within reason.
    const open = text.lastIndexOf("\u001b");
    if (open >= 0 && text.length - open < 64 && isOpen(text.slice(open))) {
      this.rest = text.slice(open);
      text = text.slice(0, open);
    }
    const out: Span[] = [];
    let last = 0;
    ESCAPE.lastIndex = 0;
    for (let m = ESCAPE.exec(text); m; m = ESCAPE.exec(text)) {
      if (m.index > last) out.push({ text: text.slice(last, m.index), style: this.style });
      last = m.index + m[0].length;
      if (m[1] !== undefined) this.style = apply(this.style, m[1]);
    }
    if (last < text.length) out.push({ text: text.slice(last), style: this.style });
    return out;
  }
}

// SGR; any other CSI; OSC, DCS, PM, APC up to their end; two-character escapes.
const ESCAPE = /\u001b\[([0-9;:]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-Z\\-~]/g;

function isOpen(tail: string): boolean {
  return tail === "\u001b" || /^\u001b\[[0-?]*[ -/]*$/.test(tail) || /^\u001b[\]PX^_][^\u0007\u001b]*$/.test(tail);
}

function apply(style: Style, codes: string): Style {
  const list = codes.split(/[;:]/).map((c) => (c === "" ? 0 : Number(c)));
  let next: Style = { ...style };
  for (let i = 0; i < list.length; i += 1) {
    const code = list[i] ?? 0;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) { delete next.bold; delete next.dim; }
    else if (code === 23) delete next.italic;
    else if (code === 24) delete next.underline;
    else if (code === 27) delete next.inverse;
    else if (code === 29) delete next.strike;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code === 39) delete next.fg;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 49) delete next.bg;
    else if (code === 38 || code === 48) {
      const kind = list[i + 1];
      let colour: number | undefined;
      if (kind === 5) {
        colour = from256(list[i + 2] ?? 0);
        i += 2;
      } else if (kind === 2) {
        colour = nearest(list[i + 2] ?? 0, list[i + 3] ?? 0, list[i + 4] ?? 0);
        i += 4;
      } else break;
      if (code === 38) next.fg = colour;
      else next.bg = colour;
    }
  }
  return next;
}

// All colours become one of sixteen, which the page's own colours are chosen for: they can be read on light and dark.
function from256(n: number): number {
  if (n < 16) return Math.max(0, n);
  if (n >= 232) return n < 238 ? 0 : n < 244 ? 8 : n < 250 ? 7 : 15;
  const c = n - 16;
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40);
  return nearest(level(Math.floor(c / 36)), level(Math.floor(c / 6) % 6), level(c % 6));
}

function nearest(r: number, g: number, b: number): number {
  const top = Math.max(r, g, b);
  if (top < 50) return 0;
  if (top - Math.min(r, g, b) < 30) return top < 120 ? 8 : top < 200 ? 7 : 15;
  const half = top * 0.6;
  return (r > half ? 1 : 0) + (g > half ? 2 : 0) + (b > half ? 4 : 0) + (top > 190 ? 8 : 0);
}

/** The class names of a style. */
export function classOf(s: Style): string {
  if (s === PLAIN) return "";
  const out: string[] = [];
  const fg = s.inverse ? (s.bg ?? -1) : s.fg;
  const bg = s.inverse ? (s.fg ?? -1) : s.bg;
  if (fg !== undefined) out.push(fg < 0 ? "fx" : `f${fg}`);
  if (bg !== undefined) out.push(bg < 0 ? "bx" : `b${bg}`);
  if (s.bold) out.push("ab");
  if (s.dim) out.push("ad");
  if (s.italic) out.push("ai");
  if (s.underline) out.push("au");
  if (s.strike) out.push("as");
  return out.join(" ");
}
