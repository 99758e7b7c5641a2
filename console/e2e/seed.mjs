// Something to look at: runs of all kinds, files, questions, an approval, worlds with budgets, a token, a secret.

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
  await core.run("wharf/ask", { question: "Which cut goes out on Friday?", schema: { type: "string", enum: ["The short one", "The long one", "Neither"] } }, { run_id: "ask-cut", world: "studio" });
  await core.run("wharf/ask", { question: "Where does the delivery go?", schema: { type: "object", required: ["street", "city"], properties: { street: { type: "string", title: "Street", maxLength: 120 }, city: { type: "string", title: "City", maxLength: 80 }, floor: { type: "integer", title: "Floor", minimum: 0, maximum: 60 }, express: { type: "boolean", title: "Express?", description: "Costs four dollars more." } } }, detail: { order: 4711, weight_kg: 12.5 } }, { run_id: "ask-delivery" });
  await core.run("wharf/approve-me", { note: "Send the invoice to ops@example.dev", amount_cents: 129900, lines: [{ sku: "A-1", n: 3 }, { sku: "B-7", n: 1 }] }, { run_id: "approve-invoice" }).catch(() => core.run("wharf/approve-me", {}, { run_id: "approve-invoice" }));
  await core.run("wharf/notify", { message: "The night shift takes over.", text: "x" }, { run_id: "approve-note", world: "lab" }).catch(() => {});
  await core.run("wharf/count", { n: 100_000, delay_ms: 400 }, { run_id: "long-count" });
  await core.run("wharf/sleep", { ms: 3_000_000 }, { run_id: "nap", world: "lab" }).catch(() => {});
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
