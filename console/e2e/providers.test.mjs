// Providers that are steered and watched, files on the timeline and in the lineage, what helps a core that is not well.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, signIn } from "./browser.mjs";
import { Core, otherVersion, until } from "./core.mjs";

const AGENT = "dev.test.hostile";
let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
  await core.api("/v1/agents", { body: { folder: fileURLToPath(new URL("./hostile", import.meta.url)) } });
  await core.api(`/v1/agents/${AGENT}/approve`, { body: { all: true } });
  await core.api(`/v1/agents/${AGENT}/start`, { method: "POST" });
  await until("the agent", async () => (await core.api(`/v1/tools/${AGENT}/write`)).state === "available");
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

test("c015_a_provider_is_drained_by_a_named_confirmation_and_started_again", async () => {
  const page = await newPage(browser);
  await core.run(`${AGENT}/write`, { what: "slow" }, { run_id: "slow-1" });
  await until("the call", async () => (await core.api("/v1/runs/slow-1")).status === "running");
  await signIn(page, core, `/providers/${AGENT}`);
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByRole("heading", { name: `Drain ${AGENT}?` }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("dialog").getByRole("button", { name: "Drain it" }).press("Enter");
  await page.getByText("draining").first().waitFor();
  const late = await core.run(`${AGENT}/write`, { what: "markup" }, { run_id: "too-late", wait: "20s" });
  assert.equal(late.error?.code, "tool.unavailable", "nothing new is taken");
  assert.equal((await core.api("/v1/runs/slow-1")).status, "running", "what is under way goes on");
  const done = await until("the end of the call", async () => {
    const run = await core.api("/v1/runs/slow-1");
    return run.ended_at && run;
  });
  assert.equal(done.status, "succeeded");
  await page.getByText("stopped").first().waitFor();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await until("the agent again", async () => (await core.api(`/v1/providers/${AGENT}`)).state === "running");
  assert.deepEqual(page.faults, []);
});

test("c015_memory_and_processor_are_a_chart_and_a_table", async () => {
  const page = await newPage(browser);
  await until("the agent", async () => (await core.api(`/v1/providers/${AGENT}`)).state === "running");
  const usage = await until("a measurement", async () => {
    const u = await core.api(`/v1/providers/${AGENT}/usage`);
    return u.points.length > 0 && u;
  }, 60_000);
  assert.ok(usage.points[0].memory_bytes > 1024 * 1024, `${usage.points[0].memory_bytes} bytes of memory`);
  assert.ok(usage.points[0].processes >= 1);
  await signIn(page, core, `/providers/${AGENT}`);
  await page.getByRole("img", { name: "Memory of its processes" }).waitFor();
  await page.getByRole("button", { name: "As a table" }).first().click();
  await page.getByRole("region", { name: "Memory of its processes" }).getByRole("cell", { name: /MiB/ }).first().waitFor();
  await page.getByRole("button", { name: "Last day" }).click();
  await page.waitForURL(/range=24h/);
  assert.deepEqual(await barriers(page), []);
  assert.deepEqual(page.faults, []);
});

test("c012_c016_files_stand_on_the_timeline_and_lineage_goes_further", async () => {
  const page = await newPage(browser);
  await core.api("/v1/worlds/default/files/a.txt", { method: "PUT", body: "first", type: "text/plain" });
  for (const [from, to] of [["/a.txt", "/b.txt"], ["/b.txt", "/c.txt"], ["/c.txt", "/d.txt"]]) await core.run("wharf/echo", { "text.world": from }, { wait: "20s", run_id: `echo-${to.slice(1, 2)}`, outputs: { "text.world": to } });
  const run = await core.api("/v1/runs/echo-b");
  assert.deepEqual(run.transfers.map((t) => [t.direction, t.path, t.bytes]), [["in", "/a.txt", 5], ["out", "/b.txt", run.transfers[1]?.bytes]]);
  await signIn(page, core, "/runs/default/echo-b?tab=timeline");
  const line = page.getByRole("table", { name: "Timeline of the run" });
  await line.getByText("handed in, 5 B").first().waitFor();
  await line.getByText(/handed out/).first().waitFor();
  await goto(page, core, "/worlds/default?file=/d.txt&tab=lineage");
  const graph = page.getByRole("region", { name: "Lineage" });
  await graph.locator("text", { hasText: "/c.txt" }).waitFor();
  assert.equal(await graph.locator("text", { hasText: "echo-b" }).count(), 0, "one run away");
  await page.getByRole("link", { name: "3 runs away" }).click();
  await page.waitForURL(/depth=3/);
  await graph.locator("text", { hasText: "echo-b" }).waitFor();
  await graph.locator("text", { hasText: "/a.txt" }).waitFor();
  assert.deepEqual(await barriers(page), []);
  assert.deepEqual(page.faults, []);
});

test("c013_an_approval_below_a_parent_can_hold_for_all_of_it", async () => {
  const page = await newPage(browser);
  await core.api("/v1/worlds", { body: { world: "gated", policy: [{ tool: `${AGENT}/write`, when: "always", approve: true }] } });
  await core.run(`${AGENT}/write`, { what: "family" }, { run_id: "clan", world: "gated" });
  await signIn(page, core, "/inbox");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByRole("button", { name: "Allow it once" }).click();
  // Of the three that it starts one is looked at, and the two others pass.
  await page.getByRole("button", { name: "Allow for this parent" }).waitFor();
  await page.getByText(new RegExp(`${AGENT}/write`)).first().waitFor();
  await page.getByRole("button", { name: "Allow for this parent" }).click();
  await page.getByText("Later runs of this tool that the same caller starts within the same parent run").waitFor();
  await page.getByRole("button", { name: "Allow for this parent now" }).click();
  await page.getByText("Allowed.").first().waitFor();
  await core.api("/v1/runs/clan/cancel?world=gated", { body: {} });
  assert.deepEqual(page.faults, []);
});

test("c012_what_a_run_started_is_opened_as_far_as_one_looks", async () => {
  const page = await newPage(browser);
  await core.run(`${AGENT}/write`, { what: "family" }, { run_id: "family", wait: "60s" });
  const tree = await core.api("/v1/runs/family/tree?depth=5");
  assert.equal(tree.items.length, 15, "three lines of five");
  // The core's own answers, by windows that are small enough to see more than one of them.
  await page.route("**/tree?**", (route) => route.continue({ url: route.request().url().replace("limit=200", "limit=2") }));
  await signIn(page, core, "/runs/default/family");
  const line = page.getByRole("table", { name: "Timeline of the run" });
  const shown = (items) => items.map((i) => line.locator(`a[href*="${i.run.run_id}"]`));
  const at = (depth) => tree.items.filter((i) => i.depth === depth);
  const count = async (items) => (await Promise.all(shown(items).map((l) => l.count()))).reduce((a, b) => a + b, 0);
  await until("two lines, three runs down", async () => (await count(at(3))) === 2);
  assert.deepEqual([await count(at(1)), await count(at(4))], [2, 0]);
  await line.getByRole("button", { name: "Show what it started" }).first().click();
  await until("the fourth", async () => (await count(at(4))) === 1);
  await line.getByRole("button", { name: "Show what it started" }).first().click();
  await until("the fifth", async () => (await count(at(5))) === 1);
  await line.getByRole("button", { name: "Show more" }).click();
  await until("the third line", async () => (await count(at(1))) === 3);
  assert.equal(await count(at(5)), 1, "what was opened stays open");
  assert.equal(await line.getByRole("button", { name: "Show more" }).count(), 0);
  assert.deepEqual(await barriers(page), []);
  assert.deepEqual(page.faults, []);
});

test("c019_what_the_doctor_finds_stands_beside_what_to_do", async () => {
  const page = await newPage(browser);
  // The answer is the core's own, of an agent that ended too often.
  await page.route("**/v1/doctor", async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    const check = body.checks.find((c) => c.name === "agents");
    Object.assign(check, { verdict: "warn", text: `${AGENT} is crashed`, fixes: [{ text: "See what it said.", command: `wharf agents logs ${AGENT}` }] });
    await route.fulfill({ response: answer, json: body });
  });
  await signIn(page, core, "/system");
  await page.getByText("See what it said.").waitFor();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: core.url });
  await page.getByRole("button", { name: `Copy: wharf agents logs ${AGENT}` }).click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `wharf agents logs ${AGENT}`);
  assert.deepEqual(await barriers(page), []);
});

