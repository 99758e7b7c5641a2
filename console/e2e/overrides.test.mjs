// Text that turns what stands beside it around: the core takes it as it is, and no screen ever shows it raw.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { goto, launch, newPage, signIn } from "./browser.mjs";
import { Core, until } from "./core.mjs";

const NAME = "in\u202egpj.exe";
const SHOWN = "in\\u{202e}gpj.exe";

let core, browser, ask;
before(async () => {
  [core, browser] = await Promise.all([Core.start(), launch()]);
  await core.api("/v1/tokens", { body: { label: NAME, verbs: ["read"] } });
  await core.api("/v1/operators", { body: { desc: NAME, roles: [NAME] } });
  await core.api("/v1/worlds/default/files/turned.txt", { method: "PUT", body: `see ${NAME}`, type: "text/plain" });
  await core.api("/v1/flows", { body: { document: { name: "turned", description: NAME, input_schema: { type: "object", properties: { [NAME]: { type: "string", title: NAME, description: NAME, enum: [NAME, "plain"] } } }, steps: [{ id: "a", call: { tool: "wharf/echo", inputs: { text: NAME } } }], output: {} } } });
  await core.run("flow/turned", {}, { run_id: "flow-1", wait: "20s" });
  await core.run("wharf/echo", { text: NAME, [NAME]: 1 }, { run_id: "echo-1", wait: "20s", correlation_id: NAME });
  await core.run("wharf/fail", { message: NAME }, { run_id: "fail-1", wait: "20s" });
  await core.run("wharf/sleep", { ms: 600_000 }, { run_id: "stop-1" });
  await core.api("/v1/runs/stop-1/cancel", { body: { reason: NAME } });
  await core.run("wharf/ask", { question: NAME, schema: { type: "object", properties: { [NAME]: { title: NAME, description: NAME, enum: [NAME, "plain"] } } }, detail: { [NAME]: NAME } }, { run_id: "ask-1" });
  await core.api("/v1/worlds", { body: { world: "gated", policy: [{ tool: "wharf/echo", when: "always", approve: true }] } });
  await core.run("wharf/echo", { text: NAME, [NAME]: NAME }, { run_id: "approve-1", world: "gated" });
  await core.api("/v1/schedules", { body: { name: "turned", every_ms: 3_600_000, tool: "wharf/echo", inputs: { [NAME]: NAME } } });
  await core.api("/v1/triggers", { body: { name: "turned", tool: "wharf/echo", proof: "token", inputs: { [NAME]: NAME } } });
  ask = await until("the question", async () => (await core.api("/v1/inbox")).items.find((a) => a.run_id === "ask-1"));
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

/** All text of a page and all that its elements say of themselves; what stands in a field to be changed is as it was. */
const said = (page) =>
  page.evaluate(() => {
    const out = [document.title, ...document.body.innerText.split("\n")];
    for (const e of document.querySelectorAll("*")) for (const a of ["aria-label", "title", "alt", "placeholder", "label", "value", "data-text"]) if (a !== "value" || e.tagName === "OPTION") out.push(e.getAttribute(a) ?? "");
    for (const e of document.querySelectorAll("option")) out.push(e.textContent);
    return out;
  });

/** What of it would turn what stands beside it around. */
const raw = async (page) => (await said(page)).filter((text) => /[\u202a-\u202e\u2066-\u2069\u200b]/.test(text)).map((text) => JSON.stringify(text.slice(0, 200)));

test("c033_text_that_turns_its_neighbours_is_escaped_on_every_screen", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  let escaped = 0;
  const runs = ["echo-1", "fail-1", "stop-1", "flow-1"].flatMap((id) => ["", "?tab=timeline", "?tab=output", "?tab=inputs", "?tab=events", "?tab=audit"].map((tab) => `/runs/default/${id}${tab}`));
  for (const path of ["/", "/runs", "/runs?correlation_id=" + encodeURIComponent(NAME), "/runs?caller=" + encodeURIComponent(NAME), ...runs, "/runs/default/echo-1?compare=fail-1", "/runs/default/ask-1", "/runs/gated/approve-1", `/inbox?ask=${ask.ask_id}`, "/inbox", "/tools", `/tools?q=${encodeURIComponent(NAME)}`, "/tools/flow/turned@1", "/tools/flow/turned@1?tab=definition", "/providers", "/worlds", "/worlds/default", "/worlds/default?file=/turned.txt", `/worlds/default?folder=${encodeURIComponent(`/${NAME}/`)}`, "/worlds/default?tab=tokens", "/schedules/turned", "/triggers/turned", "/flows", "/flows/turned", "/flows/turned?tab=graph", "/flows/turned?tab=run", "/flows/turned?tab=document", "/money", "/operators", "/audit", `/audit?subject=${encodeURIComponent(NAME)}`, "/tokens", "/tokens?tab=sessions", "/system"]) {
    await goto(page, core, path);
    await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => {});
    await page.locator(".skeleton").first().waitFor({ state: "detached", timeout: 5000 }).catch(() => {});
    assert.deepEqual(await raw(page), [], path);
    if ((await said(page)).some((text) => text.includes(SHOWN))) escaped += 1;
  }
  assert.ok(escaped > 20, `it is shown on ${escaped} pages`);
  await page.keyboard.press("Control+k");
  await page.keyboard.type(NAME);
  await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => {});
  assert.deepEqual(await raw(page), [], "the search");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("c033_dialogs_about_such_names_show_escapes", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  for (const [path, button] of [["/tokens", "Revoke"], ["/operators", "Give up"]]) {
    await goto(page, core, path);
    await page.getByRole("main").getByRole("button", { name: button, exact: true }).first().click();
    await page.getByRole("dialog").getByText(SHOWN).first().waitFor();
    assert.deepEqual(await raw(page), [], path);
    await page.keyboard.press("Escape");
  }
  await page.context().close();
});
