import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonSchema, memoryPair, scope, serve, tool } from "wharf-sdk";
import { z } from "zod";
import { fails, Gate, stopped, timed } from "../support/waiting.js";

const Add = tool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number(), b: z.number().default(2) }),
  output: z.number(),
  run: ({ a, b }) => a + b,
});

const Locate = tool({
  name: "get-location",
  description: "Says where somebody is.",
  input: z.object({ accuracy: z.enum(["high", "low"]) }),
  output: z.object({ lat: z.number(), lng: z.number() }),
  progress: z.object({ status: z.string() }),
});

test("k001_json_schema_is_taken_from_the_schema_of_a_definition", () => {
  assert.deepEqual(Add.schemas.input, {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number", default: 2 } },
    required: ["a"],
  });
  assert.equal(Add.schemas.output["type"], "number");
  assert.equal(Add.schemas.progress, undefined);
  assert.equal(Locate.schemas.progress?.["type"], "object");
});

test("k001_json_schema_may_be_given_when_a_library_has_none", () => {
  const bare = { "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value }) } };
  const silent = tool({ name: "silent", description: "", input: bare, output: bare });
  assert.deepEqual(silent.schemas, { input: {}, output: {} });
  const told = tool({ name: "told", description: "", input: bare, output: bare, schemas: { input: { type: "string" } } });
  assert.deepEqual(told.schemas, { input: { type: "string" }, output: {} });
});

test("k001_a_schema_that_cannot_be_converted_allows_everything", () => {
  const dated = tool({ name: "dated", description: "", input: z.object({ at: z.date() }), output: z.null() });
  assert.deepEqual(dated.schemas.input, {});
});

test("k002_the_implementation_of_a_definition_is_called", async () => {
  assert.equal(await scope().call(Add, { a: 1 }), 3);
});

test("k002_an_implementation_may_be_given_to_a_scope_or_to_a_definition", async () => {
  const root = scope().provide(Locate, () => ({ lat: 1, lng: 2 }));
  assert.deepEqual(await root.call(Locate, { accuracy: "high" }), { lat: 1, lng: 2 });
  const There = Locate.implement(() => ({ lat: 3, lng: 4 }));
  assert.deepEqual(await scope().call(There, { accuracy: "low" }), { lat: 3, lng: 4 });
});

test("k002_a_second_implementation_is_refused", async () => {
  // @ts-expect-error it has its implementation
  await fails(() => scope().provide(Add, () => 0), "tool.conflict");
  const root = scope().provide(Locate, () => ({ lat: 1, lng: 2 }));
  await fails(() => root.provide(Locate, () => ({ lat: 1, lng: 2 })), "tool.conflict");
});

test("k003_without_an_implementation_the_nearest_transport_is_used", async () => {
  const [far, farEnd] = memoryPair();
  const [near, nearEnd] = memoryPair();
  serve(farEnd, [Locate.implement(() => ({ lat: 0, lng: 0 }))]);
  serve(nearEnd, [Locate.implement(() => ({ lat: 9, lng: 9 }))]);
  const root = scope(far);
  const inside = root.child();
  assert.equal((await inside.call(Locate, { accuracy: "low" })).lat, 0);
  inside.route(near);
  assert.equal((await inside.call(Locate, { accuracy: "low" })).lat, 9);
  assert.equal((await root.call(Locate, { accuracy: "low" })).lat, 0);
});

test("k003_with_neither_the_error_names_the_tool", async () => {
  const fault = await fails(scope().call(Locate, { accuracy: "low" }), "tool.unavailable");
  assert.match(fault.message, /get-location/);
  assert.deepEqual(fault.details, { tool: "get-location" });
});

test("k004_concurrent_calls_are_independent", async () => {
  const gates = [new Gate(), new Gate()];
  const Wait = tool({
    name: "wait",
    description: "",
    input: z.number(),
    output: z.number(),
    async run(which) {
      await gates[which]?.opened;
      return which;
    },
  });
  const root = scope();
  const [first, second] = [root.call(Wait, 0), root.call(Wait, 1)];
  gates[1]?.open();
  assert.equal(await second, 1);
  gates[0]?.open();
  assert.equal(await first, 0);
});

test("k004_errors_of_an_implementation_reach_the_caller", async () => {
  const cause = new Error("no such city");
  const Broken = tool({ name: "broken", description: "", input: z.null(), output: z.null(), run: () => Promise.reject(cause) });
  const fault = await fails(scope().call(Broken, null), "tool.internal");
  assert.equal(fault.message, "no such city");
  assert.equal(fault.cause, cause);
});

test("k005_invalid_input_is_refused_before_anything_happens", async () => {
  let happened = 0;
  const root = scope().around(Add, (input, next) => {
    happened += 1;
    return next(input);
  });
  const fault = await fails(root.call(Add, { a: "one" as unknown as number }), "tool.invalid_input");
  assert.deepEqual(fault.details, { path: "/a" });
  assert.match(fault.message, /add is not valid at \/a/);
  assert.equal(happened, 0);
});

test("k005_invalid_output_never_reaches_the_caller", async () => {
  const root = scope().provide(Locate, () => ({ lat: 1, lng: "east" }) as unknown as { lat: number; lng: number });
  const fault = await fails(root.call(Locate, { accuracy: "high" }), "tool.invalid_output");
  assert.deepEqual(fault.details, { path: "/lng" });
});

test("k005_input_that_a_layer_made_invalid_is_refused", async () => {
  const root = scope().around(Add, (input, next) => {
    (input as Record<string, unknown>)["a"] = "changed in place";
    return next(input);
  });
  await fails(root.call(Add, { a: 1 }), "tool.invalid_input");
});

test("k005_both_sides_of_a_wire_check", async () => {
  const [near, far] = memoryPair();
  const Loose = tool({ name: "add", description: "", input: {}, output: {} });
  serve(far, [Add]);
  const fault = await fails(scope(near).call(Loose, { a: "one" }), "tool.invalid_input");
  assert.deepEqual(fault.details, { path: "/a" });
  const [here, there] = memoryPair();
  serve(there, [Loose.implement(() => "not a number")]);
  await fails(scope(here).call(tool({ name: "add", description: "", input: {}, output: z.number() }), {}), "tool.invalid_output");
});

test("k005_schemas_that_answer_later_work", async () => {
  const Late = tool({
    name: "late",
    description: "",
    input: z.string().refine(async (text) => text !== "no"),
    output: z.string(),
    run: (text) => text,
  });
  assert.equal(await scope().call(Late, "yes"), "yes");
  await fails(scope().call(Late, "no"), "tool.invalid_input");
});

test("k006_a_child_shadows_and_the_parent_keeps", async () => {
  const root = scope().provide(Locate, () => ({ lat: 1, lng: 1 }));
  const inside = root.child().provide(Locate, () => ({ lat: 2, lng: 2 }));
  assert.equal((await inside.call(Locate, { accuracy: "low" })).lat, 2);
  assert.equal((await root.call(Locate, { accuracy: "low" })).lat, 1);
});

test("k006_two_tools_with_one_name_in_a_scope_are_refused", async () => {
  const Other = tool({ name: "get-location", description: "Another.", input: z.null(), output: z.null() });
  const root = scope().provide(Locate, () => ({ lat: 1, lng: 1 }));
  const fault = await fails(() => root.provide(Other, () => null), "tool.conflict");
  assert.match(fault.message, /get-location/);
  await fails(() => serve(memoryPair()[0], [Other.implement(() => null), Locate.implement(() => ({ lat: 1, lng: 1 }))]), "tool.conflict");
});

test("k006_names_of_users_never_meet_those_of_built_ins", async () => {
  const Mine = tool({ name: "elicit", description: "", input: z.null(), output: z.string(), run: () => "mine" });
  const root = scope().provide(Mine);
  assert.equal(await root.call("elicit", null), "mine");
  await fails(root.elicit("?", z.null()), "tool.unavailable");
  for (const name of ["form", "confirmation", "sample", "notification"]) {
    await fails(() => tool({ name, description: "", input: {}, output: {} }), "tool.conflict");
  }
  for (const name of ["", "two words", "a\nb"]) {
    await fails(() => tool({ name, description: "", input: {}, output: {} }), "tool.schema_invalid");
  }
});

test("k007_a_call_can_be_canceled_and_timed", async () => {
  const started = new Gate();
  let cleaned = 0;
  const Long = tool({
    name: "long",
    description: "",
    input: z.null(),
    output: z.null(),
    async run(_, cx) {
      started.open();
      await stopped(cx.signal);
      cleaned += 1;
      return null;
    },
  });
  const call = scope().call(Long, null);
  await started.opened;
  await call.cancel();
  assert.equal(cleaned, 1, "cancel waits for the clean-up");
  await fails(call, "tool.canceled");
  await fails(scope().call(Long, null, { signal: timed(5) }), "tool.timeout");
  await fails(scope().call(Long, null, { signal: AbortSignal.abort() }), "tool.canceled");
});

test("k007_a_call_that_was_canceled_before_it_began_never_begins", async () => {
  let began = 0;
  const Count = tool({ name: "count", description: "", input: {}, output: {}, run: () => (began += 1) });
  const call = scope().call(Count, {});
  void call.cancel();
  await fails(call, "tool.canceled");
  await call.cancel();
  assert.equal(began, 0);
});

test("k007_calls_inside_a_call_end_with_it", async () => {
  const inner = new Gate<AbortSignal>();
  const Inner = tool({
    name: "inner",
    description: "",
    input: {},
    output: {},
    async run(_, cx) {
      inner.open(cx.signal);
      await stopped(cx.signal);
    },
  });
  const Outer = tool({ name: "outer", description: "", input: {}, output: {}, run: (_, cx) => cx.call(Inner, {}) });
  const call = scope().call(Outer, {});
  const signal = await inner.opened;
  await call.cancel();
  assert.ok(signal.aborted);
});

test("tools_with_plain_json_schema_check_and_fill_in", async () => {
  const Greet = tool({
    name: "greet",
    description: "",
    input: { type: "object", properties: { who: { type: "string", default: "world" } } },
    output: jsonSchema<string>({ type: "string", minLength: 3 }),
    run: ({ who }) => `Hello, ${who}`,
  });
  assert.equal(await scope().call(Greet, {}), "Hello, world");
  await fails(scope().call(Greet, { who: 7 as unknown as string }), "tool.invalid_input");
});

test("a_tool_can_be_called_by_its_name", async () => {
  assert.equal(await scope().provide(Add).call("add", { a: 2 }), 4);
});
