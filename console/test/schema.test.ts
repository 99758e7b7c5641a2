import { describe, expect, test } from "vitest";
import { fromJs, write } from "../src/lib/json";
import { check, fieldOf, startOf, valueOf, type Field } from "../src/lib/schema";

type Case = { name: string; schema: unknown; plan: string; good?: unknown[]; bad?: unknown[] };

// Thirty schemas: what form each gets, what fits it, what does not.
const CASES: Case[] = [
  { name: "text", schema: { type: "string" }, plan: "text", good: ["", "x"], bad: [1, true] },
  { name: "text with lengths", schema: { type: "string", minLength: 2, maxLength: 3 }, plan: "text", good: ["ab", "👍👍"], bad: ["a", "abcd"] },
  { name: "text with a pattern", schema: { type: "string", pattern: "^[a-z]+$" }, plan: "text", good: ["abc"], bad: ["A1"] },
  { name: "a pattern of another dialect", schema: { type: "string", pattern: "(?<!x" }, plan: "text", good: ["anything"] },
  { name: "date", schema: { type: "string", format: "date" }, plan: "text", good: ["2026-11-18"] },
  { name: "moment", schema: { type: "string", format: "date-time" }, plan: "text", good: ["2026-11-18T00:00:00Z"] },
  { name: "number", schema: { type: "number" }, plan: "number", good: [1, 1.5], bad: ["1"] },
  { name: "whole number", schema: { type: "integer" }, plan: "number", good: [1, -4], bad: [1.5] },
  { name: "range", schema: { type: "integer", minimum: 1, maximum: 10 }, plan: "number", good: [1, 10], bad: [0, 11] },
  { name: "open range", schema: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 }, plan: "number", good: [0.5], bad: [0, 1] },
  { name: "multiple", schema: { type: "number", multipleOf: 0.1 }, plan: "number", good: [0.3], bad: [0.35] },
  { name: "boolean", schema: { type: "boolean" }, plan: "boolean", good: [true, false], bad: ["yes"] },
  { name: "enum of text", schema: { enum: ["a", "b"] }, plan: "choice", good: ["a"], bad: ["c"] },
  { name: "enum of mixed", schema: { enum: [1, "1", true] }, plan: "choice", good: [1, "1", true], bad: [2] },
  { name: "titled choices", schema: { oneOf: [{ const: 1, title: "One" }, { const: 2, title: "Two" }] }, plan: "choice", good: [1], bad: [3] },
  { name: "const", schema: { const: 5 }, plan: "fixed" },
  { name: "nullable by type", schema: { type: ["string", "null"] }, plan: "text", good: ["x", null], bad: [1] },
  { name: "nullable by anyOf", schema: { anyOf: [{ type: "integer" }, { type: "null" }] }, plan: "number", good: [1, null], bad: ["x"] },
  { name: "list", schema: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 2 }, plan: "list", good: [["a"]], bad: [[], ["a", "b", "c"], [1]] },
  { name: "several of some", schema: { type: "array", uniqueItems: true, items: { enum: ["a", "b"] } }, plan: "choices", good: [["a"]] },
  { name: "tuple", schema: { type: "array", prefixItems: [{ type: "string" }] }, plan: "json", good: [["x"]] },
  { name: "object", schema: { type: "object", required: ["a"], properties: { a: { type: "string" }, b: { type: "integer" } } }, plan: "object", good: [{ a: "x" }, { a: "x", b: 1 }], bad: [{}, { a: 1 }, { a: "x", b: 1.5 }] },
  { name: "object without a type", schema: { properties: { a: { type: "string" } } }, plan: "object", good: [{ a: "x" }] },
  { name: "nested object", schema: { type: "object", required: ["in"], properties: { in: { type: "object", required: ["x"], properties: { x: { type: "number" } } } } }, plan: "object", good: [{ in: { x: 1 } }], bad: [{ in: {} }] },
  { name: "any object", schema: { type: "object" }, plan: "json", good: [{ a: 1 }] },
  { name: "anything", schema: {}, plan: "json", good: [1, "x", null] },
  { name: "true", schema: true, plan: "json", good: [1] },
  { name: "reference", schema: { $ref: "#/$defs/n", $defs: { n: { type: "integer", maximum: 3 } } }, plan: "number", good: [3], bad: [4] },
  { name: "reference to itself", schema: { $ref: "#/$defs/t", $defs: { t: { type: "object", properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/t" } } } } } }, plan: "object", good: [{ name: "x", children: [{ name: "y" }] }] },
  { name: "either of two kinds", schema: { oneOf: [{ type: "string" }, { type: "object" }] }, plan: "json", good: ["x", {}] },
  { name: "file", schema: { type: "string", "x-wharf-file": true }, plan: "file", good: ["/a.txt"], bad: [1] },
  { name: "all of one", schema: { allOf: [{ type: "boolean" }] }, plan: "boolean", good: [true] },
  { name: "foreign reference", schema: { $ref: "https://example.com/schema.json" }, plan: "json", good: [1] },
];

describe("c042_forms", () => {
  test("there are at least thirty", () => expect(CASES.length).toBeGreaterThanOrEqual(30));
  for (const c of CASES)
    test(c.name, () => {
      const field = fieldOf(c.schema);
      expect(field.plan.kind).toBe(c.plan);
      for (const good of c.good ?? []) {
        const value = startOf(field, fromJs(good));
        expect(check(field, value), JSON.stringify(good)).toEqual([]);
        expect(write(valueOf(value) ?? null, 0)).toBe(write(fromJs(good), 0));
      }
      for (const bad of c.bad ?? []) expect(check(field, startOf(field, fromJs(bad))).length, JSON.stringify(bad)).toBeGreaterThan(0);
    });
  test("faults name their place", () => {
    const field = fieldOf({ type: "object", required: ["a/b"], properties: { "a/b": { type: "array", items: { type: "integer" } } } });
    expect(check(field, startOf(field, fromJs({ "a/b": [1, "x"] })))).toEqual([{ path: "/a~1b/1", message: "This must be a number." }]);
  });
  test("defaults are filled in, what is optional is left out", () => {
    const field = fieldOf({ type: "object", properties: { a: { type: "integer", default: 5 }, b: { type: "string" } } });
    expect(write(valueOf(startOf(field)) ?? null, 0)).toBe('{"a":5}');
  });
  test("c040_a_schema_that_calls_itself_many_times_or_has_very_many_fields_is_bounded", () => {
    const letters = [..."abcdefghijklmnop"];
    const bush = { $ref: "#/$defs/t", $defs: { t: { type: "object", required: letters, properties: Object.fromEntries(letters.map((l) => [l, { $ref: "#/$defs/t" }])) } } };
    const count = (f: Field): number => 1 + (f.plan.kind === "object" ? f.plan.fields.reduce((n, x) => n + count(x), 0) : f.plan.kind === "list" ? count(f.plan.item) : 0);
    const field = fieldOf(bush);
    expect(field.plan.kind).toBe("object");
    expect(count(field)).toBeLessThan(400);
    expect(JSON.stringify(valueOf(startOf(field)) ?? null).length).toBeLessThan(100_000);
    const wide = fieldOf({ type: "object", properties: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, { type: "string" }])) });
    expect(wide.plan.kind).toBe("json");
    expect(fieldOf({ $ref: "#", type: "object" }).plan.kind).toBe("json");
  });
  test.each([5, "x", [], null, { type: 7 }, { type: ["x", 3] }, { properties: "x", type: "object" }, { type: "object", required: 3, properties: { a: 1 } }, { enum: "x" }, { oneOf: [1, "x"] }, { $ref: "#/%zz" }, { $ref: 3 }, { items: 9, type: "array" }, { type: "string", pattern: 3, minLength: "x" }])("c040_a_wrong_schema_is_a_field_all_the_same: %j", (schema) => {
    const field = fieldOf(schema);
    expect(() => check(field, startOf(field))).not.toThrow();
    expect(() => valueOf(startOf(field, fromJs({ a: [1] })))).not.toThrow();
  });
  test("required fields come first", () => {
    const field = fieldOf({ type: "object", required: ["z"], properties: { a: { type: "string" }, z: { type: "string" } } });
    expect(field.plan.kind === "object" && field.plan.fields.map((f) => f.name)).toEqual(["z", "a"]);
  });
});
