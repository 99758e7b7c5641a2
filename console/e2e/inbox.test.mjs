// The inbox by its keys, its filter and its windows, and what the core says of an answer before it is given.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, goto, launch, newPage, signIn } from "./browser.mjs";
import { Core, until } from "./core.mjs";

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
const open = (n) => until(`${n} asks`, async () => {
  const all = (await core.api("/v1/inbox")).items;
  return all.length === n && all;
});
const title = (page) => page.locator("#ask-title").innerText();
const shows = (page, run) => until(`the ask of ${run}`, async () => (await page.locator(".askitem[aria-current]").getAttribute("href"))?.includes((await core.api("/v1/inbox")).items.find((a) => a.run_id === run)?.ask_id));

test("c013_single_keys_move_allow_and_deny_and_can_be_switched_off", async () => {
  for (const id of ["k1", "k2", "k3"]) await core.run("wharf/approve-me", {}, { run_id: id });
  await open(3);
  const page = await newPage(browser);
  await signIn(page, core, "/inbox");
  await shows(page, "k1");
  await page.locator("#main").focus();
  await page.keyboard.press("j");
  await shows(page, "k2");
  await page.keyboard.press("k");
  await shows(page, "k1");
  // Holding a key down does nothing more than pressing it.
  await page.evaluate(() => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true, repeat: true })));
  await page.keyboard.press("Shift");
  await shows(page, "k1");
  // The confirmation names what it allows, and Enter is enough.
  await page.keyboard.press("a");
  await page.getByRole("dialog").getByRole("heading", { name: "Allow wharf/approve-me once?" }).waitFor();
  await page.keyboard.press("Enter");
  assert.equal((await ended("k1")).status, "succeeded");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await shows(page, "k2");
  await page.locator("#main").focus();
  await page.keyboard.press("d");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("adjacent to nothing");
  assert.equal(await page.getByLabel("Reason").inputValue(), "adjacent to nothing", "neither the key nor what follows is a command there");
  await page.getByRole("button", { name: "Deny it" }).press("Enter");
  assert.equal((await ended("k2")).status, "refused");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await shows(page, "k3");
  await page.getByRole("button", { name: "You" }).click();
  await page.getByRole("button", { name: "Switch single keys off" }).click();
  await page.locator("#main").focus();
  await page.keyboard.press("a");
  await page.keyboard.press("d");
  await page.keyboard.press("Shift");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await core.api("/v1/runs/k3/cancel", { body: {} });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c013_asks_are_narrowed_by_kind_and_fetched_in_windows", async () => {
  for (let i = 0; i < 4; i += 1) await core.run("wharf/ask", { question: `Number ${i}?`, schema: { type: "string" } }, { run_id: `w${i}` });
  await core.run("wharf/approve-me", {}, { run_id: "w-approve" });
  await open(5);
  const page = await newPage(browser);
  // The core's own answers, by windows that are small enough to see more than one of them.
  await page.route("**/v1/inbox?**", (route) => route.continue({ url: route.request().url().replace("limit=200", "limit=2") }));
  await signIn(page, core);
  // The count in the navigation and on Home says that there are more.
  await page.locator(".figure", { hasText: "Waits for you" }).getByText("2+").waitFor();
  await goto(page, core, "/inbox");
  const items = page.locator(".askitem");
  await until("two asks", async () => (await items.count()) === 2);
  await page.getByRole("button", { name: "Show more" }).click();
  await until("four asks", async () => (await items.count()) === 4);
  await page.getByRole("button", { name: "Show more" }).click();
  await until("all five", async () => (await items.count()) === 5);
  assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
  await page.getByRole("button", { name: "Approvals" }).click();
  await page.waitForURL(/kind=approval/);
  await until("the approval alone", async () => (await items.count()) === 1 && (await items.innerText()).includes("approve-me"));
  assert.deepEqual(await barriers(page), []);
  for (const id of ["w0", "w1", "w2", "w3", "w-approve"]) await core.api(`/v1/runs/${id}/cancel`, { body: {} });
  await goto(page, core, "/inbox?kind=approval");
  await page.getByText("No approval here").waitFor();
  await page.getByRole("link", { name: "Show all asks" }).click();
  await page.getByText("Nothing waits for you").waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c013_the_core_says_what_is_wrong_with_an_answer_before_it_is_given", async () => {
  const schema = { type: "object", required: ["codes", "why"], properties: { codes: { type: "string", title: "Code" }, why: { type: "string", title: "Why", maxLength: 9 } } };
  await core.run("wharf/ask", { question: "Which code?", schema }, { run_id: "dry" });
  const page = await newPage(browser);
  const asked = [];
  page.on("request", (r) => r.url().includes("/answer") && asked.push(new URL(r.url()).search));
  await signIn(page, core, "/inbox");
  await page.getByRole("heading", { name: "Which code?" }).waitFor();
  await page.getByLabel("Why").fill("much too long");
  await page.getByText(/characters/).first().waitFor();
  assert.equal(await page.getByText("This is needed.").count(), 0, "what was not come to yet is no fault");
  await page.getByLabel("Why").fill("because");
  await page.getByLabel("Code", { exact: true }).fill("ab");
  await until("a question to the core", () => asked.includes("?dry=true"));
  assert.equal((await core.api("/v1/runs/dry")).status, "waiting", "nothing is answered by it");
  await page.route("**/answer?dry=true", (route) => route.fulfill({ status: 422, contentType: "application/json", body: JSON.stringify({ error: { code: "ask.answer_invalid", message: "No.", retryable: false, details: { errors: [{ path: "/codes", message: "The core knows no such code." }] } } }) }));
  await page.getByLabel("Code", { exact: true }).fill("abab");
  await page.getByText("The core knows no such code.").waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("button", { name: "Answer" }).click();
  assert.equal((await ended("dry")).outputs.answer.codes, "abab");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c005_the_list_of_asks_stays_where_it_is_under_the_pointer", async () => {
  for (const id of ["s1", "s2", "s3"]) await core.run("wharf/ask", { question: `About ${id}?`, schema: { type: "string" } }, { run_id: id });
  const asks = await open(3);
  const page = await newPage(browser);
  await signIn(page, core, "/inbox");
  const items = page.locator(".askitem");
  await until("three asks", async () => (await items.count()) === 3);
  await items.nth(2).hover();
  const before = await items.nth(2).boundingBox();
  await core.api(`/v1/questions/${asks[1].ask_id}/answer`, { body: { value: "x" } });
  await page.locator("li.gone", { hasText: "About s2?" }).waitFor();
  assert.deepEqual(await items.nth(2).boundingBox(), before, "nothing slipped under it");
  await page.locator("h1").hover();
  await until("the rest", async () => (await items.count()) === 2);
  assert.match(await title(page), /About s1/);
  for (const id of ["s1", "s3"]) await core.api(`/v1/runs/${id}/cancel`, { body: {} });
  await page.context().close();
});
