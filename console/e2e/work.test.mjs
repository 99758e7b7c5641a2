// What people do here: answer, approve, try a tool, upload, watch a run through a crash; and what a hostile tool writes.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, signIn, watch } from "./browser.mjs";
import { Core, until } from "./core.mjs";

/** With WHARF_E2E_FULL everything has its full size: a file of 1 GiB, a line of 8 MiB, 100,000 runs. It takes minutes. */
const FULL = !!process.env.WHARF_E2E_FULL;
const MIB = FULL ? 1024 : 40;
const MANY = FULL ? 100_000 : 1200;
const PATIENCE = FULL ? 900_000 : 60_000;

let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

const ended = (id) => until(`the end of ${id}`, async () => {
  const run = await core.api(`/v1/runs/${id}`);
  return run.ended_at && run;
});

test("c013_a_question_is_a_form_and_is_answered_by_keyboard", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/inbox");
  await page.getByText("Nothing waits for you").waitFor();
  const schema = { type: "object", required: ["name", "n"], properties: { name: { type: "string", title: "Name", maxLength: 40 }, n: { type: "integer", title: "How many", minimum: 1 }, kind: { enum: ["big", "small"], title: "Kind" } } };
  await core.run("wharf/ask", { question: "What shall it be?", schema }, { run_id: "q1" });
  await page.getByRole("heading", { name: "What shall it be?" }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByLabel("How many").focus();
  await page.keyboard.type("0");
  await page.getByRole("button", { name: "Answer" }).press("Enter");
  await page.getByText("The smallest is 1.").waitFor();
  await page.getByLabel("How many").fill("12345678901234567890");
  await page.getByLabel("Name").fill("Ada");
  await page.getByRole("radio", { name: "small" }).press("Space");
  await page.getByRole("button", { name: "Answer" }).press("Enter");
  const run = await ended("q1");
  assert.equal(run.outputs.status, "answered");
  assert.deepEqual({ ...run.outputs.answer, n: undefined }, { kind: "small", name: "Ada", n: undefined });
  await page.getByText(/answered|Nothing waits/).first().waitFor();
  assert.deepEqual(page.faults, []);
});

