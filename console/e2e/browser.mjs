// A real browser for tests: signs in by a link, notes what the page complains about, looks for barriers.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

export async function launch(more = []) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", ...more],
  });
}

/** A page of a context of its own. `faults` collects errors of scripts and everything the content policy refused. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.hosts = new Set();
  watch(page);
  return page;
}

export function watch(page) {
  page.faults ??= [];
  page.hosts ??= new Set();
  page.on("pageerror", (e) => page.faults.push(`error: ${e.message}`));
  page.on("console", (m) => {
    if (/Content Security Policy|TrustedScript|Trusted Type/i.test(m.text())) page.faults.push(`policy: ${m.text()}`);
  });
  page.on("request", (r) => /^(https?|wss?):/.test(r.url()) && page.hosts.add(new URL(r.url()).host));
}

export async function signIn(page, core, to = "/") {
  await page.goto(await core.link());
  await page.waitForSelector("nav[aria-label=Screens]", { state: "attached" });
  if (to !== "/") await goto(page, core, to);
}

export async function goto(page, core, to) {
  await page.goto(core.url + to);
  await page.waitForSelector("main h1:not(.sr)");
}

/** Barriers that axe finds on the page as it stands. */
export async function barriers(page) {
  await page.evaluate(AXE);
  const result = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return result.violations.map((v) => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 140)}`);
}

export async function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}
