// What a run wrote, as lines. Lines of several channels stand in the order they began; a line that is still open grows.
import { Ansi, type Style } from "./ansi";

export type Line = { n: number; channel: string; at: string; raw: string; start: Style };

export const FOLD = 4096;

export class OutputLog {
  readonly lines: Line[] = [];
  readonly channels = new Map<string, number>();
  bytes = 0;
  private open = new Map<string, { line: Line | undefined; ansi: Ansi }>();

  push(channel: string, at: string, text: string): void {
    this.bytes += text.length;
    let state = this.open.get(channel);
    if (!state) this.open.set(channel, (state = { line: undefined, ansi: new Ansi() }));
    let from = 0;
    while (from < text.length) {
      const end = text.indexOf("\n", from);
      const part = text.slice(from, end < 0 ? text.length : end);
      if (!state.line) {
        state.line = { n: this.lines.length + 1, channel, at, raw: "", start: state.ansi.style };
        this.lines.push(state.line);
        this.channels.set(channel, (this.channels.get(channel) ?? 0) + 1);
      }
      state.line.raw += part;
      if (part.includes("\u001b") || state.ansi.style !== state.line.start) state.ansi.feed(part);
      if (end < 0) break;
      state.line = undefined;
      from = end + 1;
    }
  }

  /** A line that is whole at once, such as a log entry. */
  entry(channel: string, at: string, text: string): void {
    this.push(channel, at, text.endsWith("\n") ? text : `${text}\n`);
  }

  /** All of it as text, for copying and saving. */
  text(channel?: string): string {
    return this.lines
      .filter((l) => !channel || l.channel === channel)
      .map((l) => l.raw)
      .join("\n");
  }
}
