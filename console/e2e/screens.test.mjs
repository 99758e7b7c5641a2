// Every screen: with data, empty, narrow, by a narrow token. No barrier, no fault, no other host.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, overflow, signIn } from "./browser.mjs";
import { fileURLToPath } from "node:url";
import { Core } from "./core.mjs";
import { seed } from "./seed.mjs";

const SCREENS = [
  ["/", "Home"], ["/runs", "Runs"], ["/runs/default/count-to-forty", "wharf/count"], ["/runs/default/count-to-forty?tab=output", "wharf/count"], ["/runs/default/count-to-forty?tab=events", "wharf/count"], ["/runs/default/count-to-forty?tab=inputs", "wharf/count"], ["/runs/default/count-to-forty?tab=money", "wharf/count"], ["/runs/studio/echo-again?tab=lineage", "wharf/echo"], ["/runs/default/count-to-forty?tab=audit", "wharf/count"], ["/runs/studio/echo-again?compare=echo-storyboard", "wharf/echo"],
  ["/inbox", "Inbox"], ["/inbox?state=decided", "Inbox"], ["/tools", "Tools"], ["/tools/wharf/ask", "wharf/ask"], ["/tools/wharf/ask?tab=definition", "wharf/ask"], ["/providers", "Providers"], ["/worlds", "Worlds"], ["/worlds/studio", "studio"], ["/worlds/studio?file=/brief/storyboard.md&tab=lineage", "studio"], ["/worlds/lab?tab=money", "lab"], ["/worlds/lab?tab=rules", "lab"], ["/schedules", "Schedules"], ["/schedules/nightly", "nightly"], ["/triggers", "Triggers"], ["/triggers/push", "push"], ["/receivers", "Receivers"], ["/receivers/desk", "desk"],
  ["/money", "Money"], ["/flows", "Flows"], ["/flows/digest", "digest"], ["/flows/digest?tab=graph", "digest"], ["/flows/digest?tab=run", "digest"], ["/flows/digest?tab=runs", "digest"], ["/flows/digest?tab=starts", "digest"], ["/flows/digest?tab=document", "digest"], ["/flows/digest?version=1", "digest"], ["/runs/studio/digest-waits", "flow/digest@2"], ["/runs/studio/digest-done", "flow/digest@2"], ["/runs/studio/digest-done?tab=timeline", "flow/digest@2"], ["/operators", "Operators"], ["/audit", "Audit"], ["/tokens", "Tokens and secrets"], ["/tokens?tab=secrets", "Tokens and secrets"], ["/tokens?tab=sessions", "Tokens and secrets"], ["/system", "System"],
];

let core, empty, browser;
before(async () => {
  [core, empty, browser] = await Promise.all([Core.start(), Core.start(), launch()]);
  await seed(core);
});
after(async () => {
  await browser?.close();
  await Promise.all([core?.stop(), empty?.stop()]);
});

async function settled(page) {
  await page.waitForLoadState("networkidle").catch(() => {});
  await page.locator(".skeleton").first().waitFor({ state: "detached", timeout: 5000 }).catch(() => {});
}

for (const scheme of ["light", "dark"])
  test(`c030_every_screen_has_one_heading_and_no_barrier_${scheme}`, async () => {
    const page = await newPage(browser, { colorScheme: scheme });
    await signIn(page, core);
    for (const [path, heading] of SCREENS) {
      await goto(page, core, path);
      await settled(page);
      assert.equal(await page.locator("h1").count(), 1, path);
      assert.equal((await page.locator("h1").innerText()).trim(), heading, path);
      assert.deepEqual(await barriers(page), [], path);
    }
    assert.deepEqual(page.faults, []);
    assert.deepEqual([...page.hosts], [new URL(core.url).host]);
  });

