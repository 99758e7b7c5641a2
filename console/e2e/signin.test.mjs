// Signing in, and those who try without.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { launch, newPage, signIn, watch } from "./browser.mjs";
import { Core, until } from "./core.mjs";

let core, browser;
before(async () => {
  core = await Core.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await core?.stop();
});

test("c006_a_link_signs_in_once_and_leaves_the_address", async () => {
  const page = await newPage(browser);
  const link = await core.link();
  await page.goto(link);
  await page.waitForSelector("nav[aria-label=Screens]");
  assert.equal(page.url(), `${core.url}/`);
  assert.ok(!(await page.evaluate(() => JSON.stringify(history.state) + location.href)).includes("link="));
  const again = await newPage(browser);
  await again.goto(core.url);
  await again.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
  await again.goto(link);
  await again.getByRole("alert").waitFor();
  assert.match(await again.getByRole("alert").innerText(), /used before or is older/);
  await again.goto(await core.link());
  await again.waitForSelector("nav[aria-label=Screens]");
  assert.equal(again.url(), `${core.url}/`, "a link pasted into an open page works, too");
  assert.deepEqual(page.faults, []);
  assert.deepEqual([...page.hosts], [new URL(core.url).host]);
});

test("c006_a_page_without_a_link_says_what_to_type_and_takes_a_token", async () => {
  const page = await newPage(browser);
  await page.goto(`${core.url}/runs?status=failed`);
  await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
  assert.ok(await page.getByText("wharf console", { exact: true }).isVisible());
  await page.getByLabel("Token").fill("whf1.wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(core.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  assert.equal(new URL(page.url()).search, "?status=failed", "the address survives the sign-in");
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).includes(core.token), "the token is not kept");
});

test("c007_each_half_of_a_session_is_worthless_alone", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  const status = (headers) => page.evaluate(async (h) => (await fetch("/v1/runs", { headers: h, credentials: "same-origin" })).status, headers);
  const key = await page.evaluate(() => localStorage.getItem("wharf.session"));
  assert.equal(await status({ "wharf-session": key }), 200);
  assert.equal(await status({}), 401, "the cookie alone");
  const cookies = await page.context().cookies();
  const own = cookies.find((c) => c.name.startsWith("wharf-"));
  assert.ok(own.httpOnly && own.sameSite === "Strict");
  assert.ok(!(await page.evaluate(() => document.cookie)).includes("wharf"));
  await page.context().clearCookies();
  assert.equal(await status({ "wharf-session": key }), 401, "the key alone");
});

