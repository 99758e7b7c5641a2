// Pictures of every screen, light and dark, wide and narrow, into docs/console/; of some, if they are named.
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { goto, launch, newPage, signIn } from "./browser.mjs";
import { dirname, resolve } from "node:path";
import { BIN, Core, until } from "./core.mjs";
import { seed, seedDemo } from "./seed.mjs";

/** Pictures do not tell of the machine they were taken on. */
function neutral(pairs) {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) for (const [path, name] of pairs) if (path.length > 3) walk.currentNode.nodeValue = walk.currentNode.nodeValue.replaceAll(path, name);
}

const OUT = fileURLToPath(new URL("../../docs/console/", import.meta.url));
const only = process.argv.slice(2);
await mkdir(OUT, { recursive: true });
const core = await Core.start({ demo: process.env.WHARF_DEMO !== "no" });
const browser = await launch();

try {
  await seed(core);
  const agents = (await core.api("/v1/agents")).items;
  if (agents.length) {
    await until("the agents", async () => (await core.api("/v1/agents")).items.every((a) => a.state === "running"));
    await seedDemo(core);
  }
  const asks = await until("the asks", async () => {
    const all = (await core.api("/v1/inbox")).items;
    return all.length >= 4 && all;
  });
  const approval = (asks.find((a) => a.run_id === "write-note") ?? asks.find((a) => a.kind === "approval")).ask_id;
  const question = asks.find((a) => a.run_id === "ask-delivery").ask_id;
  const provider = agents[0]?.agent_id;
  const screens = [
    ["home", "/"], ["runs", "/runs"], ["run-timeline", agents.length ? "/runs/default/relay-chain" : "/runs/lab/nap"], ["run-output", "/runs/default/count-to-forty?tab=output"], ["run-lineage", "/runs/studio/echo-again?tab=lineage"],
    ["inbox-question", `/inbox?ask=${question}`], ["inbox-approval", `/inbox?ask=${approval}`], ["tools", "/tools"], ["tool", "/tools/wharf/count"], ["providers", "/providers"], ...(provider ? [["provider", `/providers/${provider}`]] : []),
    ["worlds", "/worlds"], ["world", "/worlds/studio?file=/brief/storyboard.md"], ["money", "/money"], ["operators", "/operators"], ["audit", "/audit"], ["tokens", "/tokens"], ["system", "/system"],
  ];
  for (const [size, viewport] of [["wide", { width: 1440, height: 900 }], ["narrow", { width: 390, height: 844 }]])
    for (const scheme of ["light", "dark"]) {
      const page = await newPage(browser, { viewport, colorScheme: scheme, reducedMotion: "reduce" });
      await page.goto(core.url);
      await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
      if (only.length === 0 || only.includes("sign-in")) await page.screenshot({ path: `${OUT}sign-in-${size}-${scheme}.png` });
      await signIn(page, core);
      for (const [name, path] of screens.filter(([name]) => only.length === 0 || only.includes(name))) {
        await goto(page, core, path);
        await page.waitForLoadState("networkidle").catch(() => {});
        await page.locator(".beat", { hasText: "Live" }).waitFor({ state: "attached", timeout: 3000 }).catch(() => {});
        await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
        await page.evaluate(neutral, [[core.home, "/srv/wharf"], [dirname(resolve(BIN)), "/usr/local/bin"]]);
        await page.screenshot({ path: `${OUT}${name}-${size}-${scheme}.png` });
      }
      if (page.faults.length) throw new Error(page.faults.join("\n"));
      await page.context().close();
    }
} finally {
  await browser.close();
  await core.stop();
}
