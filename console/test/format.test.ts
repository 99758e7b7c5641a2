import { describe, expect, test } from "vitest";
import * as f from "../src/lib/format";
import { cut, pieces, safe } from "../src/lib/text";

describe("c042_formatting", () => {
  const NOW = Date.parse("2026-11-18T12:00:00Z");
  test.each([[0, "$0"], [50, "$0.00005"], [1_234_567, "$1.23"], [12_345, "$0.0123"], [10_000, "$0.01"], [2_500_000_000, "$2,500.00"], [-1200, "-$0.0012"]])("money %i", (n, text) => expect(f.money(n)).toBe(text));
  test.each([[0, "0 B"], [1023, "1,023 B"], [1024, "1 KiB"], [1536, "1.5 KiB"], [5 * 1024 ** 3, "5 GiB"], [123 * 1024 ** 2, "123 MiB"]])("bytes %i", (n, text) => expect(f.bytes(n)).toBe(text));
  test.each([[0, "0 ms"], [999, "999 ms"], [1500, "1.5 s"], [12_900, "12 s"], [65_000, "1 m 05 s"], [3_700_000, "1 h 01 m"], [90_000_000, "1 d 1 h"], [-5, "0 ms"], [Number.NaN, "–"]])("span %d", (n, text) => expect(f.span(n)).toBe(text));
  test("relative", () => {
    expect(f.relative(NOW - 1000, NOW)).toBe("now");
    expect(f.relative(NOW - 90_000, NOW)).toBe("1 min ago");
    expect(f.relative(NOW + 7_300_000, NOW)).toBe("in 2 h");
  });
  test("clock names the day only when it is another", () => {
    expect(f.clock(NOW - 1000, NOW, "utc")).toBe("11:59:59");
    expect(f.clock(NOW - 86_400_000, NOW, "utc")).toBe("17 Nov, 12:00");
  });
  test("exact time in UTC has milliseconds", () => expect(f.exact(NOW + 5, "utc")).toBe("2026-11-18 12:00:00.005 UTC"));
  test("at takes RFC 3339 and nothing else", () => {
    expect(f.at("2026-11-18T12:00:00Z")).toBe(NOW);
    expect(f.at("never")).toBeUndefined();
    expect(f.at(null)).toBeUndefined();
  });
  test("plural, percent, tail", () => {
    expect(f.plural(1, "run")).toBe("1 run");
    expect(f.plural(12_000, "run")).toBe("12,000 runs");
    expect(f.percent(1, 300)).toBe("<1%");
    expect(f.percent(1, 0)).toBe("–");
    expect(f.tail("0123456789abcdef")).toBe("…89abcdef");
  });
});

describe("c004_foreign_text", () => {
  test.each([["\u202e", "\\u{202e}"], ["\u200b", "\\u{200b}"], ["\u0000", "\\x00"], ["\u001b", "\\e"], ["\r", "\\r"], ["\u2066", "\\u{2066}"], ["\ufeff", "\\u{feff}"], ["\u{e0041}", "\\u{e0041}"], ["\ud800", "\\u{d800}"], ["\u0085", "\\x85"]])("escapes %j", (char, shown) => {
    expect(pieces(`a${char}b`)).toEqual([{ text: "a", escaped: false }, { text: shown, escaped: true }, { text: "b", escaped: false }]);
  });
  test("leaves what people write alone", () => {
    for (const text of ["Grüße", "日本語", "שלום", "tab\tand\nline", "👩‍👩‍👧", "❤️"]) expect(safe(text) === text || pieces(text).every((p) => !p.escaped)).toBe(true);
  });
  test("cuts no pair in half", () => expect(cut("a👍", 2)).toBe("a"));
});