test("c013_an_approval_names_what_it_allows", async () => {
  const page = await newPage(browser);
  await core.run("wharf/approve-me", {}, { run_id: "a1" });
  await signIn(page, core, "/inbox");
  await page.getByRole("heading", { name: /approve-me/ }).waitFor();
  await page.getByRole("region", { name: "The exact arguments" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Allow for this parent" }).count(), 0, "no other run has started it");
  await page.locator("h1").click();
  await page.keyboard.press("a");
  await page.getByRole("dialog").getByRole("button", { name: "Allow it once" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Allow it once" }).press("Enter");
  assert.equal((await ended("a1")).status, "succeeded");
  await core.run("wharf/approve-me", {}, { run_id: "a2" });
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByLabel("Reason").fill("not today");
  await page.getByRole("button", { name: "Deny it" }).click();
  assert.equal((await ended("a2")).status, "refused");
});

test("c013_long_arguments_are_opened_before_they_are_allowed_and_changed_ones_are_refused", async () => {
  const page = await newPage(browser);
  await core.api("/v1/worlds", { body: { world: "strict", policy: [{ tool: "wharf/echo", when: "always", approve: true }] } });
  await core.run("wharf/echo", { text: "a long argument. ".repeat(400), last: "the very end" }, { run_id: "long", world: "strict" });
  await signIn(page, core, "/inbox");
  await page.getByRole("heading", { name: /wharf\/echo/ }).waitFor();
  const allow = page.getByRole("button", { name: "Allow once" });
  assert.ok(await allow.isDisabled());
  await page.getByRole("button", { name: /Open all/ }).click();
  assert.ok(await allow.isEnabled());
  assert.match(await page.getByRole("region", { name: "The exact arguments" }).innerText(), /the very end/);
  // What is shown is what is signed: a page that was given other digests is refused.
  await page.route("**/v1/approvals/*/decide", async (route) => {
    const body = JSON.parse(route.request().postData());
    assert.ok(body.args_digest && body.tool_hash, "the decision carries what was shown");
    await route.continue({ postData: JSON.stringify({ ...body, args_digest: "00".repeat(32) }) });
  });
  await allow.click();
  await page.getByRole("button", { name: "Allow it once" }).click();
  await page.getByRole("dialog").getByText("ask.changed").waitFor();
  assert.equal((await core.api("/v1/runs/long?world=strict")).status, "waiting");
  await page.unroute("**/v1/approvals/*/decide");
  await page.getByRole("button", { name: "Allow it once" }).click();
  await until("the end", async () => (await core.api("/v1/runs/long?world=strict")).status === "succeeded");
});

test("c013_decided_elsewhere_the_card_says_so_and_the_focus_stays", async () => {
  const page = await newPage(browser);
  await core.run("wharf/ask", { question: "First?", schema: { type: "string" } }, { run_id: "e1" });
  await signIn(page, core, "/inbox");
  await page.getByRole("heading", { name: "First?" }).waitFor();
  const ask = (await core.api("/v1/inbox")).items[0];
  await goto(page, core, `/inbox?ask=${ask.ask_id}`);
  await page.getByRole("textbox").focus();
  await page.keyboard.type("half an ans");
  await core.run("wharf/ask", { question: "Second?" }, { run_id: "e2" });
  await page.getByText("Second?").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), "TEXTAREA");
  assert.equal(await page.getByRole("textbox").inputValue(), "half an ans");
  await core.api(`/v1/questions/${ask.ask_id}/answer`, { body: { value: "other" } });
  await page.getByText(/It was answered|It is decided/).waitFor();
  const second = (await core.api("/v1/inbox")).items.find((a) => a.run_id === "e2");
  await core.api(`/v1/questions/${second.ask_id}/answer`, { body: { status: "declined" } });
});

test("c013_a_question_for_a_file_takes_one_that_is_chosen", async () => {
  const page = await newPage(browser);
  const schema = { type: "object", required: ["plan"], properties: { plan: { type: "string", title: "Plan", "x-wharf-file": true } } };
  await core.run("wharf/ask", { question: "Which plan?", schema }, { run_id: "file-1" });
  await signIn(page, core, "/inbox");
  await page.getByRole("heading", { name: "Which plan?" }).waitFor();
  await page.getByRole("article").locator("input[type=file]").setInputFiles({ name: "plan.txt", mimeType: "text/plain", buffer: Buffer.from("first this, then that") });
  await until("the path", async () => (await page.getByRole("textbox", { name: "Plan" }).inputValue()) === "/uploads/plan.txt");
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("button", { name: "Answer" }).click();
  assert.deepEqual((await ended("file-1")).outputs.answer, { plan: "/uploads/plan.txt" });
  assert.equal((await core.api("/v1/worlds/default/artifacts?prefix=/uploads/plan.txt")).items.length, 1);
  assert.deepEqual(page.faults, []);
});

test("c014_a_tool_is_tried_and_its_run_is_live_on_the_page", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tools/wharf/count");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("This is needed.").waitFor();
  await page.getByLabel("n", { exact: true }).fill("5");
  assert.match(await page.getByLabel("Inputs as JSON").inputValue(), /"n": 5/);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("[data-run] [role=status]", { hasText: "succeeded" }).waitFor();
  assert.match(await page.locator("[data-run] .json").innerText(), /sum: 15/);
  assert.deepEqual(page.faults, []);
});

test("c016_files_are_put_seen_and_deleted", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/worlds/default");
  await page.locator("input[type=file]").setInputFiles({ name: "page.html", mimeType: "text/html", buffer: Buffer.from("<script>window.hacked = 1</script>") });
  await page.getByRole("link", { name: "page.html" }).click();
  await page.getByText("<script>window.hacked = 1</script>").waitFor();
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
  await page.locator("input[type=file]").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: png });
  await page.getByRole("link", { name: "dot.png" }).click();
  const image = page.getByRole("img", { name: "Preview of /dot.png" });
  await image.waitFor();
  await until("the picture", () => image.evaluate((i) => i.naturalWidth === 1));
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  assert.equal(download.suggestedFilename(), "dot.png");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the file" }).click();
  await page.getByRole("link", { name: "dot.png" }).waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(page.faults, []);
});

