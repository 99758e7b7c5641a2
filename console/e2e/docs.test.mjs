// The documentation that a core serves: found by its navigation and its search, readable everywhere.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, launch, newPage, overflow } from "./browser.mjs";
import { Core } from "./core.mjs";

let core;
let browser;

before(async () => {
  core = await Core.start();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await core?.stop();
});

const open = async (page, path) => {
  await page.goto(core.url + path);
  await page.waitForSelector("#search:not([hidden])");
};

test("docs_are_searched_without_another_host_and_without_a_token", async () => {
  const page = await newPage(browser);
  await open(page, "/docs");
  await page.keyboard.press("/");
  await page.keyboard.type("budget exc");
  await page.waitForSelector("#found a");
  assert.match(await page.textContent("#found a"), /^budget\.exceeded/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/errors/budget.exceeded");
  assert.equal(await page.textContent("h1"), "budget.exceeded");
  await page.fill("#search", "zzqq");
  await page.waitForFunction(() => document.getElementById("found").textContent.includes("Nothing found"));
  await page.keyboard.press("Escape");
  assert.equal(await page.isVisible("#found"), false);
  assert.deepEqual(page.faults, []);
  assert.deepEqual([...page.hosts], [new URL(core.url).host]);
  await page.context().close();
});

test("docs_lead_from_section_to_section_and_to_a_heading", async () => {
  const page = await newPage(browser);
  await open(page, "/docs");
  const sections = await page.$$eval("nav h2", (all) => all.map((h) => h.textContent));
  assert.deepEqual(sections, ["Start", "Guides", "Reference", "Operations", "Protocols", "Errors", "Decisions"]);
  await page.click("nav a[href='/docs/http']");
  await page.waitForURL("**/docs/http");
  assert.equal(await page.textContent("nav a[aria-current=page]"), "The HTTP API");
  await page.click("aside a[href='#events']");
  assert.ok(await page.evaluate(() => document.getElementById("events").getBoundingClientRect().top < innerHeight));
  await page.context().close();
});

test("docs_are_light_and_dark_wide_and_narrow_without_barriers", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1440, 390]) {
      const page = await newPage(browser, { colorScheme, viewport: { width, height: 844 } });
      for (const path of ["/docs", "/docs/http", "/docs/errors", "/docs/protocols/agent", "/docs/benchmarks"]) {
        await open(page, path);
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
        assert.equal(await overflow(page), 0, `${path} at ${width}`);
        assert.deepEqual(await barriers(page), [], `${path} at ${width}, ${colorScheme}`);
      }
      assert.deepEqual(page.faults, []);
      await page.context().close();
    }
  }
});

test("docs_keep_the_theme_that_was_chosen_and_share_it_with_the_console", async () => {
  const page = await newPage(browser, { colorScheme: "light" });
  await open(page, "/docs");
  await page.click("#theme");
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), "dark");
  await open(page, "/docs/worlds");
  assert.equal(await theme(), "dark");
  await page.goto(core.url);
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  await page.context().close();
});
