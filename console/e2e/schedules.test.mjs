// Schedules: made, fired by hand, paused and removed from the page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, signIn } from "./browser.mjs";
import { Core, until } from "./core.mjs";
import { pauses, resumesAndGoes } from "./standing.mjs";

let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

test("c018_a_schedule_is_made_fired_paused_and_removed", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/schedules");
  await page.getByText("Nothing starts by the clock").waitFor();
  await page.getByRole("button", { name: "New schedule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("nightly");
  await dialog.getByLabel("Tool").fill("wharf/echo");
  await dialog.getByLabel("Time zone").fill("Europe/Berlin");
  await dialog.getByLabel("Pattern").fill("61 * * * *");
  await dialog.getByLabel("Inputs as JSON").fill('{ "text": "night", "big": 12345678901234567890 }');
  assert.deepEqual(await barriers(page), []);
  await dialog.getByRole("button", { name: "Make the schedule" }).click();
  await dialog.getByText("The field `cron`").waitFor();
  await dialog.getByLabel("Pattern").fill("0 3 * * 1-5");
  await dialog.getByLabel("Pattern").press("Enter");
  await page.waitForURL(/\/schedules\/nightly/);
  await page.getByText("0 3 * * 1-5 Europe/Berlin").first().waitFor();
  assert.match(await page.getByRole("listitem").filter({ hasText: /03:00 \+0[12]:00/ }).first().innerText(), /^\d{4}-\d{2}-\d{2} 03:00/);
  assert.equal((await core.api("/v1/schedules/nightly")).inputs.text, "night");
  await page.getByRole("button", { name: "Run now" }).click();
  const row = page.getByRole("table", { name: "What became of its times" }).getByRole("row").filter({ hasText: "by hand" });
  await row.getByText("started").waitFor();
  const run = await until("its run", async () => (await core.api("/v1/runs?tool=wharf/echo&status=succeeded")).items[0]);
  await row.locator(`a[href*="${run.run_id}"]`).waitFor();
  await pauses(page, ["somebody paused it", "None while it is paused."]);
  await resumesAndGoes(page, "schedule", "nightly", "Nothing starts by the clock");
});

test("c018_a_schedule_of_another_world_is_not_told_of", async () => {
  await core.api("/v1/worlds", { body: { world: "lab" } });
  for (const [name, world] of [["here", "default"], ["there", "lab"]]) await core.api("/v1/schedules", { body: { name, world, every_ms: 3_600_000, tool: "wharf/echo", inputs: { text: "x" } } });
  const made = await core.api("/v1/tokens", { body: { label: "reader", verbs: ["read"], worlds: ["lab"] } });
  const page = await newPage(browser);
  await page.goto(core.url);
  await page.getByLabel("Token").fill(made.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("nav[aria-label=Screens]");
  await goto(page, core, "/schedules");
  await page.getByRole("link", { name: "there", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "here", exact: true }).count(), 0);
  assert.equal(await page.getByRole("button", { name: "New schedule" }).count(), 0);
  await goto(page, core, "/schedules/there");
  await page.getByText("every 1 hour").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Run now" }).count(), 0);
  await goto(page, core, "/schedules/here");
  await page.getByText("schedule.not_found").waitFor();
  assert.deepEqual(page.faults, []);
});
