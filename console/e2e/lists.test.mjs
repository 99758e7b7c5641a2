// Lists that stand still, go on in windows, and say when; what is named before it is done; what stands in the address.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { barriers, goto, launch, newPage, overflow, signIn } from "./browser.mjs";
import { Core, until } from "./core.mjs";

const AGENT = "dev.test.hostile";
let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
  await core.api("/v1/agents", { body: { folder: fileURLToPath(new URL("./hostile", import.meta.url)) } });
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

/** The core's own answers in windows of two. */
const small = (page, path) => page.route(`**${path}?**`, (route) => route.continue({ url: route.request().url().replace("limit=200", "limit=2") }));

test("c005_tables_stand_still_under_the_pointer", async () => {
  for (const label of ["first", "second"]) await core.api("/v1/tokens", { body: { label, verbs: ["read"] } });
  const page = await newPage(browser);
  await signIn(page, core, "/tokens");
  const table = page.getByRole("table", { name: "Tokens" });
  const labels = async () => (await table.locator("tbody tr td:first-child bdi:first-child").allInnerTexts()).filter((t) => /first|second|third/.test(t));
  await until("two tokens", async () => (await labels()).length === 2);
  await table.getByRole("row").nth(1).hover();
  await core.api("/v1/tokens", { body: { label: "third", verbs: ["read"] } });
  await page.getByRole("button", { name: "1 new" }).waitFor();
  assert.deepEqual(await labels(), ["second", "first"]);
  await page.getByRole("button", { name: "1 new" }).click();
  assert.deepEqual(await labels(), ["third", "second", "first"]);
  await core.api("/v1/tokens", { body: { label: "third and a half", verbs: ["read"] } });
  await page.getByRole("button", { name: "1 new" }).waitFor();
  await page.locator("h1").hover();
  await until("all of them", async () => (await labels()).length === 4);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c014_c015_tools_and_providers_go_on_in_windows_and_are_searched_by_the_core", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  await small(page, "/v1/tools");
  await small(page, "/v1/providers");
  for (const [path, label, words] of [["/tools", "Tools", "tools"], ["/providers", "Providers", "providers"]]) {
    await goto(page, core, path);
    const rows = page.getByRole("table", { name: label }).locator("tbody tr");
    await until(`two ${words}`, async () => (await rows.count()) === 2);
    await page.getByText(`2+ ${words}`).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await until(`more ${words}`, async () => (await rows.count()) > 2);
  }
  await goto(page, core, "/tools");
  const asked = page.waitForRequest((r) => /\/v1\/tools\?.*q=approve/.test(r.url()));
  await page.getByLabel("Search tools").fill("approve-me");
  await asked;
  await page.getByRole("link", { name: "wharf/approve-me" }).waitFor();
  await until("nothing else", async () => (await page.getByRole("table", { name: "Tools" }).locator("tbody tr").count()) === 1);
  await page.getByLabel("State").selectOption("quarantined");
  await page.getByText("No tool matches").waitFor();
  await page.context().close();
});

test("c016_a_folder_with_many_files_goes_on", async () => {
  for (const name of ["a.txt", "b.txt", "c.txt", "d/e.txt", "f/g.txt"]) await core.api(`/v1/worlds/default/files/many/${name}`, { method: "PUT", body: "x", type: "text/plain" });
  const page = await newPage(browser);
  await small(page, "/artifacts");
  await signIn(page, core, "/worlds/default?folder=/many/");
  const rows = page.getByRole("table", { name: "Files" }).locator("tbody tr");
  await page.getByRole("button", { name: "Show more" }).waitFor();
  const first = await rows.count();
  assert.ok(first > 0 && first < 5, `${first} rows`);
  await until("all of it", async () => {
    const more = page.getByRole("button", { name: "Show more" });
    // The last click may have taken it away meanwhile.
    if (await more.count()) await more.click({ timeout: 1000 });
    return (await rows.count()) === 5;
  });
  await page.context().close();
});