test("c030_no_dialog_has_a_barrier", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  for (const [path, button, heading] of [
    ["/tokens", "New token", "A new token"],
    ["/tokens", "Narrow a token", "A narrower token"],
    ["/triggers", "New trigger", "A new trigger"],
    ["/triggers/push", "Test", "Call push by hand"],
    ["/runs/studio/digest-done", "Run again from look", "Run again from look?"],
    ["/tokens?tab=secrets", "New secret", "A new secret"],
    ["/tokens", "Revoke", /^Revoke /],
    ["/worlds", "New world", "A new world"],
    ["/worlds/lab", "Settings", "Settings of lab"],
    ["/runs/lab/nap", "Cancel", "Cancel this run?"],
    ["/operators", "Give up", /^Give up the seat/],
  ]) {
    await goto(page, core, path);
    await page.getByRole("main").getByRole("button", { name: button, exact: true }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: heading }).waitFor();
    assert.deepEqual(await barriers(page), [], path);
    // One that takes something away is not one key press from doing it.
    const inside = await page.evaluate(() => ({ within: !!document.activeElement?.closest("dialog"), danger: !!document.activeElement?.matches(".danger") }));
    assert.deepEqual(inside, { within: true, danger: false }, path);
    await page.setViewportSize({ width: 320, height: 800 });
    assert.ok((await overflow(page)) <= 0, `${path} is wider than 320 pixels`);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  assert.deepEqual(page.faults, []);
});

test("c030_every_screen_reflows_at_320_pixels", async () => {
  const page = await newPage(browser, { viewport: { width: 320, height: 800 } });
  await signIn(page, core);
  for (const [path] of SCREENS) {
    await goto(page, core, path);
    await settled(page);
    assert.ok((await overflow(page)) <= 0, `${path} is wider than the window by ${await overflow(page)}`);
  }
});

test("c031_every_screen_says_something_when_it_is_empty", async () => {
  const page = await newPage(browser);
  await signIn(page, empty);
  await page.getByRole("heading", { name: "Welcome to Wharf" }).waitFor();
  await page.getByText("Nothing has run yet").waitFor();
  for (const [path, text] of [["/runs", "Runs appear here as they start"], ["/inbox", "Nothing waits for you"], ["/operators", "Nobody has taken a seat"], ["/schedules", "Nothing starts by the clock"], ["/flows", "Nobody has added a flow"], ["/triggers", "Nothing starts by itself"], ["/receivers", "Nobody outside is told anything"], ["/worlds/default", "This world holds no files"], ["/tokens", "There are no tokens besides"], ["/tokens?tab=secrets", "No secret is kept"], ["/money", "Nothing was spent"]]) {
    await goto(page, empty, path);
    await page.getByText(text).first().waitFor();
    assert.deepEqual(await barriers(page), [], path);
  }
  assert.deepEqual(page.faults, []);
});

test("c031_a_slow_core_shows_the_last_data_with_its_age", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tools");
  await page.getByRole("link", { name: "wharf/count" }).waitFor();
  let answer;
  const hold = new Promise((go) => (answer = go));
  await page.route("**/v1/**", async (route) => {
    await hold;
    await route.continue().catch(() => {});
  });
  // What was never read is a skeleton, after a moment.
  await page.getByRole("link", { name: "Tokens", exact: true }).click();
  await page.getByRole("heading", { name: "Tokens and secrets", level: 1 }).waitFor();
  await page.locator(".skeleton").first().waitFor();
  await page.getByRole("link", { name: "Tools", exact: true }).click();
  await page.getByRole("link", { name: "wharf/count" }).waitFor();
  await page.getByText(/The core answers slowly\. What you see is \d+(\.\d)? s old\./).waitFor();
  assert.equal(await page.locator("[role=status]", { hasText: /\d s old/ }).count(), 0, "what counts on is not read out each second");
  answer();
  await page.getByText("The core answers slowly").waitFor({ state: "detached" });
  await page.context().close();
});

test("c001_the_design_system_has_a_page_while_one_works_on_it", async () => {
  if (!process.env.WHARF_CONSOLE_DIR) assert.equal((await fetch(`${core.url}/ui`)).status, 401, "it is no address of the console that is built in");
  const own = await Core.start({ args: process.env.WHARF_CONSOLE_DIR ? [] : ["--console-dir", fileURLToPath(new URL("../dist", import.meta.url))] });
  try {
    const page = await newPage(browser);
    await signIn(page, own, "/ui");
    await page.getByRole("heading", { name: "Design", level: 1 }).waitFor();
    await settled(page);
    assert.deepEqual(page.faults, []);
  } finally {
    await own.stop();
  }
});

test("c010_the_first_run_is_one_click_away", async () => {
  const fresh = await Core.start();
  try {
    const page = await newPage(browser);
    await signIn(page, fresh);
    await page.getByRole("button", { name: "Run wharf/count", exact: true }).click();
    await page.getByRole("region", { name: "Output" }).waitFor();
    await page.locator("[role=status]", { hasText: "succeeded" }).waitFor();
    assert.match(await page.locator(".json").first().innerText(), /sum: 210/);
  } finally {
    await fresh.stop();
  }
});

