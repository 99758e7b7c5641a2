// Runs whose values are not kept, and orders to remove runs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, overflow, signIn } from "./browser.mjs";
import { Core, until } from "./core.mjs";

const SECRET = "what only the clinic may know";
/** Enough that removing them takes long enough to be called off. */
const MANY = 8000;
let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

const shown = (page) => page.locator("main").innerText();

test("c012_values_that_are_not_kept_are_told_before_and_after_they_are_gone", async () => {
  await core.api("/v1/worlds", { body: { world: "clinic", retain: "digest" } });
  await core.run("wharf/echo", { text: SECRET }, { run_id: "said", world: "clinic", wait: "20s" });
  await core.run("wharf/fail", { code: "clinic.no_bed", message: SECRET }, { run_id: "failed", world: "clinic", wait: "20s" });
  await core.run("wharf/ask", { question: SECRET, schema: { type: "string" } }, { run_id: "asked", world: "clinic" });
  await core.run("wharf/approve-me", { purpose: SECRET }, { run_id: "approved", world: "clinic" });
  const asks = await until("two asks", async () => {
    const all = (await core.api("/v1/inbox")).items;
    return all.length === 2 && all;
  });
  const page = await newPage(browser);
  await signIn(page, core, `/inbox?ask=${asks[0].ask_id}`);
  await page.getByText("are not kept once the run has ended").waitFor();
  await goto(page, core, "/runs/clinic/asked?tab=inputs");
  await page.getByText("Once the run has ended, only a digest of these inputs is kept.").waitFor();
  await goto(page, core, "/worlds/clinic");
  await page.getByText("digests only").waitFor();
  await goto(page, core, "/runs/clinic/said?tab=output");
  await page.getByText("The core has only these outputs in its memory").waitFor();
  await page.getByText(SECRET).waitFor();
  for (const ask of asks) {
    const [path, body] = ask.kind === "question" ? ["questions", { value: SECRET }] : ["approvals", { decision: "allow" }];
    await core.api(`/v1/${path}/${ask.ask_id}/${ask.kind === "question" ? "answer" : "decide"}`, { body });
  }
  for (const id of ["asked", "approved"]) await until(`the end of ${id}`, async () => (await core.api(`/v1/runs/${id}?world=clinic`)).ended_at);
  // A core that ends forgets what it had in its memory.
  await core.kill();
  await core.again();
  for (const [path, text] of [
    ["/runs/clinic/said?tab=output", "Only a digest of the outputs was kept"],
    ["/runs/clinic/said?tab=inputs", "Only a digest of the inputs was kept"],
    ["/runs/clinic/said?tab=events", "Text and progress of this run were not kept"],
    ["/runs/clinic/failed", "What this error said was not kept."],
    ["/inbox?state=decided", "(its text was not kept)"],
    [`/inbox?state=decided&ask=${asks.find((a) => a.kind === "approval").ask_id}`, "They were not kept."],
    ["/runs?world=clinic", "wharf/approve-me"],
  ]) {
    await goto(page, core, path);
    await page.getByText(text).first().waitFor();
    assert.ok(!(await shown(page)).includes(SECRET), path);
    assert.deepEqual(await barriers(page), [], path);
    await page.setViewportSize({ width: 320, height: 800 });
    assert.ok((await overflow(page)) <= 0, `${path} is wider than 320 pixels`);
    await page.setViewportSize({ width: 1440, height: 900 });
  }
  // What was not kept has to be given again.
  await goto(page, core, "/runs/clinic/said");
  await page.getByRole("button", { name: "Run again" }).click();
  await page.getByRole("dialog").getByText("The inputs of this run were not kept. Give them anew.").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More" }).click();
  assert.equal(await page.getByRole("button", { name: /Copy as/ }).count(), 0, "a command without its inputs is none");
  assert.deepEqual(page.faults, []);
});

test("c019_orders_to_remove_runs_show_how_far_they_are_and_are_called_off", async () => {
  await core.api("/v1/worlds", { body: { world: "bulk" } });
  let made = 0;
  const make = async () => {
    while (made < MANY) {
      made += 1;
      await core.run("wharf/echo", { text: "x" }, { world: "bulk" });
    }
  };
  await Promise.all(Array.from({ length: 32 }, make));
  await until("the end of all runs", async () => (await core.api("/v1/runs/count?world=bulk&status=succeeded")).count === MANY);
  const page = await newPage(browser);
  await signIn(page, core, "/system");
  await page.getByText("No order removes runs").waitFor();
  const order = await core.api("/v1/purges", { body: { until: new Date().toISOString(), world: "bulk" } });
  const table = page.getByRole("table", { name: "Orders to remove runs" });
  await table.getByText(/[\d,]+ of [\d,]+ removed/).waitFor();
  await table.getByRole("button", { name: "Call off" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Call it off" }).press("Enter");
  await table.getByText("canceled").waitFor();
  assert.deepEqual(await barriers(page), []);
  const ended = await core.api(`/v1/purges/${order.purge_id}`);
  assert.equal(ended.state, "canceled");
  assert.ok(ended.purged < MANY, "it was called off in time");
  await table.getByText(new RegExp(`^${ended.purged.toLocaleString("en")} runs removed`)).waitFor();
  await page.setViewportSize({ width: 320, height: 800 });
  // Charts take on their new width a moment later.
  await until("a page of 320 pixels", async () => (await overflow(page)) <= 0, 5000);
  assert.deepEqual(page.faults, []);
});
