// How moments, spans, sums and sizes are written. Pure functions: the current time is always given.

const plain = new Intl.NumberFormat("en-US");

// Making a formatter takes a hundred times as long as using it, and a list uses several in each row.
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const dollars = new Map([2, 4, 6].map((digits) => [digits, new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: digits })]));
const decimals = [0, 1, 2].map((digits) => new Intl.NumberFormat("en-US", { maximumFractionDigits: digits }));
const clocks = { utc: clockOf("UTC"), local: clockOf(undefined) };

function clockOf(timeZone: string | undefined) {
  return {
    day: new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" }),
    time: new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit", second: "2-digit" }),
    date: new Intl.DateTimeFormat("en-GB", { timeZone, day: "numeric", month: "short" }),
    year: new Intl.DateTimeFormat("en-GB", { timeZone, year: "numeric" }),
  };
}

/** A whole number with separators. */
export function count(n: number): string {
  return plain.format(n);
}

/** A number in at most four characters or so: 1,234 → 1.2K. */
export function short(n: number): string {
  if (Math.abs(n) < 10_000) return plain.format(Math.round(n * 100) / 100);
  return compact.format(n);
}

/** One word for one, another for all other counts. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Micro-dollars as dollars. Small sums keep the digits that matter: $0.000050. */
export function money(micro: number): string {
  if (micro === 0) return "$0";
  const sum = micro / 1_000_000;
  const size = Math.abs(sum);
  return dollars.get(size >= 1 ? 2 : size >= 0.01 ? 4 : 6)!.format(sum);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size in bytes, in powers of 1024. */
export function bytes(n: number): string {
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${decimals[digits]!.format(value)} ${UNITS[unit]}`;
}

/** A span: 12 ms, 3.4 s, 2 m 05 s, 3 h 20 m, 4 d 2 h. */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const t = Math.max(0, ms);
  if (t < 1000) return `${Math.round(t)} ms`;
  if (t < 10_000) return `${(Math.floor(t / 100) / 10).toFixed(1)} s`;
  if (t < 60_000) return `${Math.floor(t / 1000)} s`;
  const two = (n: number) => String(n).padStart(2, "0");
  const s = Math.floor(t / 1000);
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} m`;
  return `${Math.floor(s / 86_400)} d ${Math.floor(s / 3600) % 24} h`;
}

/** How long ago or in how long, coarsely. */
export function relative(at: number, now: number): string {
  const d = now - at;
  const size = Math.abs(d);
  if (size < 5000) return d >= 0 ? "now" : "in a moment";
  const part =
    size < 60_000
      ? `${Math.floor(size / 1000)} s`
      : size < 3_600_000
        ? `${Math.floor(size / 60_000)} min`
        : size < 86_400_000
          ? `${Math.floor(size / 3_600_000)} h`
          : `${Math.floor(size / 86_400_000)} d`;
  return d >= 0 ? `${part} ago` : `in ${part}`;
}

export type Zone = "local" | "utc";

/** A moment as a clock shows it; the day is named when it is not the day of `now`. */
export function clock(at: number, now: number, zone: Zone): string {
  const { day, time, date, year } = clocks[zone];
  const shown = time.format(at);
  if (day.format(at) === day.format(now)) return shown;
  const other = year.format(at) === year.format(now) ? "" : ` ${year.format(at)}`;
  return `${date.format(at)}${other}, ${shown.slice(0, 5)}`;
}

/** A moment in full, to the millisecond, with its zone. */
export function exact(at: number, zone: Zone): string {
  if (zone === "utc") return new Date(at).toISOString().replace("T", " ").replace("Z", " UTC");
  const date = new Date(at);
  const p = (n: number, w = 2) => String(n).padStart(w, "0");
  const offset = -date.getTimezoneOffset();
  const sign = offset < 0 ? "-" : "+";
  const abs = Math.abs(offset);
  return (
    `${date.getFullYear()}-${p(date.getMonth() + 1)}-${p(date.getDate())} ` +
    `${p(date.getHours())}:${p(date.getMinutes())}:${p(date.getSeconds())}.${p(date.getMilliseconds(), 3)} ` +
    `${sign}${p(Math.floor(abs / 60))}:${p(abs % 60)}`
  );
}

/** A moment as a field for it wants it, in the zone that is shown. */
export function fieldOf(text: string | null, zone: Zone): string {
  const t = text ? Date.parse(text) : NaN;
  return Number.isNaN(t) ? "" : new Date(t - (zone === "utc" ? 0 : new Date(t).getTimezoneOffset() * 60_000)).toISOString().slice(0, 16);
}

/** The moment in such a field. */
export function momentIn(field: string, zone: Zone): string | undefined {
  return field ? new Date(zone === "utc" ? `${field}Z` : field).toISOString() : undefined;
}

/** Milliseconds since 1970 of an RFC 3339 time, or nothing. */
export function at(text: string | null | undefined): number | undefined {
  if (!text) return undefined;
  const n = Date.parse(text);
  return Number.isNaN(n) ? undefined : n;
}

/** A part of a whole as percent. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const p = (part / whole) * 100;
  return `${p > 0 && p < 1 ? "<1" : Math.round(p)}%`;
}

/** The end of a long id, which is where ids differ. */
export function tail(id: string, keep = 8): string {
  return id.length <= keep + 4 ? id : `…${id.slice(-keep)}`;
}
