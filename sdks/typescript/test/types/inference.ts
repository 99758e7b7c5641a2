/** What the compiler must accept and refuse. Nothing here runs: a build that passes is the proof. */

import { agent, scope, tool, type Call, type Elicited, type InputOf, type OutputOf, type ProgressOf } from "wharf-sdk";
import { z } from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function holds<_ extends true>(): void {}

const Search = tool({
  name: "search",
  description: "Searches.",
  input: z.object({ to: z.string(), seats: z.number().default(1) }),
  output: z.array(z.object({ price: z.number() })),
  progress: z.object({ status: z.string() }),
  run(input, cx) {
    holds<Same<typeof input, { to: string; seats: number }>>();
    cx.progress({ status: "searching" });
    // @ts-expect-error progress has a type
    cx.progress({ state: 1 });
    return [{ price: input.seats }];
  },
});
const Locate = tool({
  name: "get-location",
  description: "Locates.",
  input: { type: "object", properties: { accuracy: { enum: ["high", "low"] }, note: { type: "string" } }, required: ["accuracy"] },
  output: { type: "array", items: { type: "number" } },
});

export function inputsAndOutputs(): void {
  holds<Same<InputOf<typeof Search>, { to: string; seats?: number | undefined }>>();
  holds<Same<OutputOf<typeof Search>, { price: number }[]>>();
  holds<Same<ProgressOf<typeof Search>, { status: string }>>();
  holds<Same<InputOf<typeof Locate>, { accuracy: "high" | "low"; note?: string }>>();
  holds<Same<OutputOf<typeof Locate>, number[]>>();
  const call = scope().call(Search, { to: "Tokyo" });
  holds<Same<typeof call, Call<{ price: number }[], { status: string }>>>();
  // @ts-expect-error the input has a type
  scope().call(Search, { to: 7 });
  // @ts-expect-error a key is missing
  scope().call(Locate, {});
  // @ts-expect-error no such accuracy
  scope().call(Locate, { accuracy: "best" });
}

export function whatIsLeftOutAllowsAnything(): void {
  const Plain = tool({ input: { type: "object", properties: { document: { type: "string", format: "binary" } }, required: ["document"] }, run: ({ document }) => document.size });
  holds<Same<InputOf<typeof Plain>, { document: File }>>();
  holds<Same<OutputOf<typeof Plain>, unknown>>();
}

export function outputsOfImplementations(): void {
  // @ts-expect-error the output has a type
  Locate.implement(() => "here");
  // @ts-expect-error the output has a type
  tool({ name: "x", description: "", input: z.null(), output: z.number(), run: () => "text" });
  // @ts-expect-error a tool without progress tells none
  tool({ name: "x", description: "", input: z.null(), output: z.number(), run: (_, cx) => (cx.progress("x"), 1) });
}

export function implementationsAreGivenOnce(): void {
  scope().provide(Locate, () => [1, 2]);
  // @ts-expect-error it has its implementation
  scope().provide(Search, () => []);
  // @ts-expect-error it has its implementation
  Search.implement(() => []);
  // @ts-expect-error it has none
  scope().provide(Locate);
}

export function layers(): void {
  scope().around(Search, async (input, next, cx) => {
    holds<Same<typeof input, { to: string; seats?: number | undefined }>>();
    cx.progress({ status: "around" });
    const found = await next({ ...input, seats: 2 });
    holds<Same<typeof found, { price: number }[]>>();
    return found;
  });
  // @ts-expect-error the output has a type
  scope().around(Search, () => "nothing");
  // @ts-expect-error there are two lanes
  scope().around(Search, () => [], { lane: "middle" });
}

const Config = z.object({ apiKey: z.string(), currency: z.string().default("EUR") });
const Flight = agent({ name: "flight", description: "", config: Config, tools: { search: Search, locate: Locate } });

export async function agents(): Promise<void> {
  const flight = Flight.activate(scope(), { apiKey: "k" }, { locate: () => [1] });
  const found = await flight.tools.search({ to: "Tokyo" });
  holds<Same<typeof found, { price: number }[]>>();
  flight.around({ search: async (input, next) => (await next({ to: input.to })).slice(0, 1) });
  // @ts-expect-error there is no such tool
  void flight.tools.fly;
  // @ts-expect-error the configuration has a type
  Flight.activate(scope(), { apiKey: 7 });
  // @ts-expect-error the configuration is needed
  Flight.activate(scope());
  // @ts-expect-error search has its implementation
  Flight.activate(scope(), { apiKey: "k" }, { search: () => [] });
  // @ts-expect-error there is no such tool
  flight.around({ fly: () => [] });
  agent({ name: "plain", description: "", tools: { search: Search } }).activate(scope());
}

export async function questions(): Promise<void> {
  const answer = await scope().elicit("Sure?", z.object({ ok: z.boolean() }));
  holds<Same<typeof answer, Elicited<{ ok: boolean }>>>();
  if (answer.status === "accepted") holds<Same<typeof answer.content, { ok: boolean }>>();
  if (answer.status === "other") holds<Same<typeof answer.content, string>>();
  // @ts-expect-error only an accepted or other answer has content
  if (answer.status === "declined") void answer.content;
}

export function configurationInsideATool(): void {
  tool({
    name: "priced",
    description: "",
    input: z.null(),
    output: z.string(),
    run: (_, cx) => {
      const config = cx.config(Config);
      holds<Same<typeof config, { apiKey: string; currency: string }>>();
      return config.currency;
    },
  });
}
