// Everything one comes here for, without a pointer: Tab, Enter, Space, arrows and letters alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, newPage } from "./browser.mjs";
import { Core, until } from "./core.mjs";

let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

const TABS_MAX = 120;

/** Goes on with Tab until what has the focus is called so; what that is. */
async function tabTo(page, name, { back = false } = {}) {
  const seen = [];
  for (let i = 0; i < TABS_MAX; i += 1) {
    const here = await page.evaluate(() => {
      const el = document.activeElement;
      if (!el || el === document.body) return { name: "", outline: "" };
      const label = el.labels?.[0]?.textContent ?? el.closest("label")?.textContent;
      return { name: (el.getAttribute("aria-label") ?? label ?? el.textContent ?? "").trim(), seen: el.matches(":focus-visible") };
    });
    if (typeof name === "string" ? here.name === name : name.test(here.name)) {
      assert.ok(here.seen, `the focus on ${here.name} is seen`);
      return here.name;
    }
    seen.push(here.name);
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
  }
  throw new Error(`Tab does not lead to ${name}: ${seen.join(" | ")}`);
}

const ended = (id) => until(`the end of ${id}`, async () => {
  const run = await core.api(`/v1/runs/${id}`);
  return run.ended_at && run;
});

test("c030_every_task_is_done_by_keyboard_alone", async (t) => {
  const page = await newPage(browser);
  await t.test("signing in", async () => {
    await page.goto(core.url);
    await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
    await tabTo(page, "Token");
    await page.keyboard.type(core.token);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Welcome to Wharf" }).waitFor();
  });
  await t.test("past the navigation", async () => {
    await tabTo(page, "Go to the content");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  });
  await t.test("trying a tool", async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("wharf/count");
    await page.getByRole("option", { name: /wharf\/count/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "wharf/count", level: 1 }).waitFor();
    await tabTo(page, /^n( optional)?$/);
    await page.keyboard.type("4");
    await page.keyboard.press("Enter");
    await page.locator("[data-run] [role=status]", { hasText: "succeeded" }).waitFor();
  });
  await t.test("the list, a run, its tabs, and running it again", async () => {
    await page.goto(`${core.url}/runs?tool=wharf/count`);
    await page.getByRole("cell", { name: "wharf/count" }).waitFor();
    await tabTo(page, "Succeeded");
    await page.keyboard.press("Space");
    await page.waitForURL(/status=succeeded/);
    const run = (await core.api("/v1/runs?tool=wharf/count")).items[0].run_id;
    await tabTo(page, new RegExp(run.slice(-12)));
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/runs\/default\//);
    await tabTo(page, /^Output/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/tab=output/);
    await page.getByRole("region", { name: "Output" }).waitFor();
    await tabTo(page, "Run again", { back: true });
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => /^\/runs\/default\//.test(url.pathname) && !url.pathname.endsWith(run));
  });
  await t.test("canceling", async () => {
    await core.run("wharf/sleep", { ms: 600_000 }, { run_id: "nap" });
    await page.goto(`${core.url}/runs/default/nap`);
    await page.getByRole("button", { name: "Cancel", exact: true }).waitFor();
    await tabTo(page, "Cancel");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Cancel this run?" }).waitFor();
    await tabTo(page, "Cancel the run");
    await page.keyboard.press("Enter");
    assert.equal((await ended("nap")).status, "canceled");
  });
  await t.test("answering, allowing and denying", async () => {
    await core.run("wharf/ask", { question: "Which one?", schema: { type: "string", enum: ["left", "right"] } }, { run_id: "which" });
    await page.goto(`${core.url}/inbox`);
    await page.getByRole("heading", { name: "Which one?" }).waitFor();
    await tabTo(page, "left");
    await page.keyboard.press("ArrowRight");
    await tabTo(page, "Answer");
    await page.keyboard.press("Enter");
    assert.equal((await ended("which")).outputs.answer, "right");
    for (const [id, key, status] of [["yes", "a", "succeeded"], ["no", "d", "refused"]]) {
      await core.run("wharf/approve-me", {}, { run_id: id });
      await page.getByRole("button", { name: "Allow once" }).waitFor();
      await page.locator("#main").focus();
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      await tabTo(page, key === "a" ? "Allow it once" : "Deny it");
      await page.keyboard.press("Enter");
      assert.equal((await ended(id)).status, status);
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  });
  await t.test("putting a file and getting it back", async () => {
    // Wanted before the page is there: a chooser that opens before the browser knows is given up by it.
    const chooser = page.waitForEvent("filechooser");
    await page.goto(`${core.url}/worlds/default`);
    await page.getByText("This world holds no files").waitFor();
    await tabTo(page, "Upload");
    await page.keyboard.press("Enter");
    await (await chooser).setFiles({ name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("kept") });
    await page.getByRole("link", { name: "note.txt" }).waitFor();
    await tabTo(page, "note.txt");
    await page.keyboard.press("Enter");
    await page.getByText("kept", { exact: true }).waitFor();
    await tabTo(page, "Download", { back: true });
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
    assert.equal(download.suggestedFilename(), "note.txt");
  });
  await t.test("signing out", async () => {
    await tabTo(page, "You", { back: true });
    await page.keyboard.press("Enter");
    await tabTo(page, "Sign out");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
  });
  assert.deepEqual(page.faults, []);
});
