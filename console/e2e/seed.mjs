// Something to look at: runs of all kinds, files, questions, an approval, worlds with budgets, flows, what starts runs, a token, a secret.
import { createServer } from "node:http";

/** A flow with steps in steps: items, branches, a message from outside, an error that is caught. */
export const DIGEST = {
  name: "digest",
  description: "Looks several sources up at once, pays for the best of them once somebody has said how much, and publishes what they say.",
  input_schema: { type: "object", required: ["sources"], properties: { sources: { type: "array", title: "Sources", items: { type: "string" } }, away: { type: "boolean", title: "A source is away" } } },
  vars: { state: "whole" },
  steps: [
    { id: "look", each: { over: "inputs.sources", as: "source", concurrency: 4, step: { id: "one", call: { tool: "wharf/echo", inputs: { text: "${source} says yes" } } } } },
    { id: "gather", parallel: { branches: [
      { id: "count", call: { tool: "wharf/count", inputs: { n: 5, delay_ms: 10 } } },
      { id: "pay", call: { tool: "wharf/sleep", inputs: { ms: 50, cost_micro: 12_000 } } },
      { id: "guarded", try: { step: { id: "which", branch: { cases: [{ when: "has(inputs.away) && inputs.away", step: { id: "ask_source", call: { tool: "wharf/fail", inputs: { code: "source.away", message: "Nobody answers." }, retry: { max: 3, backoff: "30s", on: ["source.away"] } } } }], else: { id: "reached", set: { state: "'complete'" } } } }, catch: [{ codes: ["source.away"], step: { id: "without", set: { state: "'without a source'" } } }] } },
    ] } },
    { id: "price", signal: { name: "price", schema: { type: "object", required: ["amount"], properties: { amount: { type: "integer", title: "Amount in cents", minimum: 1 }, note: { type: "string", title: "Note" } } }, deadline: "7d" } },
    { id: "tell", call: { tool: "wharf/echo", inputs: { text: "published for ${steps.price.outputs.amount} cents" } } },
  ],
  output: { sum: "${steps.count.outputs.sum}", amount: "${steps.price.outputs.amount}" },
};

/** Flows, runs of one that wait, and one that is done, a trigger that was called, a receiver that was told. */
async function seedFlows(core) {
  await core.api("/v1/flows", { body: { document: { ...DIGEST, description: "An earlier version." } } });
  await core.api("/v1/flows", { body: { document: DIGEST } });
  await core.api("/v1/flows", { body: { document: { name: "hello", description: "Says something and counts.", steps: [{ id: "say", call: { tool: "wharf/echo", inputs: { text: "hello" } } }, { id: "count", call: { tool: "wharf/count", inputs: { n: 3, delay_ms: 0 } } }], output: {} } } });
  await core.run("flow/digest", { sources: ["archive", "library", "press"] }, { run_id: "digest-done", world: "studio" });
  await core.api("/v1/runs/digest-done/signals/price?world=studio", { body: { value: { amount: 12 } } });
  await core.run("flow/digest", { sources: ["archive", "library", "press"] }, { run_id: "digest-price", world: "studio" });
  await core.run("flow/digest", { sources: ["archive", "library"], away: true }, { run_id: "digest-waits", world: "studio" });
  await core.api("/v1/schedules", { body: { name: "digest-monday", cron: "0 6 * * 1", tz: "Europe/Berlin", tool: "flow/digest", inputs: { sources: ["press"] }, world: "studio", allow: ["wharf/*"] } });
  const push = await core.api("/v1/triggers", { body: { name: "push", tool: "wharf/echo", proof: "token", query: { text: "message" }, world: "studio", budget_micro: 50_000 } });
  for (const id of ["one", "two"]) await fetch(`${core.url}${push.path}?message=${id}`, { method: "POST", headers: { authorization: `Bearer ${push.secret}`, "webhook-id": id } });
  await core.api("/v1/triggers", { body: { name: "payments", tool: "flow/digest", proof: "stripe", secret: "whsec_of_the_sender", body: "event", inputs: { sources: ["press"] } } });
  await core.api("/v1/triggers/payments/pause", { method: "POST" });
  await core.api("/v1/triggers", { body: { name: "letters", tool: "wharf/echo", on_file: "/inbox/**", inputs: { text: "${file.path} is there" }, world: "studio" } });
  await core.api("/v1/triggers", { body: { name: "alarms", tool: "wharf/echo", on_run: 'run.tool == "acme/pay" && run.status == "failed"', inputs: { text: "${run.id} failed" }, world: "studio" } });
  const sink = createServer((q, s) => (q.resume(), s.writeHead(204).end()));
  await new Promise((up) => sink.listen(0, "127.0.0.1", up));
  sink.unref();
  await core.api("/v1/receivers", { body: { name: "desk", url: `http://127.0.0.1:${sink.address().port}/`, on: ["ask", "run"], statuses: ["failed", "refused"], allow_private: true } });
  await core.api("/v1/receivers/desk/test", { method: "POST" });
  await core.api("/v1/receivers", { body: { name: "phone", url: "https://example.com/hooks/phone", on: ["ask", "agent", "budget", "schedule"], format: "slack" } });
  await core.api("/v1/receivers/phone/pause", { method: "POST" });
}

