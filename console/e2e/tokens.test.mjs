// Tokens: narrowed in the page, which asks nobody, and good at the core for what is left.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { barriers, launch, newPage, overflow, signIn } from "./browser.mjs";
import { Core } from "./core.mjs";

let core, browser;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
  for (const world of ["lab", "attic"]) await core.api("/v1/worlds", { body: { world } });
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

test("c019_a_token_is_narrowed_in_the_page_and_its_text_goes_nowhere", async () => {
  const made = await core.api("/v1/tokens", { body: { label: "ci", verbs: ["run", "read", "answer"], worlds: ["lab", "attic"], ttl_ms: 3_600_000 } });
  const page = await newPage(browser);
  const sent = [];
  page.on("request", (r) => sent.push(r.url(), r.postData() ?? "", JSON.stringify(r.headers())));
  await signIn(page, core, "/tokens");
  await page.getByRole("button", { name: "Narrow a token" }).click();
  const dialog = page.getByRole("dialog");
  const begin = dialog.getByLabel("The token to begin with");
  await begin.fill(core.token);
  await dialog.getByText("This is not a token that can be narrowed").waitFor();
  await begin.fill(made.token);
  await dialog.getByText("may run, read, answer in attic, lab").waitFor();
  assert.equal(await dialog.getByLabel(/^admin/).count(), 0, "what it has not is not offered");
  const act = dialog.getByRole("button", { name: "Narrow it" });
  await dialog.getByLabel("Name").fill("night.shift");
  assert.ok(await act.isDisabled(), "a token without a verb is good for nothing");
  await dialog.getByLabel(/^read/).check();
  assert.deepEqual(await barriers(page), []);
  await act.click();
  await dialog.getByText("The name has up to 32 letters").waitFor();
  await dialog.getByLabel("Name").fill("night-shift");
  await dialog.getByRole("textbox", { name: /^Worlds/ }).fill("lab");
  await dialog.getByLabel("Good for").selectOption("1h");
  await page.setViewportSize({ width: 320, height: 800 });
  assert.ok((await overflow(page)) <= 0);
  await page.setViewportSize({ width: 1440, height: 900 });
  await act.click();
  await dialog.getByText("It was made in this page").waitFor();
  assert.deepEqual(await barriers(page), []);
  const narrower = await dialog.locator(".cmd code").innerText();
  const status = async (path, token = narrower, init = {}) => (await fetch(core.url + path, { ...init, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } })).status;
  assert.equal(await status("/v1/runs?world=lab"), 200);
  assert.equal(await status("/v1/runs?world=attic"), 403, "another world");
  assert.equal(await status("/v1/runs?world=attic", made.token), 200, "the first one has it still");
  assert.equal(await status("/v1/runs", narrower, { method: "POST", body: JSON.stringify({ tool: "wharf/echo", world: "lab" }) }), 403, "another verb");
  // It can be narrowed again, and ends with the first.
  await dialog.getByRole("button", { name: "I have kept it" }).click();
  await page.getByRole("button", { name: "Narrow a token" }).click();
  await begin.fill(narrower);
  await dialog.getByText("may read in lab, until").waitFor();
  await dialog.getByLabel("Name").fill("again");
  await dialog.getByLabel(/^read/).check();
  await dialog.getByRole("textbox", { name: /^Tools/ }).fill("wharf/* llm/chat");
  await dialog.getByLabel("Good for").selectOption("none");
  await act.click();
  await dialog.getByText("It was made in this page").waitFor();
  const least = await dialog.locator(".cmd code").innerText();
  assert.equal(await status("/v1/runs?world=lab", least), 200);
  await core.api(`/v1/tokens/${made.token_id}`, { method: "DELETE" });
  assert.equal(await status("/v1/runs?world=lab", least), 401);
  for (const token of [made.token, narrower, least]) assert.ok(!sent.some((text) => text.includes(token)), "no token left the page");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c019_who_may_not_make_tokens_may_still_narrow_one", async () => {
  const made = await core.api("/v1/tokens", { body: { label: "reader", verbs: ["read"], ttl_ms: 600_000 } });
  const page = await newPage(browser);
  await page.goto(core.url);
  await page.getByLabel("Token").fill(made.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("nav[aria-label=Screens]");
  await page.goto(`${core.url}/tokens`);
  await page.getByRole("button", { name: "Narrow a token" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "New token" }).count(), 0);
  await page.context().close();
});