test("c016_a_large_file_goes_in_parts", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/worlds/default");
  const parts = [];
  page.on("request", (r) => r.url().includes("/parts/") && parts.push(r.url()));
  await page.locator("input[type=file]").waitFor({ state: "attached" });
  // The file is made in the page: what a person drops is a file of the browser, too.
  await page.evaluate((mib) => {
    const block = new Uint8Array(1024 * 1024);
    const file = new File(Array.from({ length: mib }, (_, i) => block.map((_b, j) => (i * 7 + j) & 255)), "large.bin", { type: "application/octet-stream" });
    const given = new DataTransfer();
    given.items.add(file);
    const input = document.querySelector("input[type=file]");
    input.files = given.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }, MIB);
  await page.getByRole("link", { name: "large.bin" }).waitFor({ timeout: PATIENCE });
  assert.equal(parts.length, Math.ceil(MIB / 16));
  const file = (await core.api("/v1/worlds/default/artifacts?prefix=/large.bin")).items[0];
  assert.equal(file.bytes, MIB * 1024 * 1024);
  await page.getByRole("link", { name: "large.bin" }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  // What came down is what went up, byte by byte.
  let at = 0;
  for await (const piece of await download.createReadStream()) {
    for (let i = 0; i < piece.length; i += piece.length > 65_536 ? 4099 : 61) assert.equal(piece[i], (Math.floor((at + i) / 1_048_576) * 7 + ((at + i) % 1_048_576)) & 255, `byte ${at + i}`);
    at += piece.length;
  }
  assert.equal(at, MIB * 1024 * 1024);
});

test("c040_kill_9_under_an_open_page_loses_and_doubles_nothing", async () => {
  const page = await newPage(browser);
  await core.run("wharf/ask", { question: "Still there?" }, { run_id: "held" });
  await signIn(page, core, "/runs/default/held?tab=events");
  await page.getByRole("cell", { name: "question" }).waitFor();
  await core.kill();
  await page.getByText("Reconnecting. What you see is").waitFor();
  await core.again();
  await page.getByText("Reconnecting. What you see is").waitFor({ state: "detached" });
  const ask = (await core.api("/v1/inbox")).items.find((a) => a.run_id === "held");
  await core.api(`/v1/questions/${ask.ask_id}/answer`, { body: { value: "yes" } });
  await page.getByRole("cell", { name: "finished" }).waitFor();
  const shown = await page.evaluate(() => [...document.querySelectorAll("[role=region][aria-label=Events] tbody tr:not(.space) td:first-child")].map((td) => Number(td.textContent)));
  const all = (await core.api("/v1/runs/held/trace?latest=1000")).items.filter((e) => !["text", "progress", "log", "partial"].includes(e.event ?? e.type)).map((e) => e.seq);
  assert.deepEqual(shown, [...new Set(shown)].sort((a, b) => a - b), "in order, none twice");
  assert.deepEqual(shown, all);
  assert.deepEqual(page.faults, []);
});

