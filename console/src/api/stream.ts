// Server-sent events by fetch, because `EventSource` sends no headers. A stream that breaks is taken up again after the
// last number that arrived, so that nothing is lost and nothing comes twice.
import { address, ApiError, request } from "./client";

export type Message = { id: string; event: string; data: string };

/** Splits what arrives into messages; keeps what is unfinished. */
export class EventParser {
  private rest = "";
  push(text: string): Message[] {
    const all = this.rest + text;
    const end = all.lastIndexOf("\n\n");
    if (end < 0) {
      this.rest = all;
      return [];
    }
    this.rest = all.slice(end + 2);
    const out: Message[] = [];
    for (const block of all.slice(0, end).split("\n\n")) {
      const message: Message = { id: "", event: "message", data: "" };
      let has = false;
      for (const line of block.split("\n")) {
        if (line.startsWith("data:")) {
          message.data += (has ? "\n" : "") + line.slice(line[5] === " " ? 6 : 5);
          has = true;
        } else if (line.startsWith("id:")) message.id = line.slice(3).trim();
        else if (line.startsWith("event:")) message.event = line.slice(6).trim();
      }
      if (has) out.push(message);
    }
    return out;
  }
}

export type Follow = {
  path: string;
  params: Record<string, string | number | undefined>;
  /** The number to go on after, or nothing for streams without numbers. */
  after?: number;
  signal: AbortSignal;
  batch(messages: Message[]): void;
  state?(state: "open" | "away"): void;
  /** Whether the stream is over for good after these. */
  over(message: Message): boolean;
};

/** Follows a stream to its end; comes back after breaks. */
export async function follow(f: Follow): Promise<void> {
  let after = f.after;
  let pause = 300;
  while (!f.signal.aborted) {
    try {
      const answer = await request(address(f.path, { ...f.params, ...(after !== undefined ? { after: after || undefined } : {}) }), { signal: f.signal });
      if (answer.status === 204 || !answer.body) return;
      f.state?.("open");
      const parser = new EventParser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const messages = parser.push(value);
        if (messages.length === 0) continue;
        pause = 300;
        if (after !== undefined) for (const m of messages) if (m.id) after = Number(m.id);
        f.batch(messages);
        if (messages.some(f.over)) return;
      }
      if (after === undefined) return;
    } catch (error) {
      if (f.signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    f.state?.("away");
    await new Promise((go) => setTimeout(go, pause));
    pause = Math.min(pause * 2, 5000);
  }
}
