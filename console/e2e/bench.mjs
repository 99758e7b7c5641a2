// Paint times and frame rates in a real browser, printed and asserted nowhere: machines differ, and other work runs beside.
import { cpus } from "node:os";
import { launch, newPage, signIn, goto } from "./browser.mjs";
import { BIN, Core, until } from "./core.mjs";
import { seed } from "./seed.mjs";

const RUNS = Number(process.env.WHARF_BENCH_RUNS ?? 2000);
/** Lines of output, each with a piece of progress: a run may write 100,000 pieces. */
const LINES = Number(process.env.WHARF_BENCH_LINES ?? 49_000);
const TIMES = Number(process.env.WHARF_BENCH_TIMES ?? 7);
const SCREENS = { Home: "/", Runs: "/runs", Inbox: "/inbox", Tools: "/tools", Tool: "/tools/wharf/count", Providers: "/providers", Worlds: "/worlds", World: "/worlds/studio", Money: "/money", Audit: "/audit", Tokens: "/tokens", System: "/system" };
const rows = [];
const row = (name, value, unit) => {
  rows.push([name, value, unit]);
  console.log(`${name.padEnd(58)} ${String(value).padStart(9)} ${unit}`);
};
const middle = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const worst = (all) => Math.max(...all);

/** Frames while something scrolls: how many a second, and the longest pause between two. */
function scrolling(page, locator) {
  return locator.evaluate(async (el) => {
    const gaps = [];
    let last = performance.now();
    const begun = last;
    await new Promise((done) => {
      const frame = (now) => {
        gaps.push(now - last);
        last = now;
        el.scrollTop += 400;
        if (el.scrollTop + el.clientHeight >= el.scrollHeight - 1) el.scrollTop = 0;
        if (now - begun > 3000) done();
        else requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    return { fps: gaps.length / ((last - begun) / 1000), longest: Math.max(...gaps.slice(1)) };
  });
}

const [core, browser] = await Promise.all([Core.start(), launch()]);
try {
  console.log(`${browser.version()} on ${cpus().length} processors, ${BIN}, ${RUNS} runs\n`);
  await seed(core);
  for (let i = 0; i < RUNS; i += 40) await Promise.all(Array.from({ length: 40 }, () => core.run("wharf/count", { n: 1, delay_ms: 0 })));
  await core.run("wharf/count", { n: LINES, delay_ms: 0 }, { run_id: "many-lines" });
  await until("the end of a long run", async () => (await core.api("/v1/runs/many-lines")).ended_at, 300_000);

  const page = await newPage(browser);
  await signIn(page, core);
  const paints = { first: [], largest: [], usable: [] };
  for (let i = 0; i < TIMES; i += 1) {
    const begun = Date.now();
    await page.goto(core.url);
    await page.waitForSelector(".figure .value");
    paints.usable.push(Date.now() - begun);
    const seen = await page.evaluate(() => new Promise((done) => {
      const first = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0;
      new PerformanceObserver((list) => done({ first, largest: list.getEntries().at(-1).startTime })).observe({ type: "largest-contentful-paint", buffered: true });
      setTimeout(() => done({ first, largest: first }), 1500);
    }));
    paints.first.push(seen.first);
    paints.largest.push(seen.largest);
  }
  row("Home, loaded anew: first contentful paint, median", Math.round(middle(paints.first)), "ms");
  row("Home, loaded anew: largest contentful paint, median", Math.round(middle(paints.largest)), "ms");
  row("Home, loaded anew: figures are there, median", middle(paints.usable), "ms");

  // From one screen to the next without loading anew, as people go.
  for (const [name, path] of Object.entries(SCREENS)) {
    const took = [];
    for (let i = 0; i < TIMES; i += 1) {
      await goto(page, core, path === "/runs" ? "/tools" : "/runs");
      took.push(await page.evaluate(async (to) => {
        const begun = performance.now();
        const old = document.querySelector("main h1")?.textContent;
        history.pushState(null, "", to);
        dispatchEvent(new PopStateEvent("popstate"));
        await new Promise((done) => {
          const look = () => (document.querySelector("main h1:not(.sr)") && document.querySelector("main h1").textContent !== old ? requestAnimationFrame(() => done()) : setTimeout(look, 4));
          look();
        });
        return performance.now() - begun;
      }, path));
    }
    row(`${name}: from another screen to its heading, median`, Math.round(middle(took)), "ms");
    row(`${name}: the slowest of ${TIMES}`, Math.round(worst(took)), "ms");
  }

  await goto(page, core, "/runs");
  const list = page.getByRole("region", { name: "Runs" });
  await list.locator("tbody tr[aria-rowindex]").first().waitFor();
  const runs = await scrolling(page, list);
  row(`scrolling the list of runs: frames`, Math.round(runs.fps), "/s");
  row(`scrolling the list of runs: longest pause`, Math.round(runs.longest), "ms");

  await goto(page, core, "/runs/default/many-lines?tab=output");
  const begun = Date.now();
  await page.getByText(`${LINES.toLocaleString("en-US")} lines`).waitFor({ timeout: 120_000 });
  row(`${LINES.toLocaleString("en-US")} lines of output, as many pieces of progress: from the address to the last`, Date.now() - begun, "ms");
  const output = await scrolling(page, page.getByRole("region", { name: "Output" }));
  row(`scrolling ${LINES.toLocaleString("en-US")} lines of output: frames`, Math.round(output.fps), "/s");
  row(`scrolling ${LINES.toLocaleString("en-US")} lines of output: longest pause`, Math.round(output.longest), "ms");

  await core.run("wharf/count", { n: 3000, delay_ms: 1 }, { run_id: "live" });
  await goto(page, core, "/runs/default/live?tab=output");
  await page.getByRole("region", { name: "Output" }).waitFor();
  const live = await scrolling(page, page.getByRole("region", { name: "Output" }));
  row("output that comes live: frames", Math.round(live.fps), "/s");
  row("output that comes live: longest pause", Math.round(live.longest), "ms");
} finally {
  await browser.close();
  await core.stop();
}