test("c016_a_folder_says_how_much_it_holds_and_when_it_holds_more", async () => {
  for (const [name, size] of [["a.txt", 1000], ["b/c.txt", 1048]]) await core.api(`/v1/worlds/default/files/sized/in/${name}`, { method: "PUT", body: "x".repeat(size), type: "text/plain" });
  const page = await newPage(browser);
  await signIn(page, core, "/worlds/default?folder=/sized/");
  const row = page.getByRole("table", { name: "Files" }).getByRole("row").filter({ hasText: "in/" });
  await row.getByText("2 KiB", { exact: true }).waitFor();
  await row.getByText("folder, 2 files", { exact: true }).waitFor();
  await row.getByRole("button", { name: "2 KiB" }).focus();
  await page.getByText("2 files with 2 KiB, folders within included").waitFor();
  assert.deepEqual(await barriers(page), []);
  // Counting ends somewhere: the answer is the core's own with its end moved nearer.
  await page.route("**/artifacts?**", async (route) => {
    const answer = await route.fetch();
    const told = await answer.json();
    await route.fulfill({ response: answer, json: { ...told, folders: told.folders.map((f) => ({ ...f, more: true })) } });
  });
  await goto(page, core, "/worlds/default?folder=/sized/");
  await row.getByText("> 2 KiB").waitFor();
  await row.getByText("folder, 2 files or more").waitFor();
  await page.context().close();
});

