import { describe, expect, test } from "vitest";
import { asCurl, asWharf } from "../src/lib/commands";
import { fromJs, parse, toJs, write } from "../src/lib/json";
import { EventParser } from "../src/api/stream";

describe("c012_numbers_as_written", () => {
  test.each(["12345678901234567890", "1.0", "1e400", "-0", "0.1"])("%s", (n) => expect(write(parse(`{"a":${n}}`), 0)).toBe(`{"a":${n}}`));
  test("order and odd keys stay", () => expect(write(parse('{"2":1,"1":2,"__proto__":3}'), 0)).toBe('{"2":1,"1":2,"__proto__":3}'));
  test.each(['{"a":1,"a":2}', "[1,]", "{", "nul", '"\n"', "1 2", "01", "[".repeat(600)])("refuses %j", (text) => expect(() => parse(text)).toThrow(SyntaxError));
  test("both ways", () => expect(toJs(fromJs({ a: [1, "x", null, true] }))).toEqual({ a: [1, "x", null, true] }));
});

describe("c012_commands", () => {
  test("pairs where they fit, JSON where not", () => {
    expect(asWharf({ tool: "wharf/count", world: "default", inputs: parse('{"n":3}') })).toBe("wharf run wharf/count n=3");
    expect(asWharf({ tool: "wharf/echo", world: "lab", inputs: parse('{"a":{"b":"it\'s"}}') })).toBe(`wharf run wharf/echo --input '{"a":{"b":"it'\\''s"}}' --world lab`);
  });
  test("no token in a command", () => expect(asCurl("http://127.0.0.1:1", { tool: "a/b", world: "w", inputs: parse("{}") })).toContain("$WHARF_TOKEN"));
});

describe("c005_events", () => {
  test("torn apart and put together", () => {
    const p = new EventParser();
    expect(p.push("id: 1\nevent: te")).toEqual([]);
    expect(p.push('xt\ndata: {"a":1}\n\n: comment\n\nid: 2\n')).toEqual([{ id: "1", event: "text", data: '{"a":1}' }]);
    expect(p.push("data: x\n\n")).toEqual([{ id: "2", event: "message", data: "x" }]);
  });
});