test("c040_a_hostile_tool_is_only_text", async (t) => {
  await core.api("/v1/agents", { body: { folder: fileURLToPath(new URL("./hostile", import.meta.url)) } });
  await core.api("/v1/agents/dev.test.hostile/approve", { body: { all: true } });
  await core.api("/v1/agents/dev.test.hostile/start", { method: "POST" });
  await until("the hostile agent", async () => (await core.api("/v1/agents/dev.test.hostile")).state === "running" && (await core.api("/v1/tools/dev.test.hostile/write")).state === "available");
  const page = await newPage(browser);
  await signIn(page, core);
  const start = async (what) => {
    await core.run("dev.test.hostile/write", { what }, { run_id: `h-${what}` });
    await ended(`h-${what}`);
    await goto(page, core, `/runs/default/h-${what}?tab=output`);
    await page.getByRole("region", { name: "Output" }).waitFor();
  };
  await t.test("markup, escapes and overrides", async () => {
    await start("markup");
    const output = page.getByRole("region", { name: "Output" });
    await output.getByText("<script>window.hacked = 1</script>", { exact: false }).waitFor();
    assert.equal(await output.locator("script, img, a").count(), 0);
    assert.equal(await output.locator(".f1", { hasText: "red" }).count(), 1);
    const text = await output.innerText();
    assert.match(text, /override \\u\{202e\}evil\\u\{202c\} zero\\u\{200b\}width bell\\x07/);
    assert.ok(!/[\u0000-\u0008\u000b-\u001f\u200b\u202a-\u202e\u2066-\u2069]/.test(text), "nothing that is not seen");
    assert.ok(!text.includes("evil.example"), "no link of its making");
    const json = await page.locator(".json").first().innerText();
    assert.match(json, /big: 12345678901234567890/, "numbers as written");
    assert.deepEqual(await barriers(page), []);
  });
  await t.test(`a line of ${FULL ? "eight" : "seven"} MiB is folded`, async () => {
    await start(FULL ? "longest" : "long");
    await page.getByRole("button", { name: /more characters/ }).last().click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    assert.ok((await page.evaluate(() => document.body.innerText.length)) < 200_000);
  });
  await t.test("ten thousand lines are searched and scrolled", async () => {
    await start("many");
    await page.getByText("10,000 lines").waitFor();
    await page.getByLabel("Search the output").fill("line 9876");
    await page.getByLabel("Search the output").press("Enter");
    await page.locator(".ln.hit", { hasText: "line 9876" }).waitFor();
    assert.ok((await page.locator(".ln").count()) < 200, "only what is in view is drawn");
  });
  await t.test("its name and its definition", async () => {
    for (const path of ["/tools/dev.test.hostile/write", "/providers/dev.test.hostile", "/providers", "/tools"]) {
      await goto(page, core, path);
      await page.waitForLoadState("networkidle").catch(() => {});
      assert.equal(await page.locator("main script, main img").count(), 0, path);
    }
  });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(page.faults, []);
  assert.deepEqual([...page.hosts], [new URL(core.url).host]);
});

test("c040_a_million_values_are_drawn_as_far_as_one_looks", async () => {
  const page = await newPage(browser);
  const cube = Array(50).fill(Array(50).fill(Array(50).fill(2)));
  await core.run("wharf/echo", { flat: Array(100_000).fill(1), cube }, { run_id: "many-out", wait: "60s" });
  // As much as inputs may be; what comes back is too much for an output, and the run says so.
  await core.run("wharf/echo", { flat: Array(900_000).fill(1), cube }, { run_id: "million", wait: "60s" });
  await signIn(page, core);
  for (const [path, flat] of [["many-out?tab=output", "100,000"], ["million?tab=inputs", "900,000"]]) {
    await goto(page, core, `/runs/default/${path}`);
    await page.getByRole("button", { name: "49: [ 50 items ]" }).first().waitFor();
    await page.getByRole("button", { name: `flat: [ ${flat} items ]` }).click();
    await page.getByRole("button", { name: /… \d+,900 more/ }).waitFor();
    assert.ok((await page.locator(".json *").count()) < 2_000, "only what is open is drawn");
  }
  await page.getByText("tool.output_too_large").first().waitFor();
  assert.deepEqual(page.faults, []);
  // They were kept in memory only, where they leave less room for others.
  for (const id of ["many-out", "million"]) await core.api(`/v1/runs/${id}`, { method: "DELETE" });
});