export async function seed(core) {
  await core.api("/v1/worlds", { body: { world: "lab", limit_micro: 5_000_000, default_hold_micro: 20_000, retention_days: 30, policy: [{ tool: "wharf/notify", when: "always", approve: true }] } });
  await core.api("/v1/worlds", { body: { world: "studio", limit_micro: 40_000_000 } });
  for (let i = 0; i < 12; i += 1) await core.run("wharf/count", { n: 3 + (i % 5), delay_ms: 5 }, { wait: "10s", world: i % 3 ? "default" : "lab" });
  for (const [i, cost] of [52_000, 1_250_000, 310_000, 87_000, 940_000, 12_000, 44_000, 2_100_000, 61_000, 730, 98_000, 405_000].entries()) await core.run("wharf/sleep", { ms: 20 + 90 * (i % 4), cost_micro: cost }, { wait: "10s", world: i % 2 ? "studio" : "lab" }).catch(() => {});
  await core.run("wharf/fail", { code: "acme.no_stock", message: "There is nothing left of item 4711." }, { wait: "10s" });
  await core.run("wharf/fail", { message: "The upstream did not answer in time.", retryable: true }, { wait: "30s", world: "lab" });
  await core.api("/v1/worlds/studio/files/brief/storyboard.md", { method: "PUT", body: "# Storyboard\n\n1. A pier at dawn\n2. The first boat\n", type: "text/markdown" });
  await core.api("/v1/worlds/studio/files/brief/data.csv", { method: "PUT", body: "scene,seconds\n1,12\n2,7\n", type: "text/csv" });
  await core.api("/v1/worlds/studio/files/logo.svg", { method: "PUT", body: '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="90" viewBox="0 0 160 90"><rect width="160" height="90" rx="12" fill="#0b6672"/><path d="M20 40h120M40 40v24M80 40v24M120 40v24" stroke="#fff" stroke-width="7"/></svg>', type: "image/svg+xml" });
  await core.run("wharf/echo", { "text.world": "/brief/storyboard.md" }, { wait: "10s", world: "studio", run_id: "echo-storyboard", outputs: { "text.world": "/out/storyboard.txt" } });
  await core.run("wharf/echo", { "text.world": "/out/storyboard.txt" }, { wait: "10s", world: "studio", run_id: "echo-again", outputs: { "text.world": "/out/final.txt" } });
  await core.run("wharf/count", { n: 40, delay_ms: 3 }, { wait: "10s", run_id: "count-to-forty" });
  await seedFlows(core);
  await core.run("wharf/ask", { question: "Which cut goes out on Friday?", schema: { type: "string", enum: ["The short one", "The long one", "Neither"] } }, { run_id: "ask-cut", world: "studio" });
  await core.run("wharf/ask", { question: "Where does the delivery go?", schema: { type: "object", required: ["street", "city"], properties: { street: { type: "string", title: "Street", maxLength: 120 }, city: { type: "string", title: "City", maxLength: 80 }, floor: { type: "integer", title: "Floor", minimum: 0, maximum: 60 }, express: { type: "boolean", title: "Express?", description: "Costs four dollars more." } } }, detail: { order: 4711, weight_kg: 12.5 } }, { run_id: "ask-delivery" });
  await core.run("wharf/approve-me", { note: "Send the invoice to ops@example.dev", amount_cents: 129900, lines: [{ sku: "A-1", n: 3 }, { sku: "B-7", n: 1 }] }, { run_id: "approve-invoice" }).catch(() => core.run("wharf/approve-me", {}, { run_id: "approve-invoice" }));
  await core.run("wharf/notify", { message: "The night shift takes over.", text: "x" }, { run_id: "approve-note", world: "lab" }).catch(() => {});
  await core.run("wharf/count", { n: 100_000, delay_ms: 400 }, { run_id: "long-count" });
  await core.run("wharf/sleep", { ms: 3_000_000 }, { run_id: "nap", world: "lab" }).catch(() => {});
  await core.api("/v1/schedules", { body: { name: "nightly", cron: "0 3 * * 1-5", tz: "Europe/Berlin", tool: "wharf/echo", inputs: { text: "night" }, world: "studio" } });
  await core.api("/v1/schedules", { body: { name: "beat", every_ms: 900_000, tool: "wharf/count", inputs: { n: 3, delay_ms: 5 } } });
  await core.api("/v1/schedules/beat/trigger", { method: "POST" });
  await core.api("/v1/schedules", { body: { name: "party", at: "2099-12-24T18:00", tz: "Europe/Berlin", tool: "wharf/echo", inputs: { text: "cheers" } } });
  await core.api("/v1/schedules/party/pause", { method: "POST" });
  await core.api("/v1/tokens", { body: { label: "ci", verbs: ["run", "read"], worlds: ["lab"], tools: ["wharf/*"], ttl_ms: 28_800_000 } });
  await core.api("/v1/tokens", { body: { label: "night shift", verbs: ["read", "answer", "approve"], person: true } });
  await core.api("/v1/operators", { body: { desc: "Night shift", roles: ["reviewer"], person: true } });
  await core.api("/v1/secrets/MAIL_KEY", { method: "PUT", body: "not-a-real-key", type: "text/plain" });
}

/** What the example agents add: runs that start runs, and an approval of something that acts. */
export async function seedDemo(core) {
  await core.run("dev.wharf.hello/relay", { tool_id: "dev.wharf.hello-python/relay", input: { tool_id: "dev.wharf.hello/stream_counter", input: { n: 12, delay_ms: 40 } } }, { run_id: "relay-chain", wait: "30s" });
  await core.run("dev.wharf.hello/write_note", { text: "Invoice 4711 goes to ops@example.dev on Friday, together with the signed delivery note." }, { run_id: "write-note", world: "studio" });
  await core.run("dev.wharf.hello-python/relay", { tool_id: "dev.wharf.hello/sleep", input: { ms: 1_500_000 } }, { run_id: "relay-open" });
}
