// Pictures of every screen, light and dark, wide and narrow, into docs/console/; of some, if they are named.
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { goto, launch, newPage, signIn } from "./browser.mjs";
import { dirname, resolve } from "node:path";
import { BIN, Core, until } from "./core.mjs";
import { small } from "./png.mjs";
import { seed, seedDemo } from "./seed.mjs";

/** Pictures do not tell of the machine they were taken on. */
function neutral(pairs) {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) for (const [path, name] of pairs) if (path.length > 3) walk.currentNode.nodeValue = walk.currentNode.nodeValue.replaceAll(path, name);
}

/** Takes a picture and keeps it small. */
async function take(page, name) {
  await writeFile(`${OUT}${name}.png`, small(await page.screenshot()));
}

const CHANGED = "dev.test.hostile";
/** An agent whose tool is another one than was approved. */
async function quarantine(core) {
  const agent = fileURLToPath(new URL("hostile/", import.meta.url));
  await core.api("/v1/agents", { body: { folder: agent } });
  await core.api(`/v1/agents/${CHANGED}/approve`, { body: { all: true } });
  await core.api(`/v1/agents/${CHANGED}/start`, { method: "POST" });
  await until("the agent", async () => (await core.api(`/v1/tools/${CHANGED}/write`)).state === "available");
  await core.run(`${CHANGED}/write`, { what: "drift" }, { wait: "20s" });
  await until("the quarantine", async () => (await core.api(`/v1/tools/${CHANGED}/write`)).state === "quarantined");
}

const OUT = fileURLToPath(new URL("../../docs/console/", import.meta.url));
const only = process.argv.slice(2);
await mkdir(OUT, { recursive: true });
const wanted = (name) => only.length === 0 || only.includes(name);
const [core, fresh, changed, browser] = await Promise.all([Core.start({ demo: process.env.WHARF_DEMO !== "no" }), Core.start(), Core.start(), launch()]);

try {
  // What a run gave is forgotten with the core that ran it.
  await core.api("/v1/worlds", { body: { world: "clinic", retain: "digest" } });
  await core.run("wharf/echo", { text: "What only the clinic may know." }, { wait: "10s", world: "clinic", run_id: "echo-withheld" });
  await core.kill();
  await core.again();
  await seed(core);
  const agents = (await core.api("/v1/agents")).items;
  if (agents.length) {
    await until("the agents", async () => (await core.api("/v1/agents")).items.every((a) => a.state === "running"));
    await seedDemo(core);
  }
  if (wanted("tool-quarantined")) await quarantine(changed);
  const asks = await until("the asks", async () => {
    const all = (await core.api("/v1/inbox")).items;
    return all.length >= 4 && all;
  });
  const approval = (asks.find((a) => a.run_id === "write-note") ?? asks.find((a) => a.kind === "approval")).ask_id;
  const question = asks.find((a) => a.run_id === "ask-delivery").ask_id;
  const provider = agents[0]?.agent_id;
  const screens = [
    ["home", "/"], ["runs", "/runs"], ["run-timeline", agents.length ? "/runs/default/relay-chain" : "/runs/lab/nap"], ["run-output", "/runs/default/count-to-forty?tab=output"], ["run-lineage", "/runs/studio/echo-again?tab=lineage"], ["run-withheld", "/runs/clinic/echo-withheld?tab=output"],
    ["inbox-question", `/inbox?ask=${question}`], ["inbox-approval", `/inbox?ask=${approval}`], ["tools", "/tools"], ["tool", "/tools/wharf/count"], ["tool-quarantined", `/tools/${CHANGED}/write`, changed], ["providers", "/providers"], ...(provider ? [["provider", `/providers/${provider}`]] : []),
    ["worlds", "/worlds"], ["world", "/worlds/studio?file=/brief/storyboard.md"], ["world-folders", "/worlds/studio"], ["flows", "/flows"], ["flow", "/flows/digest"], ["flow-graph", "/flows/digest?tab=graph"], ["flow-run", "/runs/studio/digest-price"], ["flow-run-over", "/runs/studio/digest-done"], ["schedules", "/schedules"], ["schedule", "/schedules/beat"], ["triggers", "/triggers"], ["trigger", "/triggers/push"], ["trigger-new", "/triggers?new=file"], ["receivers", "/receivers"], ["receiver", "/receivers/desk"], ["money", "/money"], ["operators", "/operators"], ["audit", "/audit"], ["tokens", "/tokens"], ["token-narrow", "/tokens?new=narrower"], ["system", "/system"],
  ];
  for (const [size, viewport] of [["wide", { width: 1440, height: 900 }], ["narrow", { width: 390, height: 844 }]])
    for (const scheme of ["light", "dark"]) {
      const page = await newPage(browser, { viewport, colorScheme: scheme, reducedMotion: "reduce" });
      await page.goto(core.url);
      await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
      if (wanted("sign-in")) await take(page, `sign-in-${size}-${scheme}`);
      if (wanted("welcome")) {
        await signIn(page, fresh);
        await page.getByRole("heading", { name: "Welcome to Wharf" }).waitFor();
        await page.locator(".beat", { hasText: "Live" }).waitFor({ state: "attached" });
        await take(page, `welcome-${size}-${scheme}`);
      }
      await signIn(page, core);
      if (wanted("tool-quarantined")) await signIn(page, changed);
      for (const [name, path, of = core] of screens.filter(([name]) => wanted(name))) {
        await goto(page, of, path);
        await page.waitForLoadState("networkidle", { timeout: 5000 }).catch(() => {});
        await page.locator(".beat", { hasText: "Live" }).waitFor({ state: "attached", timeout: 3000 }).catch(() => {});
        await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
        await page.evaluate(neutral, [[core.home, "/srv/wharf"], [dirname(resolve(BIN)), "/usr/local/bin"]]);
        await take(page, `${name}-${size}-${scheme}`);
      }
      if (page.faults.length) throw new Error(page.faults.join("\n"));
      await page.context().close();
    }
} finally {
  await browser.close();
  await Promise.all([core.stop(), fresh.stop(), changed.stop()]);
}