test("c009_a_narrow_token_sees_no_button_it_may_not_press", async () => {
  const made = await core.api("/v1/tokens", { body: { label: "reader", verbs: ["read"], worlds: ["lab"], ttl_ms: 600_000 } });
  const page = await newPage(browser);
  await page.goto(core.url);
  await page.getByLabel("Token").fill(made.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("nav[aria-label=Screens]");
  assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
  assert.equal(await page.getByRole("link", { name: "Tokens" }).count(), 0);
  await goto(page, core, "/runs");
  await page.getByRole("cell", { name: "wharf/sleep" }).first().waitFor();
  assert.equal(await page.getByRole("cell", { name: "studio", exact: true }).count(), 0, "nothing of another world");
  assert.equal(await page.getByRole("button", { name: "Cancel these" }).count(), 0);
  await goto(page, core, "/runs/lab/nap");
  await page.getByText("running").first().waitFor();
  for (const name of ["Cancel", "Run again"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  await goto(page, core, "/inbox");
  await page.getByText("may read this, not decide it").waitFor();
  assert.equal(await page.getByRole("button", { name: "Allow once" }).count(), 0);
  await page.goto(`${core.url}/runs/studio/echo-again`);
  await page.getByText("permission.denied").first().waitFor();
  assert.deepEqual(page.faults, []);
});

test("c040_every_screen_stands_for_a_narrow_token_and_offers_nothing_it_may_not_do", async () => {
  const made = await core.api("/v1/tokens", { body: { label: "looker", verbs: ["read"], worlds: ["lab"], ttl_ms: 600_000 } });
  const page = await newPage(browser);
  await page.goto(core.url);
  await page.getByLabel("Token").fill(made.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("nav[aria-label=Screens]");
  const acts = /^(Cancel|Cancel these|Run|Run again|Run wharf.*|Upload|Delete|New .*|Settings|Approve|Change the approval|Start|Stop|Restart|Drain|Revoke|Forget|Give up|Call off|Export|Verify the chain|Answer|Decline|Allow .*|Deny|Pause|Resume|Run now|Run it|Test|Send .*|Remove .*)$/;
  for (const [path] of SCREENS) {
    await goto(page, core, path);
    await settled(page);
    assert.equal(await page.locator("h1").count(), 1, path);
    // What leaves the core as a list may be read, and so it may be saved.
    const offered = (await page.getByRole("main").getByRole("button").allInnerTexts()).filter((name) => acts.test(name.trim()) && !(name.trim() === "Export" && path === "/runs"));
    assert.deepEqual(offered, [], path);
    assert.equal(await page.getByText("This screen has failed").count(), 0, path);
    assert.deepEqual(await barriers(page), [], path);
  }
  assert.deepEqual(page.faults, []);
});

test("c020_search_finds_tools_runs_and_screens", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tools");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /^Search/ }).fill("wharf/cou");
  await page.getByRole("option", { name: /wharf\/count/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "wharf/count", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /^Search/ }).fill("count-to");
  await page.getByRole("option", { name: /count-to-forty/ }).click();
  await page.waitForURL(/runs\/default\/count-to-forty/);
});

test("c020_search_finds_flows_schedules_and_triggers_by_name_and_every_screen", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tools");
  for (const [text, option, at] of [["digest", /^digest flow\/digest@2/, "/flows/digest"], ["digest-mon", /digest-monday/, "/schedules/digest-monday"], ["paym", /^payments/, "/triggers/payments"], ["flow", /^Flows/, "/flows"], ["trigger", /^Triggers/, "/triggers"], ["receiv", /^Receivers/, "/receivers"]]) {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill(text);
    await page.getByRole("option", { name: option }).click();
    await page.waitForURL((url) => url.pathname === at);
  }
  assert.deepEqual(page.faults, []);
});

test("c032_the_address_is_the_state", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/runs");
  await page.getByRole("button", { name: "Went wrong" }).click();
  await page.waitForURL(/status=failed,refused/);
  await page.getByRole("row").filter({ hasText: "failed" }).first().waitFor();
  assert.equal(await page.getByRole("row").filter({ hasText: "succeeded" }).count(), 0);
  await page.reload();
  await page.getByRole("row").filter({ hasText: "failed" }).first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Went wrong" }).getAttribute("aria-pressed"), "true");
  await page.goBack();
  await page.getByRole("row").filter({ hasText: "succeeded" }).first().waitFor();
});
