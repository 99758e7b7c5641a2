/** A page in a real browser offers get-location over a real WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { memoryPair, scope, serve, tool } from "wharf-sdk";
import { z } from "zod";
import { coreFromEnvironment, coreTest, freshName } from "../support/core.js";
import { ownCore } from "../support/own-core.js";
import { browserTest, offered, offerFrom, PLACE } from "../support/page.js";
import { webSocketServer, type TestPeer } from "../support/servers.js";

const LocationRequest = (id: string, accuracy: string): unknown => ({
  type: "request",
  payload: { id, kind: "elicit", type: "get-location", payload: { accuracy } },
});

async function welcome(peer: TestPeer): Promise<any> {
  const offer = await peer.next();
  peer.say({ type: "offered", tools: offer.tools.map((one: { name: string }) => `browser/${one.name}`) });
  return offer;
}

browserTest("k033_a_page_offers_a_tool_shows_requests_and_answers", async (open) => {
  const seen: string[] = [];
  const server = await webSocketServer({ protocol: "wharf.tool.v1", onHandshake: ({ url, headers }) => seen.push(String(url), String(headers["sec-websocket-protocol"])) });
  const page = await open();
  await offerFrom(page, server.url.replace("ws:", "http:"), "t0ken", "browser");
  const peer = await server.peer();
  const offer = await welcome(peer);
  await offered(page);
  assert.deepEqual(seen, ["/v1/tool/ws?role=operative&provider=browser", "wharf.tool.v1, wharf.bearer.t0ken"]);
  assert.equal(offer.tools[0].input["x-wharf-side-effects"], false);

  peer.say(LocationRequest("1", "high"));
  assert.deepEqual(await peer.next(), { type: "progress", id: "1", data: { status: "asking" } });
  assert.equal(await page.textContent(".accuracy"), "exactly");
  await page.click(".answer");
  assert.deepEqual(await peer.next(), { type: "progress", id: "1", data: { status: "locating" } });
  const content = { lat: PLACE.latitude, lng: PLACE.longitude };
  assert.deepEqual(await peer.next(), { type: "response", id: "1", response: { status: "accepted", content } });
  assert.match((await page.textContent("#log li")) ?? "", /Answered \(high\): 59\.9100, 10\.7500/);

  peer.say(LocationRequest("2", "low"));
  await peer.next();
  await page.click(".decline");
  assert.deepEqual(await peer.next(), { type: "response", id: "2", response: { status: "declined" } });

  peer.say(LocationRequest("3", "best"));
  const refused = await peer.next();
  assert.equal(refused.response.fault.code, "tool.invalid_input");
  assert.deepEqual(refused.response.fault.details, { path: "/accuracy" });

  peer.say(LocationRequest("4", "low"));
  await peer.next();
  peer.say({ type: "cancel", id: "4" });
  assert.deepEqual(await peer.next(), { type: "response", id: "4", response: { status: "cancelled" } });
  await page.waitForSelector(".request", { state: "detached" });
  await server.close();
});

browserTest("k033_a_page_reloaded_in_the_middle_of_a_call_offers_again", async (open) => {
  const server = await webSocketServer({ protocol: "wharf.tool.v1" });
  const page = await open();
  await offerFrom(page, server.url, "t", "browser");
  const before = await server.peer();
  await welcome(before);
  before.say(LocationRequest("1", "low"));
  await page.waitForSelector(".request");
  await page.reload();
  const after = await server.peer();
  await welcome(after);
  await offered(page);
  assert.equal(await page.locator(".request").count(), 0);
  after.say(LocationRequest("1", "low"));
  await page.click(".answer");
  await after.next();
  await after.next();
  assert.equal((await after.next()).response.status, "accepted");
  await server.close();
});

browserTest("k033_a_page_whose_server_vanishes_comes_back_with_it", async (open) => {
  const first = await webSocketServer({ protocol: "wharf.tool.v1" });
  const port = Number(new URL(first.url).port);
  const page = await open();
  await offerFrom(page, first.url, "t", "browser");
  await welcome(await first.peer());
  await offered(page);
  await first.close();
  await page.waitForSelector("#state[data-state=waiting]");
  const second = await webSocketServer({ protocol: "wharf.tool.v1", port });
  await welcome(await second.peer());
  await offered(page);
  await second.close();
});

browserTest("k033_a_page_whose_token_is_refused_says_why_and_gives_up", async (open) => {
  const body = JSON.stringify({ error: { code: "auth.invalid", message: "The token is not known." } });
  const server = await webSocketServer({ refuse: () => ({ status: 401, body }) });
  const page = await open();
  await offerFrom(page, server.url, "t", "browser");
  await page.waitForSelector("#state[data-state=closed]");
  assert.equal(await page.textContent("#state"), "The token is not known.");
  assert.ok(await page.isVisible("form"), "another one can be entered");
  await server.close();
});

browserTest("k033_the_package_works_in_a_browser_without_a_bundler", async (open) => {
  const page = await open();
  // What a test and a page can both run, with what each of them has.
  const result = await page.evaluate(async (path) => {
    const sdk = (await import(path)) as typeof import("wharf-sdk");
    const [near, far] = sdk.memoryPair();
    sdk.serve(far, [sdk.tool({ name: "twice", description: "", input: { type: "number" }, output: { type: "number" }, run: (n) => 2 * n })]);
    return sdk.scope(near).call("twice", 21);
  }, "/wharf-sdk/index.js");
  assert.equal(result, 42);
  const [near, far] = memoryPair();
  serve(far, [tool({ name: "twice", description: "", input: z.number(), output: z.number(), run: (n) => 2 * n })]);
  assert.equal(await scope(near).call("twice", 21), 42);
});

const program = process.env["WHARF_BIN"];
if (program) {
  browserTest("k033_k032_a_page_of_an_allowed_origin_serves_and_calls_both_ways", async (open) => {
    const page = await open();
    await ownCore(program, ["--allow-origin", new URL(page.url()).origin], async (core) => {
      for (const via of ["websocket", "events"] as const) {
        const seen = await page.evaluate(async ({ path, url, token, via }) => {
          const sdk = (await import(path)) as typeof import("wharf-sdk");
          const Echo = sdk.tool({ name: "echo", description: "", input: {}, output: {}, run: (value) => value });
          const offer = (given: string) => sdk.connectOperative(url, { provider: `page-${via}`, token: given, via, tools: [Echo] });
          const refused = await offer("nonsense").ready.then(String, (fault: { code: string }) => fault.code);
          const operative = offer(token);
          const tools = await operative.ready;
          const transport = await sdk.connect(url, { token, via });
          const echoed = await sdk.scope(transport).call(tools[0] ?? "", { a: 1 });
          await transport.close();
          await operative.close();
          return { refused, tools, echoed };
        }, { path: "/wharf-sdk/index.js", ...core, via });
        assert.deepEqual(seen, { refused: "auth.invalid", tools: [`page-${via}/echo`], echoed: { a: 1 } });
      }
    });
  });

  browserTest("k032_a_page_opens_a_plain_websocket_and_an_event_source_with_tickets", async (open) => {
    const page = await open();
    await ownCore(program, ["--allow-origin", new URL(page.url()).origin], async (core) => {
      const seen = await page.evaluate(async ({ url, token }) => {
        const headers = { authorization: `Bearer ${token}` };
        const ticket = async (): Promise<string> => (await (await fetch(`${url}/v1/tickets`, { method: "POST", headers })).json()).ticket;
        const socketWith = (one: string): Promise<unknown> =>
          new Promise((resolve) => {
            const socket = new WebSocket(`${url.replace("http", "ws")}/v1/tool/ws?role=principal&ticket=${one}`);
            socket.onopen = () => socket.send(JSON.stringify({ type: "request", payload: { id: "1", kind: "elicit", type: "wharf/echo", payload: { a: 1 } } }));
            socket.onmessage = ({ data }) => {
              const said = JSON.parse(String(data));
              if (said.type === "response") resolve(said.response);
            };
            socket.onerror = () => resolve("refused");
          });
        const first = await ticket();
        const echoed = await socketWith(first);
        const again = await socketWith(first);
        const events = new EventSource(`${url}/v1/runs/no-such-run/events?ticket=${await ticket()}`);
        const unknown = await new Promise((resolve) => {
          events.onopen = () => resolve("open");
          events.onerror = () => resolve(events.readyState);
        });
        return { echoed, again, unknown };
      }, core);
      assert.deepEqual(seen.echoed, { status: "accepted", content: { a: 1 } });
      assert.equal(seen.again, "refused");
      assert.equal(seen.unknown, 2, "a stream that is refused is not opened again");
    });
  });
} else {
  test("k032_a_page_opens_a_plain_websocket_and_an_event_source_with_tickets", { skip: "WHARF_BIN names no program" }, () => {});
  test("k033_k032_a_page_of_an_allowed_origin_serves_and_calls_both_ways", { skip: "WHARF_BIN names no program" }, () => {});
}

if (coreFromEnvironment()) {
  browserTest("k033_a_run_of_the_core_is_answered_in_the_page", async (open) => {
    const core = coreFromEnvironment();
    assert.ok(core);
    const provider = freshName();
    const { token } = await core.api("/v1/tokens", { label: "page", verbs: ["serve"], tools: [`${provider}/*`] });
    const page = await open();
    await offerFrom(page, core.url, token, provider);
    await offered(page);
    const run = core.api("/v1/runs?wait=60s", { tool: `${provider}/get-location`, inputs: { accuracy: "high" } });
    await page.waitForSelector(".request");
    const picture = process.env["WHARF_SCREENSHOT"];
    if (picture) await page.screenshot({ path: picture });
    await page.click(".answer");
    const done = await run;
    assert.equal(done.status, "succeeded", JSON.stringify(done.error));
    assert.deepEqual(done.outputs, { lat: PLACE.latitude, lng: PLACE.longitude });

    const declined = core.api("/v1/runs?wait=60s", { tool: `${provider}/get-location`, inputs: {} });
    await page.click(".decline");
    assert.equal((await declined).status, "refused");
  });

  browserTest("k033_a_run_outlives_a_page_that_is_reloaded", async (open) => {
    const core = coreFromEnvironment();
    assert.ok(core);
    const provider = freshName();
    const page = await open();
    await offerFrom(page, core.url, core.token, provider);
    await offered(page);
    const run = core.api("/v1/runs?wait=60s", { tool: `${provider}/get-location`, inputs: { accuracy: "low" } });
    await page.waitForSelector(".request");
    await page.reload();
    await offered(page);
    await page.click(".answer");
    const done = await run;
    assert.equal(done.status, "succeeded", JSON.stringify(done.error));
  });
} else {
  coreTest("k033_pages_and_a_core", async () => {});
}