test("c008_two_tabs_one_signed_out", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  const other = await page.context().newPage();
  watch(other);
  await other.goto(`${core.url}/runs`);
  await other.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  const key = await page.evaluate(() => localStorage.getItem("wharf.session"));
  await page.getByRole("button", { name: "You" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
  await other.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
  assert.equal(await other.evaluate(() => localStorage.getItem("wharf.session")), null);
  const status = await page.evaluate(async (k) => (await fetch("/v1/runs", { headers: { "wharf-session": k } })).status, key);
  assert.equal(status, 401);
});

test("c008_a_revoked_token_ends_its_sessions", async () => {
  const made = await core.api("/v1/tokens", { body: { label: "guest", verbs: ["read"], person: true } });
  const page = await newPage(browser);
  await page.goto(core.url);
  await page.getByLabel("Token").fill(made.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("nav[aria-label=Screens]");
  await core.api(`/v1/tokens/${made.token_id}`, { method: "DELETE" });
  await page.getByRole("heading", { name: "Sign in to Wharf" }).waitFor();
});

test("c009_a_page_on_another_port_gets_nothing", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  const server = createServer((_q, answer) => answer.setHeader("content-type", "text/html").end("<h1>other</h1>"));
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  try {
    const other = await page.context().newPage();
    await other.goto(`http://127.0.0.1:${server.address().port}/`);
    const got = await other.evaluate(async (url) => {
      const out = [];
      for (const path of ["/v1/runs", "/v1/console/session", "/"]) out.push(await fetch(url + path, { credentials: "include" }).then((a) => a.text(), () => "refused"));
      out.push(await new Promise((done) => {
        const s = new WebSocket(`${url.replace("http", "ws")}/graphql`, ["graphql-transport-ws"]);
        s.onopen = () => done("open");
        s.onerror = () => done("refused");
      }));
      const frame = document.createElement("iframe");
      frame.src = url;
      document.body.append(frame);
      await new Promise((go) => (frame.onload = go));
      let inside = "refused";
      try {
        inside = frame.contentWindow.document ? "open" : "refused";
      } catch {
        // Another origin, as it should be.
      }
      return [...out, inside];
    }, core.url);
    assert.deepEqual(got, Array(got.length).fill("refused"));
    const framed = other.frames().find((frame) => frame.parentFrame());
    assert.match(framed.url(), /^chrome-error:/, "the frame shows no page of the core");
    const origin = await other.evaluate(() => location.origin);
    const answer = await fetch(`${core.url}/v1/console/session`, { method: "POST", headers: { origin, "content-type": "application/json" }, body: JSON.stringify({ token: core.token }) });
    assert.equal(answer.status, 403, "the exchange demands the core's own origin");
  } finally {
    server.close();
  }
});

test("c009_a_listed_origin_a_null_origin_and_a_rebound_name_get_nothing", async () => {
  const server = createServer((_q, answer) => answer.setHeader("content-type", "text/html").end("<h1>other</h1>"));
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  const listed = `http://127.0.0.1:${server.address().port}`;
  const own = await Core.start({ args: ["--allow-origin", listed] });
  // A name of somebody else that leads to this machine, as a rebound one does.
  const rebound = await launch(["--host-resolver-rules=MAP rebound.test 127.0.0.1"]);
  try {
    const page = await newPage(rebound);
    await signIn(page, own);
    const other = await page.context().newPage();
    const asks = (from) => from.evaluate(async (url) => {
      const out = [];
      for (const path of ["/v1/runs", "/v1/console/session", "/v1/tool/operatives"]) out.push(await fetch(url + path, { credentials: "include" }).then((a) => (a.ok ? a.text() : "refused"), () => "refused"));
      out.push(await fetch(`${url}/v1/console/session`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"token":"x"}' }).then((a) => (a.ok ? a.text() : "refused"), () => "refused"));
      out.push(await new Promise((done) => {
        const s = new WebSocket(`${url.replace("http", "ws")}/graphql`, ["graphql-transport-ws"]);
        s.onopen = () => s.send('{"type":"connection_init"}');
        s.onmessage = (m) => done(m.data);
        s.onclose = () => done("refused");
      }));
      return out;
    }, own.url);
    const nothing = Array(5).fill("refused");
    await other.goto(`${listed}/`);
    assert.deepEqual(await asks(other), nothing, "the cookie of a session is worth nothing to a listed origin");
    await other.setContent('<iframe sandbox="allow-scripts" srcdoc="<h1>nobody</h1>"></iframe>');
    const nobody = other.frames().find((frame) => frame.parentFrame());
    assert.equal(await nobody.evaluate(() => origin), "null");
    assert.deepEqual(await asks(nobody), nothing, "nor to nobody's page");
    const answer = await other.goto(own.url.replace("127.0.0.1", "rebound.test"));
    assert.equal(answer.status(), 421);
    assert.equal(await other.getByText("Sign in to Wharf").count(), 0);
    assert.equal((await own.api("/v1/runs")).items.length, 0, "the core is well");
  } finally {
    await rebound.close();
    await own.stop();
    server.close();
  }
});

test("c008_a_session_survives_a_restart", async () => {
  const page = await newPage(browser);
  await signIn(page, core, "/tools");
  await core.kill();
  await page.getByText("Reconnecting", { exact: false }).first().waitFor();
  await core.again();
  await until("the feed", async () => (await page.locator(".beat").innerText()) === "Live");
  await page.reload();
  await page.getByRole("heading", { name: "Tools", level: 1 }).waitFor();
});

test("c005_two_tabs_share_one_socket_and_both_are_live", async () => {
  const page = await newPage(browser);
  const sockets = [];
  page.context().on("page", (p) => p.on("websocket", (s) => sockets.push(s.url())));
  page.on("websocket", (s) => sockets.push(s.url()));
  await signIn(page, core, "/inbox");
  const other = await page.context().newPage();
  await other.goto(`${core.url}/inbox`);
  for (const p of [page, other]) await until("the feed", async () => (await p.locator(".beat").innerText()) === "Live");
  const before = sockets.length;
  await core.run("wharf/ask", { question: "Who hears this?" }, { run_id: `both-${Date.now()}` });
  for (const p of [page, other]) await p.getByRole("heading", { name: "Who hears this?" }).waitFor();
  assert.equal(sockets.length, before, "no further socket");
  // The tab that holds the socket goes; the other takes over.
  await page.close();
  await core.run("wharf/ask", { question: "And this?" }, { run_id: `then-${Date.now()}` });
  await other.getByText("And this?").first().waitFor();
});
