import assert from "node:assert/strict";
import { test } from "node:test";

import { checkJson } from "../../src/json-schema.js";

function check(schema: Record<string, unknown>, good: unknown[], bad: [unknown, string][]): void {
  for (const value of good) assert.deepEqual(checkJson(schema, value).issues, [], JSON.stringify(value));
  for (const [value, path] of bad) {
    const { issues } = checkJson(schema, value);
    assert.ok(issues.length > 0, `${JSON.stringify(value)} fits ${JSON.stringify(schema)}`);
    assert.equal(`/${issues[0]?.path.join("/")}`, path);
  }
}

test("types", () => {
  check({ type: "integer" }, [1, -2, 3.0], [[1.5, "/"], ["1", "/"], [null, "/"]]);
  check({ type: "number" }, [1.5], [[NaN, "/"], [Infinity, "/"]]);
  check({ type: ["string", "null"] }, ["x", null], [[1, "/"]]);
  check({ type: "object" }, [{}], [[[], "/"], [null, "/"]]);
});

test("numbers_and_texts", () => {
  check({ minimum: 1, exclusiveMaximum: 3, multipleOf: 0.5 }, [1, 2.5, "not a number"], [[0.5, "/"], [3, "/"], [1.2, "/"]]);
  check({ minLength: 2, maxLength: 3, pattern: "^a" }, ["ab", "a😀"], [["a", "/"], ["abcd", "/"], ["ba", "/"]]);
});

test("choices", () => {
  check({ enum: ["a", { b: [1] }] }, ["a", { b: [1] }], [["b", "/"], [{ b: [2] }, "/"]]);
  check({ const: { a: 1, b: 2 } }, [{ b: 2, a: 1 }], [[{ a: 1 }, "/"]]);
  check({ anyOf: [{ type: "string" }, { minimum: 5 }] }, ["x", 5], [[4, "/"]]);
  check({ oneOf: [{ minimum: 1 }, { maximum: 3 }] }, [0, 9], [[2, "/"]]);
  check({ allOf: [{ minimum: 1 }, { maximum: 3 }] }, [2], [[0, "/"]]);
  check({ not: { type: "string" } }, [1], [["x", "/"]]);
  check({ if: { type: "string" }, then: { minLength: 2 }, else: { minimum: 2 } }, ["ab", 2], [["a", "/"], [1, "/"]]);
});

test("objects", () => {
  const schema = {
    type: "object",
    required: ["a"],
    properties: { a: { type: "string" } },
    patternProperties: { "^x": { type: "number" } },
    additionalProperties: false,
    maxProperties: 2,
  };
  check(schema, [{ a: "1" }, { a: "1", x1: 2 }], [[{}, "/a"], [{ a: 1 }, "/a"], [{ a: "1", x: "2" }, "/x"], [{ a: "1", b: 1 }, "/b"]]);
  check({ properties: { "__proto__": { type: "string" } } }, [JSON.parse('{"__proto__": "x"}')], []);
});

test("lists", () => {
  check({ items: { type: "number" }, minItems: 1, maxItems: 2, uniqueItems: true }, [[1], [1, 2]], [[[], "/"], [["x"], "/0"], [[1, 1], "/"], [[1, 2, 3], "/"]]);
  check({ prefixItems: [{ type: "string" }], items: false }, [["x"]], [[["x", 1], "/1"], [[1], "/0"]]);
});

test("references_lead_into_the_schema_and_loops_end", () => {
  const tree = { $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } }, $ref: "#/$defs/node" };
  check(tree, [{ next: { next: {} } }], [[{ next: { next: 1 } }, "/next/next"]]);
  assert.ok(checkJson({ $ref: "#" }, 1).issues.length > 0);
  check({ $ref: "https://elsewhere.example/schema" }, [1, "x"], []);
});

test("defaults_are_filled_in_and_nothing_is_changed_in_place", () => {
  const given = { list: [{}] };
  const schema = { properties: { n: { default: 3 }, list: { items: { properties: { deep: { default: [] } } } } } };
  assert.deepEqual(checkJson(schema, given).value, { list: [{ deep: [] }], n: 3 });
  assert.deepEqual(given, { list: [{}] });
});