test("c011_lists_do_not_jump_and_bulk_cancel_names_what_it_does", async () => {
  const page = await newPage(browser);
  for (let i = 0; i < 3; i += 1) await core.run("wharf/sleep", { ms: 600_000 }, { run_id: `sleep-${i}` });
  await signIn(page, core, "/runs?tool=wharf/sleep");
  await page.getByRole("cell", { name: "wharf/sleep" }).nth(2).waitFor();
  await page.locator(".fillcard").hover();
  await core.run("wharf/sleep", { ms: 600_000 }, { run_id: "sleep-new" });
  await page.getByRole("button", { name: "1 new" }).click();
  await page.getByRole("link", { name: "sleep-new" }).waitFor();
  const dry = { until: new Date().toISOString(), dry: true, tool: "wharf/sleep" };
  assert.equal((await core.api("/v1/runs/cancel", { body: dry })).matched, 4);
  // What is over, or cannot be named to the core, is not offered: a cancel never takes more than the list shows.
  for (const query of ["status=succeeded", "status=failed,refused", "over_hold=true"]) {
    await goto(page, core, `/runs?${query}`);
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Cancel these" }).count(), 0, query);
  }
  await goto(page, core, "/runs?tool=wharf/sleep&since=24h&status=running,succeeded");
  await page.getByRole("button", { name: "Cancel these" }).click();
  await page.getByRole("heading", { name: "Cancel 4 open runs?" }).waitFor();
  await page.getByText("tool: wharf/sleep").waitFor();
  await page.getByRole("button", { name: "Cancel 4 runs" }).click();
  assert.equal((await ended("sleep-new")).status, "canceled");
});

test("c011_thousands_of_runs_are_scrolled_in_windows", async () => {
  for (let i = 0; i < MANY; i += 40) await Promise.all(Array.from({ length: 40 }, (_, j) => core.run("wharf/count", { n: 1, delay_ms: 0 }, { run_id: `many-${i + j}` })));
  const page = await newPage(browser);
  await signIn(page, core, FULL ? "/runs?tool=wharf/count" : "/runs?tool=wharf/count&id_prefix=many-");
  await page.getByText(FULL ? "10,000+ runs" : /1,000\+? runs|1,200 runs/).waitFor();
  const box = page.getByRole("region", { name: "Runs" });
  const pages = [];
  page.on("request", (r) => /\/v1\/runs\?/.test(r.url()) && pages.push(r.url()));
  const down = () => box.evaluate((el) => el.scrollTo({ top: el.scrollHeight }));
  await until("the second window", async () => {
    await down();
    return pages.some((u) => u.includes("cursor="));
  });
  await until("more rows", async () => {
    await down();
    return Number(await box.locator("tbody tr[aria-rowindex]").last().getAttribute("aria-rowindex")) > 300;
  });
  assert.ok((await box.locator("tbody tr").count()) < 120, "only what is in view is drawn");
  assert.deepEqual(page.faults, []);
});

test("c012_run_again_and_copy_as_a_command", async () => {
  const page = await newPage(browser);
  await core.run("wharf/count", { n: 3, delay_ms: 0 }, { run_id: "again-1", wait: "10s", timeout_ms: 90_000, budget_micro: 250_000 });
  await signIn(page, core, "/runs/default/again-1");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: core.url });
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Copy as wharf run …" }).click();
  await page.getByText("Copied").waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^wharf run wharf\/count .*n=3.* --timeout 90s --budget-micro 250000$/);
  await page.getByText("An attempt may run").waitFor();
  await page.getByText("1 m 30 s").first().waitFor();
  await page.getByRole("button", { name: "Run again", exact: true }).click();
  await page.waitForURL((url) => /^\/runs\/default\//.test(url.pathname) && !url.pathname.endsWith("again-1"));
  await page.locator("[role=status]", { hasText: "succeeded" }).waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Run again with changes" }).click();
  await page.getByRole("dialog").getByLabel("n", { exact: true }).fill("4");
  const [seconds, dollars] = [/Longest an attempt may run/, /Most it may cost/].map((label) => page.getByRole("dialog").getByLabel(label));
  assert.deepEqual([await seconds.inputValue(), await dollars.inputValue()], ["90", "0.25"], "it begins with the limits it had");
  await dollars.fill("");
  await page.getByText("It had a budget. Give one.").waitFor();
  await dollars.fill("0.5");
  const before = page.url();
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL((url) => url.href !== before);
  await page.goto(`${page.url().split("?")[0]}?tab=output`);
  await page.locator(".json", { hasText: "sum: 10" }).waitFor();
  const changed = await core.api(`/v1/runs/${new URL(page.url()).pathname.split("/").at(-1)}`);
  assert.deepEqual([changed.timeout_ms, changed.budget_micro], [90_000, 500_000]);
});

