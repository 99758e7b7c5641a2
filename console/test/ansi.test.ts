import { describe, expect, test } from "vitest";
import { Ansi, classOf } from "../src/lib/ansi";
import { OutputLog } from "../src/lib/output";

const read = (...parts: string[]) => {
  const a = new Ansi();
  return parts.flatMap((p) => a.feed(p)).map((s) => [s.text, classOf(s.style)]);
};

describe("c042_ansi", () => {
  test("colours and styles", () => expect(read("\u001b[31mred\u001b[0m \u001b[1;4;92mx\u001b[22mx")).toEqual([["red", "f1"], [" ", ""], ["x", "f10 ab au"], ["x", "f10 au"]]));
  test("256 and true colours become one of sixteen", () => expect(read("\u001b[38;5;196ma\u001b[48;2;0;0;200mb")).toEqual([["a", "f9"], ["b", "f9 b12"]]));
  test("an escape torn apart is put together", () => expect(read("a\u001b[3", "1mb")).toEqual([["a", ""], ["b", "f1"]]));
  test("what moves the cursor, sets titles or makes links is dropped", () => expect(read("a\u001b[2J\u001b[10;10H\u001b]0;title\u0007\u001b]8;;http://x\u001b\\b\u001bc").map((x) => x[0]).join("")).toBe("ab"));
  test("inverse swaps, default stays readable", () => expect(read("\u001b[7mx")).toEqual([["x", "fx bx"]]));
  test("an endless escape is not kept for ever", () => expect(read(`\u001b]${"x".repeat(200)}`).length).toBeGreaterThan(0));
});

describe("c012_output", () => {
  test("lines of two channels stand in the order they began", () => {
    const log = new OutputLog();
    log.push("stdout", "t", "a");
    log.push("stderr", "t", "x\n");
    log.push("stdout", "t", "b\nc");
    expect(log.lines.map((l) => [l.n, l.channel, l.raw])).toEqual([[1, "stdout", "ab"], [2, "stderr", "x"], [3, "stdout", "c"]]);
  });
  test("a colour goes on in the next line", () => {
    const log = new OutputLog();
    log.push("stdout", "t", "\u001b[31mred\nstill\u001b[0m\nplain\n");
    expect(log.lines.map((l) => classOf(l.start))).toEqual(["", "f1", ""]);
  });
  test("100,000 pieces and a line of 8 MiB", () => {
    const log = new OutputLog();
    for (let i = 0; i < 100_000; i += 1) log.push("stdout", "t", `${i}\n`);
    log.push("stdout", "t", "x".repeat(8 * 1024 * 1024));
    expect(log.lines.length).toBe(100_001);
    expect(log.lines.at(-1)?.raw.length).toBe(8 * 1024 * 1024);
  });
});