test("c015_an_agent_is_approved_in_parts", async () => {
  const page = await newPage(browser);
  await signIn(page, core, `/providers/${AGENT}`);
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  const dialog = page.getByRole("dialog");
  const wanted = (await core.api(`/v1/providers/${AGENT}`)).permissions.map((p) => p.permission);
  assert.ok(wanted.length >= 2, `it asks for more than one thing: ${wanted}`);
  assert.deepEqual(await barriers(page), []);
  await dialog.getByRole("checkbox").first().uncheck();
  await dialog.getByRole("button", { name: `Approve ${wanted.length - 1} of ${wanted.length}` }).click();
  await dialog.waitFor({ state: "detached" });
  const after = (await core.api(`/v1/providers/${AGENT}`)).permissions;
  assert.deepEqual(after.filter((p) => !p.approved).map((p) => p.permission), [wanted[0]]);
  await page.getByText("not approved").waitFor();
  await core.api(`/v1/agents/${AGENT}/approve`, { body: { all: true } });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c014_a_tool_that_changed_is_quarantined_shown_and_taken_on", async () => {
  await core.api(`/v1/agents/${AGENT}/start`, { method: "POST" });
  await until("the agent", async () => (await core.api(`/v1/tools/${AGENT}/write`)).state === "available");
  const drifted = await core.run(`${AGENT}/write`, { what: "drift" }, { wait: "20s" });
  assert.equal(drifted.status, "succeeded", JSON.stringify(drifted.error));
  await until("the quarantine", async () => (await core.api(`/v1/tools/${AGENT}/write`)).state === "quarantined");
  const page = await newPage(browser);
  await signIn(page, core, `/tools/${AGENT}/write`);
  await page.getByRole("heading", { name: "Its definition changed since it was approved" }).waitFor();
  const diff = page.getByRole("region", { name: "What changed" });
  await diff.getByText("It does something else now.").waitFor();
  await diff.locator(".del", { hasText: "window.hacked" }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.setViewportSize({ width: 320, height: 800 });
  assert.ok((await overflow(page)) <= 0);
  await page.setViewportSize({ width: 1440, height: 900 });
  await goto(page, core, "/tools?state=quarantined");
  await page.getByRole("link", { name: `${AGENT}/write` }).click();
  await page.getByRole("button", { name: "Take the change on" }).click();
  await until("the tool again", async () => (await core.api(`/v1/tools/${AGENT}/write`)).state === "available");
  await page.getByRole("heading", { name: "Its definition changed since it was approved" }).waitFor({ state: "detached" });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c015_a_person_logs_in_to_an_mcp_server_by_a_page_or_a_code", async () => {
  const page = await newPage(browser);
  await core.api("/v1/mcp", { body: { name: "tracker", url: "http://127.0.0.1:9/mcp", allow_private: true } });
  // The server elsewhere is the core's to talk to; here its answers are played.
  const sent = [];
  await page.route("**/v1/mcp/tracker/login**", (route) => {
    const body = JSON.parse(route.request().postData() ?? "{}");
    sent.push([new URL(route.request().url()).pathname.split("/").at(-1), body]);
    const json = sent.at(-1)[0] === "finish" ? { done: sent.filter(([what]) => what === "finish").length > 1 } : { url: "https://login.example/device", state: "s-1", expires_in_s: 600, ...(body.device ? { user_code: "ABCD-EFGH" } : {}) };
    return route.fulfill({ json });
  });
  await signIn(page, core, "/providers/tracker");
  await page.getByRole("button", { name: "Log in with a code" }).click();
  await page.getByText("ABCD-EFGH").waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByText("Logged in.").waitFor();
  assert.deepEqual(sent.map(([what, body]) => [what, body.device ?? body.state]), [["login", true], ["finish", "s-1"], ["finish", "s-1"]]);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByText("It leads back here.").waitFor();
  assert.equal(sent.at(-1)[1].redirect_uri, `${core.url}/providers/tracker`);
  // A page that nobody was sent to from here is not taken.
  await goto(page, core, "/providers/tracker?state=other&code=evil");
  await page.getByText("This login was not begun here.").waitFor();
  assert.ok(!sent.some(([, body]) => body.code === "evil"));
  await page.evaluate(() => localStorage.setItem("wharf.mcp-login", "s-1"));
  await goto(page, core, "/providers/tracker?state=s-1&code=c-1&iss=https://login.example");
  await until("the end of the login", () => sent.some(([what, body]) => what === "finish" && body.code === "c-1" && body.iss === "https://login.example"));
  assert.equal(new URL(page.url()).search, "", "nothing of it stays in the address");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c004_names_of_others_are_escaped_wherever_something_is_asked", async () => {
  await core.api("/v1/tokens", { body: { label: "night\u202egpj.exe\u200b shift", verbs: ["read"] } });
  const page = await newPage(browser);
  await signIn(page, core, "/tokens");
  await page.getByRole("row").filter({ hasText: "gpj.exe" }).getByRole("button", { name: "Revoke" }).click();
  const heading = page.getByRole("dialog").getByRole("heading");
  assert.equal(await heading.innerText(), "Revoke night\\u{202e}gpj.exe\\u{200b} shift?");
  await page.keyboard.press("Escape");
  await page.context().close();
});

test("c009_a_refusal_leads_to_its_page_and_no_button_does_nothing", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tokens?tab=sessions");
  await page.getByRole("table", { name: "Sessions" }).waitFor();
  for (const name of ["New secret", "New token"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  await page.route("**/v1/runs/*/again**", (route) => route.fulfill({ status: 409, json: { error: { code: "tool.quarantined", message: "The tool changed.", retryable: false } } }));
  await core.run("wharf/echo", { text: "x" }, { run_id: "refused-again", wait: "20s" });
  await goto(page, core, "/runs/default/refused-again");
  await page.getByRole("button", { name: "Run again", exact: true }).click();
  const toast = page.locator(".toast", { hasText: "The tool changed." });
  assert.equal(await toast.getByRole("link").getAttribute("href"), "/docs/errors/tool.quarantined");
  // Signing in is refused with a page of its own, too.
  await page.context().clearCookies();
  const other = await newPage(browser);
  await other.goto(core.url);
  await other.getByLabel("Token").fill("wharf_nothing");
  await other.getByRole("button", { name: "Sign in" }).click();
  const link = other.getByRole("alert").getByRole("link");
  assert.match(await link.getAttribute("href"), /^\/docs\/errors\/auth\./);
  assert.equal((await fetch(core.url + (await link.getAttribute("href")))).status, 200);
  await other.context().close();
  await page.context().close();
});

test("c011_c031_what_is_canceled_is_named_with_its_moment", async () => {
  for (const id of ["nap-1", "nap-2"]) await core.run("wharf/sleep", { ms: 600_000 }, { run_id: id });
  const page = await newPage(browser);
  await signIn(page, core, "/runs?tool=wharf/sleep&tz=utc");
  await page.getByRole("cell", { name: "wharf/sleep" }).first().waitFor();
  const [request] = await Promise.all([page.waitForRequest("**/v1/runs/cancel"), page.getByRole("button", { name: "Cancel these" }).click()]);
  const { until: moment } = JSON.parse(request.postData());
  await page.getByRole("dialog").getByText(moment.replace("T", " ").replace("Z", " UTC")).waitFor();
  await page.keyboard.press("Escape");
  await goto(page, core, "/runs/default/nap-1");
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByText("nap-1").waitFor();
  await page.keyboard.press("Escape");
  for (const id of ["nap-1", "nap-2"]) await core.api(`/v1/runs/${id}/cancel`, { body: {} });
  await page.context().close();
});

test("c030_the_exact_time_opens_by_focus_and_tap_and_is_not_cut_off", async () => {
  const page = await newPage(browser);
  await core.run("wharf/echo", { text: "x" }, { run_id: "when", wait: "20s" });
  const at = (await core.api("/v1/runs/when")).started_at.replace("T", " ").replace("Z", " UTC");
  await signIn(page, core, "/runs?id_prefix=when&tz=utc");
  const time = page.getByRole("row").filter({ hasText: "when" }).getByRole("button").filter({ has: page.locator("time") });
  await time.focus();
  const tip = page.getByRole("tooltip");
  assert.equal(await tip.innerText(), at);
  const box = await tip.boundingBox();
  const top = await page.evaluate(({ x, y }) => document.elementFromPoint(x, y)?.getAttribute("role"), { x: box.x + box.width / 2, y: box.y + box.height / 2 });
  assert.equal(top, "tooltip", "it lies above the table");
  await page.keyboard.press("Escape");
  assert.equal(await tip.count(), 0);
  await time.click();
  await tip.waitFor();
  assert.equal(new URL(page.url()).pathname, "/runs", "a tap on the time does not open the run");
  assert.deepEqual(await barriers(page), []);
  await page.context().close();
});

test("c032_what_is_open_and_what_is_looked_for_stand_in_the_address", async () => {
  const page = await newPage(browser);
  await core.run("wharf/count", { n: 30, delay_ms: 0 }, { run_id: "thirty", wait: "20s" });
  await signIn(page, core, "/runs/default/thirty?tab=output");
  await page.getByLabel("Search the output").fill("27");
  await page.waitForURL(/find=27/);
  await page.reload();
  await page.locator(".ln.hit", { hasText: "27" }).waitFor();
  await goto(page, core, "/runs/default/thirty?tab=events");
  await page.getByRole("button", { name: "finished" }).click();
  await page.waitForURL(/event=\d+/);
  await page.reload();
  await page.getByRole("dialog").getByRole("heading", { name: /finished/ }).waitFor();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await goto(page, core, "/audit");
  await page.getByRole("region", { name: "Audit" }).getByRole("button", { name: "console.signed_in" }).first().click();
  await page.waitForURL(/record=\d+/);
  const url = page.url();
  await page.reload();
  await page.getByRole("dialog").getByText("console.signed_in").waitFor();
  // Whoever is sent the address sees it, whatever the list shows.
  await page.goto(`${url}&event=token.nothing`);
  await page.getByRole("dialog").getByText("console.signed_in").waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.context().close();
});

test("c019_the_audit_is_narrowed_to_what_was_before_a_moment", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/audit?tz=utc");
  const rows = page.getByRole("region", { name: "Audit" }).locator("tbody tr");
  await until("records", async () => (await rows.count()) > 3);
  await page.getByLabel("Before, in UTC").fill("2020-01-01T00:00");
  await page.waitForURL(/until=2020-01-01T00:00:00.000Z/);
  await page.getByText("No record fits").waitFor();
  await page.getByLabel("Before, in UTC").fill("2099-01-01T00:00");
  await until("records again", async () => (await rows.count()) > 3);
  await page.context().close();
});

test("c019_all_verbs_can_be_given_and_the_core_charts_cost_and_what_is_open", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tokens?new=token");
  const dialog = page.getByRole("dialog");
  const mine = (await core.api("/openapi.json")).components.schemas.Verb.enum;
  for (const verb of mine) assert.equal(await dialog.getByRole("checkbox", { name: new RegExp(`^${verb} `) }).count(), 1, verb);
  assert.deepEqual(await barriers(page), []);
  await goto(page, core, "/system");
  for (const name of ["Open runs and asks", "Cost of runs that ended"]) await page.getByRole("img", { name }).waitFor();
  await page.context().close();
});

