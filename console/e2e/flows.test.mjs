// Flows: added, checked, run, looked at step by step, sent messages, and removed from the page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, overflow, signIn } from "./browser.mjs";
import { Core, until } from "./core.mjs";
import { DIGEST } from "./seed.mjs";

let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

const PAID = {
  name: "paid",
  description: "Waits until somebody has paid.",
  steps: [
    { id: "look", each: { over: "[1, 2, 3]", as: "k", step: { id: "one", call: { tool: "wharf/count", inputs: { n: "${k}", delay_ms: 1 } } } } },
    { id: "payment", signal: { name: "payment", schema: { type: "object", required: ["amount"], properties: { amount: { type: "integer", title: "Amount", minimum: 1 } } }, deadline: "7d" } },
    { id: "fine", call: { tool: "wharf/echo", inputs: { text: "thank you" } } },
  ],
  output: { amount: "${steps.payment.outputs.amount}" },
};

test("c018_a_flow_is_checked_added_and_gets_a_new_version", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/flows");
  await page.getByText("Nobody has added a flow").waitFor();
  await page.getByRole("button", { name: "New flow" }).click();
  const dialog = page.getByRole("dialog");
  const area = dialog.getByLabel("Document as JSON");
  assert.match(await area.inputValue(), /wharf\/count/, "there is something to begin with");
  await area.fill("{ not json");
  await dialog.getByText("at character").waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Add the flow" }).isDisabled());
  await area.fill(JSON.stringify({ ...PAID, steps: [{ id: "a", call: { tool: "wharf/echo", inputs: { text: "${steps.nobody.outputs.x}" } } }] }));
  await dialog.getByRole("button", { name: "Check" }).click();
  await dialog.getByText("steps[0]", { exact: false }).first().waitFor();
  assert.deepEqual(await barriers(page), []);
  assert.equal((await core.api("/v1/flows")).items.length, 0, "a check stores nothing");
  await area.fill(JSON.stringify(PAID));
  await dialog.getByRole("button", { name: "Check" }).click();
  await dialog.getByText("Nothing is wrong with it.").waitFor();
  await dialog.getByRole("button", { name: "Add the flow" }).click();
  await page.waitForURL(/\/flows\/paid$/);
  await page.getByText("for each k of [1, 2, 3]").waitFor();
  // What stands in a step stands further in.
  const [outer, inner] = [await page.getByText("look", { exact: true }).boundingBox(), await page.getByText("one", { exact: true }).boundingBox()];
  assert.ok(inner.x > outer.x + 8, "nesting is visible");
  await page.getByRole("button", { name: "New version" }).click();
  assert.match(await area.inputValue(), /Waits until somebody has paid/);
  await area.fill(JSON.stringify({ ...PAID, description: "Waits, and says thank you." }));
  await dialog.getByRole("button", { name: "Add the version" }).click();
  await page.getByText("Waits, and says thank you.").waitFor();
  await page.getByRole("link", { name: "Version 1" }).click();
  await page.getByText("Waits until somebody has paid.").waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Remove this version" }).click();
  assert.match(await dialog.innerText(), /Remove version 1 of paid/);
  await dialog.getByRole("button", { name: "Remove the version" }).click();
  await until("version 1 to go", async () => (await core.api("/v1/flows/paid")).versions.join() === "2");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c018_a_flow_is_drawn_and_run_from_its_page", async () => {
  await core.api("/v1/flows", { body: { document: DIGEST } });
  const page = await newPage(browser);
  await signIn(page, core, "/flows/digest?tab=graph");
  const graph = page.getByRole("region", { name: "Graph of the flow" });
  await graph.locator("text", { hasText: "which: branch" }).waitFor();
  await graph.locator("text", { hasText: /^else/ }).waitFor();
  assert.equal(await graph.locator("rect").count(), 14, "twelve steps, a begin and an end");
  await graph.getByRole("link", { name: /count: wharf\/count/ }).click();
  await page.waitForURL(/\/tools\/wharf\/count/);
  await goto(page, core, "/flows/digest");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.getByRole("button", { name: "Add an item" }).click();
  await page.getByLabel("Item 1", { exact: true }).fill("archive");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("link", { name: "Open the run" }).click();
  await page.getByRole("heading", { name: "flow/digest@1", level: 1 }).waitFor();
  await page.getByRole("table", { name: "Steps of the flow" }).getByText("gather").waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c012_a_run_of_a_flow_shows_its_steps_what_it_waits_for_and_takes_a_message", async () => {
  await core.api("/v1/flows", { body: { document: PAID } });
  await core.run("flow/paid", {}, { run_id: "paid-1" });
  const page = await newPage(browser);
  await signIn(page, core, "/runs/default/paid-1");
  await page.getByText("waits for the message payment").first().waitFor();
  await page.getByText(/at the latest until/).waitFor();
  const steps = page.getByRole("table", { name: "Steps of the flow" });
  const row = (name) => steps.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });
  await row("one [2]").getByText("succeeded").waitFor();
  await row("fine").getByText("not yet").waitFor();
  await row("payment").getByText("waiting").waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("button", { name: "Send payment" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Amount/).fill("0");
  await dialog.getByRole("button", { name: "Send it" }).click();
  await dialog.locator("[aria-invalid=true]").waitFor();
  assert.deepEqual(await barriers(page), []);
  await dialog.getByLabel(/Amount/).fill("12");
  await dialog.getByRole("button", { name: "Send it" }).click();
  await page.locator("[role=status]", { hasText: "succeeded" }).first().waitFor();
  await row("fine").getByText("succeeded").waitFor();
  await row("payment").getByText("over").waitFor();
  assert.equal((await core.api("/v1/runs/paid-1")).outputs.amount, 12);
  assert.equal(await page.getByRole("button", { name: /^Send/ }).count(), 0, "nothing is sent to what is over");
  // Each call is a run of its own.
  await row("fine").getByRole("link", { name: /^…/ }).click();
  await page.getByRole("heading", { name: "wharf/echo", level: 1 }).waitFor();
  await page.getByRole("link", { name: "paid-1" }).click();
  await page.getByRole("heading", { name: /^flow\/paid@/, level: 1 }).waitFor();
  await page.setViewportSize({ width: 320, height: 800 });
  assert.ok((await overflow(page)) <= 0);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c012_a_message_without_a_schema_is_json_and_one_of_another_name_is_kept", async () => {
  await core.api("/v1/flows", { body: { document: { name: "two", description: "Waits twice.", steps: [{ id: "a", signal: { name: "first" } }, { id: "b", signal: { name: "second" } }], output: { b: "${steps.b.outputs}" } } } });
  await core.run("flow/two", {}, { run_id: "two-1" });
  const page = await newPage(browser);
  await signIn(page, core, "/runs/default/two-1");
  await page.getByRole("button", { name: "Send a message" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Message").selectOption("second");
  await dialog.locator("textarea").fill('{ "n": 12345678901234567890 }');
  await dialog.getByRole("button", { name: "Send it" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Send first" }).click();
  await dialog.locator("textarea").fill("null");
  await dialog.getByRole("button", { name: "Send it" }).click();
  await page.locator("[role=status]", { hasText: "succeeded" }).first().waitFor();
  await page.context().close();
});

test("c009_who_may_only_read_sees_a_flow_and_changes_nothing", async () => {
  await core.api("/v1/flows", { body: { document: PAID } });
  await core.run("flow/paid", {}, { run_id: "paid-read" });
  const made = await core.api("/v1/tokens", { body: { label: "reader", verbs: ["read"], ttl_ms: 600_000 } });
  const page = await newPage(browser);
  await page.goto(core.url);
  await page.getByLabel("Token").fill(made.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("nav[aria-label=Screens]");
  assert.equal(await page.getByRole("link", { name: "Receivers" }).count(), 0);
  for (const [path, text] of [["/flows/paid", "look"], ["/runs/default/paid-read", "waits for the message payment"]]) {
    await goto(page, core, path);
    await page.getByText(text).first().waitFor();
    for (const name of [/^Run it/, /^New version/, /^Send/, /^More/, /^Cancel/]) assert.equal(await page.getByRole("main").getByRole("button", { name }).filter({ hasText: name }).count(), 0, `${path} ${name}`);
    assert.deepEqual(await barriers(page), [], path);
  }
  await page.context().close();
});

test("c018_a_flow_is_run_again_from_one_of_its_steps", async () => {
  await core.api("/v1/flows", { body: { document: { name: "late", description: "Fails once.", input_schema: { type: "object", properties: { ok: { type: "boolean" } } }, steps: [{ id: "first", call: { tool: "wharf/count", inputs: { n: 2, delay_ms: 0 } } }, { id: "all", each: { over: "[1, 2]", as: "k", step: { id: "one", call: { tool: "wharf/echo", inputs: { text: "${k}" } } } } }, { id: "last", call: { tool: "wharf/echo", inputs: { text: "the end" } } }, { id: "after", signal: { name: "go" } }], output: { text: "${steps.last.outputs.text}" } } } });
  await core.run("flow/late", {}, { run_id: "late-1" });
  const page = await newPage(browser);
  await signIn(page, core, "/runs/default/late-1");
  await page.getByText("waits for the message go").first().waitFor();
  assert.equal(await page.getByRole("button", { name: /^Run again from/ }).count(), 0, "only what is over is run again");
  await core.api("/v1/runs/late-1/signals/go", { body: { value: 1 } });
  const again = page.getByRole("button", { name: "Run again from last" });
  await again.waitFor();
  assert.equal(await page.getByRole("button", { name: "Run again from one" }).count(), 0, "only steps at the top begin a run");
  await again.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "Run again from last?" }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await dialog.getByLabel("Version of the flow").fill("nine");
  assert.ok(await dialog.getByRole("button", { name: "Run it" }).isDisabled());
  await dialog.getByLabel("Version of the flow").fill("99");
  await dialog.getByRole("button", { name: "Run it" }).click();
  await dialog.locator(".note.bad code").waitFor();
  await dialog.getByLabel("Version of the flow").fill("");
  await dialog.getByRole("button", { name: "Run it" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/default/") && !url.pathname.endsWith("/late-1"));
  const id = new URL(page.url()).pathname.split("/").at(-1);
  await page.getByText("waits for the message go").first().waitFor();
  const flow = (await core.api(`/v1/runs/${id}`)).flow;
  assert.equal(flow.cites, "late-1");
  assert.equal((await core.api(`/v1/runs/${id}/steps`)).items.filter((s) => s.path === "first").length, 0, "what came before is not done again");
  await core.api(`/v1/runs/${id}/signals/go`, { body: { value: 1 } });
  await page.locator("[role=status]", { hasText: "succeeded" }).first().waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});