test("c012_what_was_not_stored_whole_is_marked_and_demanded", async () => {
  const page = await newPage(browser);
  await core.run("wharf/echo", { text: "https://a.example/x?key=c4nary", note: "stays" }, { run_id: "stripped-1", wait: "10s", timeout_ms: 77_000 });
  await signIn(page, core, "/runs/default/stripped-1");
  await page.getByRole("button", { name: "Run again", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("have to be given again: text").waitFor();
  assert.ok(!(await dialog.innerText()).includes("a.example"), "what is left of it is not offered");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await dialog.getByText("text was not stored whole. Give it again.").first().waitFor();
  const field = dialog.locator("textarea").first();
  await field.fill('{ "note": "stays", "text": "plain now" }');
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL((url) => /^\/runs\/default\//.test(url.pathname) && !url.pathname.endsWith("stripped-1"));
  const made = await ended(new URL(page.url()).pathname.split("/").at(-1));
  assert.deepEqual(made.outputs, { note: "stays", text: "plain now" });
  assert.deepEqual(page.faults, []);
});

test("c016_an_upload_that_broke_off_goes_on_in_another_tab", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/worlds/default");
  const give = (tab) => tab.evaluate(() => {
    const block = new Uint8Array(1024 * 1024).map((_, j) => (j * 13) & 255);
    const file = new File(Array.from({ length: 40 }, () => block), "broken.bin", { type: "application/octet-stream", lastModified: 1_700_000_000_000 });
    const given = new DataTransfer();
    given.items.add(file);
    const input = document.querySelector("input[type=file]");
    input.files = given.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await page.locator("input[type=file]").waitFor({ state: "attached" });
  // The connection breaks at the second part, and the tab is closed.
  let stopped;
  const broken = new Promise((go) => (stopped = go));
  await page.route("**/parts/2?**", async (route) => {
    // Left open, it would go on when the tab is closed.
    await route.abort("connectionreset");
    stopped();
  });
  await give(page);
  await broken;
  const other = await page.context().newPage();
  watch(other);
  await page.close();
  const sent = [];
  other.on("request", (r) => /\/parts\/\d+/.test(r.url()) && sent.push(Number(/parts\/(\d+)/.exec(r.url())[1])));
  await other.goto(`${core.url}/worlds/default`);
  await other.locator("input[type=file]").waitFor({ state: "attached" });
  await give(other);
  await other.getByRole("link", { name: "broken.bin" }).waitFor({ timeout: PATIENCE });
  assert.deepEqual(sent, [2, 3], "the first part is not sent again");
  assert.equal((await core.api("/v1/worlds/default/artifacts?prefix=/broken.bin")).items[0].bytes, 40 * 1024 * 1024);
  assert.deepEqual(await other.evaluate(() => Object.keys(localStorage).filter((k) => k.startsWith("wharf.upload"))), [], "nothing of it is kept");
  assert.deepEqual(other.faults, []);
  await other.context().close();
});

test("c004_sound_goes_on_past_the_end_of_its_ticket", async () => {
  const page = await newPage(browser);
  // A second of silence.
  const samples = 8000;
  const wav = Buffer.alloc(44 + samples);
  wav.write("RIFF", 0); wav.writeUInt32LE(36 + samples, 4); wav.write("WAVEfmt ", 8); wav.writeUInt32LE(16, 16); wav.writeUInt16LE(1, 20); wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(8000, 24); wav.writeUInt32LE(8000, 28); wav.writeUInt16LE(1, 32); wav.writeUInt16LE(8, 34); wav.write("data", 36); wav.writeUInt32LE(samples, 40); wav.fill(128, 44);
  await core.api("/v1/worlds/default/files/still.wav", { method: "PUT", body: wav, type: "audio/wav" });
  const tickets = [];
  page.on("request", (r) => r.method() === "POST" && r.url().endsWith("/tickets") && tickets.push(r.url()));
  await signIn(page, core, "/worlds/default?file=/still.wav");
  const sound = page.locator("audio");
  await until("the sound", () => sound.evaluate((a) => a.readyState >= 1 && a.duration > 0.9));
  const first = await sound.evaluate((a) => a.src);
  await sound.evaluate((a) => (a.currentTime = 0.5));
  // The core takes a ticket for five minutes; what the browser hears then is an error.
  await page.clock.install({ time: Date.now() + 300_000 }).catch(() => {});
  await sound.evaluate((a) => a.dispatchEvent(new Event("error")));
  await until("another ticket", async () => (await sound.evaluate((a) => a.src)) !== first);
  assert.equal(tickets.length, 2);
  await until("the same place", () => sound.evaluate((a) => Math.abs(a.currentTime - 0.5) < 0.05));
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c040_kill_9_under_a_run_that_writes_loses_and_doubles_nothing", async () => {
  const page = await newPage(browser);
  await core.run("wharf/count", { n: 300, delay_ms: 20 }, { run_id: "writes" });
  await signIn(page, core, "/runs/default/writes?tab=output");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: core.url });
  const lines = async () => Number(/^([\d,]+) lines?/.exec(await page.locator(".output .bar").getByText(/lines?, /).innerText())?.[1].replace(",", "") ?? 0);
  await page.getByRole("region", { name: "Output" }).waitFor();
  await until("some lines", async () => (await lines()) > 20);
  await core.kill();
  await page.getByText("Reconnecting. What you see is").waitFor();
  const before = await lines();
  assert.ok(before < 300, "it was under way");
  await core.again();
  const run = await ended("writes");
  await page.locator("[role=status]", { hasText: run.status }).first().waitFor();
  // What the page has is what the core wrote down, piece by piece.
  const text = (await core.api("/v1/runs/writes/trace?latest=1000&types=text")).items.map((e) => e.text).join("");
  const count = text.split("\n").filter(Boolean).length;
  assert.ok(count >= before, `${count} lines are kept, ${before} were shown before the end`);
  await until("all that was kept", async () => (await lines()) === count);
  await page.getByRole("button", { name: "Copy the output" }).click();
  await page.getByText("Copied").waitFor();
  assert.equal((await page.evaluate(() => navigator.clipboard.readText())).trim(), text.trim());
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c012_a_run_with_files_is_copied_as_it_was_and_a_retry_says_when", async () => {
  const page = await newPage(browser);
  await core.api("/v1/worlds", { body: { world: "shop" } });
  await core.api("/v1/worlds/shop/files/in/a.txt", { method: "PUT", body: "hello", type: "text/plain" });
  await core.run("wharf/echo", { "text.world": "/in/a.txt" }, { run_id: "with-files", world: "shop", wait: "20s", outputs: { "text.world": "/out/b.txt" } });
  await signIn(page, core, "/runs/shop/with-files");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: core.url });
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Copy as wharf run …" }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "wharf run wharf/echo text.world=/in/a.txt --out text.world=/out/b.txt --world shop --timeout 1h");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await until("the other command", () => page.evaluate(async () => (await navigator.clipboard.readText()).startsWith("curl")));
  const body = JSON.parse(/-d '(.*)'$/.exec(await page.evaluate(() => navigator.clipboard.readText()))[1]);
  // The core takes it as it stands.
  const made = await core.api("/v1/runs?wait=20s", { body });
  assert.equal(made.status, "succeeded");
  // A retry comes within a second or two: the answer is the core's own of a run that is open, with a later one in it.
  await core.run("wharf/sleep", { ms: 600_000 }, { run_id: "tries" });
  await page.route("**/v1/runs/tries?**", async (route) => {
    const answer = await route.fetch();
    const waiting_for = { kind: "retry", message: "The upstream did not answer.", until: new Date(Date.now() + 60_000).toISOString() };
    await route.fulfill({ response: answer, json: { ...(await answer.json()), status: "queued", waiting_for } });
  });
  await goto(page, core, "/runs/default/tries");
  await page.getByText(/It is tried again in \d+ (s|min)\./).waitFor();
  await page.getByText("The attempt before: The upstream did not answer.").waitFor();
  await core.api("/v1/runs/tries/cancel", { body: {} });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});
