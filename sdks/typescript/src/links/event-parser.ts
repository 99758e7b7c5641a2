/** Server-sent events, read from pieces of text that may be cut anywhere. */

/** One event. */
export interface StreamEvent {
  data: string;
  /** The last id that was given, by this event or an earlier one. */
  id: string;
}

const EVENT_CHARACTERS_MAX = 16 * 1024 * 1024;

/** Reads events. Lines may end in LF, CR or both. */
export class EventParser {
  #line = "";
  #data: string[] = [];
  #size = 0;
  #id = "";
  #afterReturn = false;
  #first = true;

  /** Takes a piece of text, and gives the events that are complete now. */
  push(piece: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    if (this.#first && piece !== "") {
      this.#first = false;
      if (piece.startsWith("\uFEFF")) piece = piece.slice(1);
    }
    let start = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const letter = piece.charCodeAt(at);
      const isFeed = letter === 10;
      if (!isFeed && letter !== 13) {
        this.#afterReturn = false;
        continue;
      }
      if (isFeed && this.#afterReturn) {
        // The second half of a line end whose first half ended the line.
        this.#afterReturn = false;
        start = at + 1;
        continue;
      }
      this.#afterReturn = !isFeed;
      const event = this.#take(this.#line + piece.slice(start, at));
      if (event) events.push(event);
      this.#line = "";
      start = at + 1;
    }
    this.#line += piece.slice(start);
    if (this.#line.length + this.#size > EVENT_CHARACTERS_MAX) throw new RangeError("An event is too large.");
    return events;
  }

  #take(line: string): StreamEvent | undefined {
    if (line === "") {
      if (this.#data.length === 0) return undefined;
      const event = { data: this.#data.join("\n"), id: this.#id };
      this.#data = [];
      this.#size = 0;
      return event;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? "" : line.slice(colon + 1);
    const value = raw.startsWith(" ") ? raw.slice(1) : raw;
    if (field === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (field === "id" && !value.includes("\0")) {
      this.#id = value;
    }
    return undefined;
  }
}
