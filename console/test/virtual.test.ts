import { describe, expect, test } from "vitest";
import { diff } from "../src/lib/diff";
import { scrollFor, windowOf } from "../src/lib/virtual";

describe("c042_virtual_list", () => {
  test("nothing", () => expect(windowOf(0, 36, 0, 500)).toEqual({ first: 0, end: 0, before: 0, after: 0 }));
  test("the space of all parts is the space of all rows", () => {
    for (const total of [1, 10, 1000, 100_000])
      for (const top of [0, 17, 3600, 1_000_000, 10 ** 9]) {
        const w = windowOf(total, 36, top, 700);
        expect(w.before + (w.end - w.first) * 36 + w.after).toBe(total * 36);
        expect(w.end).toBeGreaterThan(w.first);
        expect(w.end - w.first).toBeLessThan(60);
      }
  });
  test("what is in view is drawn", () => {
    const w = windowOf(1000, 36, 360, 360, 0);
    expect([w.first, w.end]).toEqual([10, 20]);
  });
  test("a row is brought into view and no further", () => {
    expect(scrollFor(0, 36, 100, 360)).toBe(0);
    expect(scrollFor(50, 36, 0, 360)).toBe(51 * 36 - 360);
    expect(scrollFor(5, 36, 100, 360)).toBe(100);
  });
});

describe("c013_difference", () => {
  test("shortest way", () => expect(diff("a\nb\nc", "a\nc\nd").map((l) => `${l.kind[0]}${l.text}`)).toEqual(["sa", "db", "sc", "ad"]));
  test("nothing differs", () => expect(diff("a\nb", "a\nb").every((l) => l.kind === "same")).toBe(true));
});