test("c017_hours_are_those_of_utc_and_accounts_say_how_long_they_last", async () => {
  await core.api("/v1/worlds", { body: { world: "paid", limit_micro: 1_000_000 } });
  for (let i = 0; i < 10; i += 1) await core.run("wharf/sleep", { ms: 0, cost_micro: 10_000 }, { world: "paid", wait: "20s" });
  const page = await newPage(browser, { timezoneId: "Asia/Kolkata" });
  await signIn(page, core, "/money");
  await page.getByRole("heading", { name: "By hour, UTC, last day" }).waitFor();
  const chart = page.locator("figure", { has: page.getByRole("img", { name: "Spent by hour, UTC" }) });
  await chart.getByRole("button", { name: "As a table" }).click();
  const hours = await chart.getByRole("cell").filter({ hasText: /\d\d:\d\d$/ }).allInnerTexts();
  assert.equal(hours.length, 24);
  const last = new Date();
  assert.ok(hours.at(-1) <= last.toISOString().slice(0, 16).replace("T", " ") && hours.at(-1).endsWith(":00"), hours.at(-1));
  const row = page.getByRole("table", { name: "Accounts" }).getByRole("row").filter({ hasText: "world:paid" });
  await row.getByText("9 days to 63 days").waitFor();
  await page.context().close();
});
