// Text that others wrote. Characters that would change how neighbours look, or that nobody sees, become escapes.

export type Piece = { text: string; escaped: boolean };

// C0 and C1 controls except tab and line feed, soft hyphen, Arabic letter mark, Hangul and Mongolian fillers, zero-width
// characters, directional marks, overrides and isolates, line and paragraph separators, word joiners, interlinear
// marks, byte order mark, tags and lone surrogates.
const STRANGE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

/** How a strange character is written. */
export function escapeOf(char: string): string {
  const point = char.codePointAt(0) ?? 0;
  if (point === 0x0d) return "\\r";
  if (point === 0x1b) return "\\e";
  return point < 0x100 ? `\\x${point.toString(16).padStart(2, "0")}` : `\\u{${point.toString(16)}}`;
}

/** Splits text into what may be shown as it is and what is shown as an escape. */
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let last = 0;
  STRANGE.lastIndex = 0;
  for (let m = STRANGE.exec(text); m; m = STRANGE.exec(text)) {
    // A variation selector after an emoji or symbol is how that symbol is meant to look.
    if (m[0] === "\ufe0f" && m.index > 0 && /\p{Emoji}$/u.test(text.slice(Math.max(0, m.index - 2), m.index))) continue;
    // The joiner between two emoji makes one of them.
    if (m[0] === "\u200d" && /\p{Extended_Pictographic}\ufe0f?$/u.test(text.slice(Math.max(0, m.index - 3), m.index)) && /^\p{Extended_Pictographic}/u.test(text.slice(m.index + 1, m.index + 3))) continue;
    if (m.index > last) out.push({ text: text.slice(last, m.index), escaped: false });
    out.push({ text: escapeOf(m[0]), escaped: true });
    last = m.index + m[0].length;
  }
  if (last < text.length) out.push({ text: text.slice(last), escaped: false });
  return out;
}

/** The same as one text, for attributes and titles. */
export function safe(text: string): string {
  return text.replace(STRANGE, escapeOf);
}

/** At most `max` characters, never half of a pair. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = /[\ud800-\udbff]/.test(text[max - 1] ?? "") ? max - 1 : max;
  return text.slice(0, end);
}
