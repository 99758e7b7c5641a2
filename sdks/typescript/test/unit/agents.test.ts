import assert from "node:assert/strict";
import { test } from "node:test";

import { agent, memoryPair, scope, serve, tool } from "wharf-sdk";
import { z } from "zod";
import { fails } from "../support/waiting.js";

const Config = z.object({ apiKey: z.string(), currency: z.string().default("EUR") });

const Search = tool({
  name: "search",
  description: "Searches flights.",
  input: z.object({ to: z.string() }),
  output: z.string(),
  run: ({ to }, cx) => {
    const { apiKey, currency } = cx.config(Config);
    return `${to} in ${currency} with ${apiKey}`;
  },
});
const Locate = tool({ name: "get-location", description: "", input: z.null(), output: z.string() });
const Book = tool({
  name: "book",
  description: "",
  input: z.null(),
  output: z.string(),
  run: async (_, cx) => cx.call(Search, { to: await cx.call(Locate, null) }),
});
const Flight = agent({ name: "flight", description: "Books flights.", config: Config, tools: { search: Search, book: Book, locate: Locate } });

test("k015_configuration_is_checked_and_its_defaults_are_filled_in", async () => {
  const flight = Flight.activate(scope(), { apiKey: "k" });
  assert.equal(await flight.tools.search({ to: "Tokyo" }), "Tokyo in EUR with k");
  const fault = await fails(() => Flight.activate(scope(), { apiKey: 7 as unknown as string }), "config.invalid");
  assert.deepEqual(fault.details, { path: "/apiKey" });
});

test("k015_outside_an_agent_there_is_no_configuration", async () => {
  const fault = await fails(scope().call(Search, { to: "Tokyo" }), "config.invalid");
  assert.match(fault.message, /not inside an agent/);
});

test("k015_an_agent_without_configuration_is_activated_without", async () => {
  const Plain = agent({ name: "plain", description: "", tools: { say: tool({ name: "say", description: "", input: z.string(), output: z.string(), run: (text) => text }) } });
  assert.equal(await Plain.activate(scope()).tools.say("x"), "x");
  await fails(() => Plain.activate(scope(), {} as unknown as undefined), "config.invalid");
  const Optional = agent({ name: "optional", description: "", config: z.object({ n: z.number().default(3) }), tools: {} });
  assert.deepEqual(Optional.activate(scope()).scope.config(Optional.config), { n: 3 });
});

test("k016_instances_do_not_mix", async () => {
  const root = scope();
  const [one, two] = [Flight.activate(root, { apiKey: "1" }), Flight.activate(root, { apiKey: "2", currency: "JPY" })];
  const said = await Promise.all([one.tools.search({ to: "A" }), two.tools.search({ to: "B" }), one.tools.search({ to: "C" })]);
  assert.deepEqual(said, ["A in EUR with 1", "B in JPY with 2", "C in EUR with 1"]);
});

test("k016_calls_between_tools_of_an_agent_pass_its_layers", async () => {
  const flight = Flight.activate(scope(), { apiKey: "k" }, { locate: () => "Oslo" });
  flight.around({ search: async (input, next) => `<${await next(input)}>` });
  assert.equal(await flight.tools.book(null), "<Oslo in EUR with k>");
});

test("k016_local_and_remote_tools_mix_and_one_may_have_its_own_transport", async () => {
  const [general, generalEnd] = memoryPair();
  const [own, ownEnd] = memoryPair();
  serve(generalEnd, [Locate.implement(() => "general")]);
  serve(ownEnd, [Locate.implement(() => "own")]);
  const root = scope(general);
  const flight = Flight.activate(root, { apiKey: "k" });
  assert.equal(await flight.tools.book(null), "general in EUR with k");
  flight.scope.route(Locate, own);
  assert.equal(await flight.tools.book(null), "own in EUR with k");
});

test("k016_an_instance_is_served_with_its_configuration", async () => {
  const [near, far] = memoryPair();
  const flight = Flight.activate(scope(), { apiKey: "k" });
  const served = serve(far, [flight]);
  assert.deepEqual(served.offers.map((offer) => offer.name), ["search", "book"], "what it only calls is not offered");
  assert.equal(await scope(near).call("search", { to: "Rome" }), "Rome in EUR with k");
});

test("two_tools_with_one_name_in_an_agent_are_refused", async () => {
  await fails(() => agent({ name: "x", description: "", tools: { a: Locate, b: Locate } }), "tool.conflict");
});

test("implementations_that_an_agent_has_already_are_refused", async () => {
  // @ts-expect-error search has its implementation
  await fails(() => Flight.activate(scope(), { apiKey: "k" }, { search: () => "no" }), "tool.conflict");
  await fails(() => Flight.activate(scope(), { apiKey: "k" }, { other: () => "no" } as object), "tool.not_found");
});

test("k021_closing_an_instance_leaves_its_parent_open", async () => {
  const root = scope();
  const flight = Flight.activate(root, { apiKey: "k" });
  await flight.close();
  await fails(flight.tools.search({ to: "A" }), "tool.canceled");
  assert.equal(await Flight.activate(root, { apiKey: "n" }).tools.search({ to: "A" }), "A in EUR with n");
});