test("c033_words_of_our_own_are_explained_by_focus_and_tap", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  for (const [path, word, says] of [["/worlds", "world", /owns data, budget and rights/], ["/providers", "provider", /executes a tool's runs/], ["/inbox", "ask", /Something a run waits for/]]) {
    await goto(page, core, path);
    await page.locator(".lead-line").getByRole("button", { name: word }).focus();
    assert.match(await page.getByRole("tooltip").innerText(), says, path);
  }
  await goto(page, core, "/runs/default/echo-b?tab=money");
  await page.getByRole("button", { name: "Set aside for each attempt" }).click();
  assert.match(await page.getByRole("tooltip").innerText(), /Money set aside/);
});

test("c040_a_core_of_another_version_is_noticed_and_the_page_offers_to_load_again", async (t) => {
  const own = (await core.api("/v1/system")).version;
  const other = own.replaceAll(/\d/g, "9");
  const folder = await mkdtemp(join(tmpdir(), "wharf-other-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const program = join(folder, "wharf");
  await otherVersion(program, own, other);
  const page = await newPage(browser);
  await signIn(page, core, "/runs");
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  await core.kill();
  await page.getByText("Reconnecting. What you see is").waitFor();
  await core.again(program);
  assert.equal((await core.api("/v1/system")).version, other);
  const banner = page.getByRole("status").filter({ hasText: `from version ${own} to ${other} while this page was open` });
  await banner.waitFor();
  assert.deepEqual(await barriers(page), []);
  await Promise.all([page.waitForEvent("load"), banner.getByRole("button", { name: "Load the page again" }).click()]);
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  await page.getByText(`· ${other}`).waitFor();
  assert.equal(await banner.count(), 0);
  assert.deepEqual(page.faults, []);
  await core.kill();
  await core.again();
});
