// What the page stands on: the core's own document of the API, its size, and that it asks nobody else.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { goto, launch, newPage, signIn } from "./browser.mjs";
import { Core } from "./core.mjs";
import { seed } from "./seed.mjs";

const HERE = fileURLToPath(new URL("..", import.meta.url));
/** Every address of a screen, with all parts that ask for something of their own. */
const SCREENS = [
  "/", "/runs", "/runs/default/count-to-forty", ...["output", "inputs", "events", "lineage", "money", "audit"].map((tab) => `/runs/default/count-to-forty?tab=${tab}`), "/runs/studio/echo-again?tab=lineage", "/runs/studio/echo-again?compare=echo-storyboard",
  "/inbox", "/inbox?state=decided", "/tools", "/tools/wharf/count", "/tools/wharf/count?tab=definition", "/flows", "/providers", "/providers/wharf", "/providers/wharf?tab=tools", "/worlds", ...["files", "money", "rules", "tokens"].map((tab) => `/worlds/studio?tab=${tab}`), "/worlds/studio?file=/brief/storyboard.md&tab=lineage",
  "/schedules", "/schedules/beat", "/money", "/operators", "/audit", "/tokens", "/tokens?tab=secrets", "/tokens?tab=sessions", "/system",
];
const ROUTES = [...(await readFile(join(HERE, "src/screens/routes.ts"), "utf8")).matchAll(/pattern: \/(\^.*?\$)\/,/g)].map((m) => new RegExp(m[1]));
/** A screen that is new is opened, too, even before it is named above: with a thing that is not there. */
const ADDRESSES = [...SCREENS, ...ROUTES.filter((r) => !SCREENS.some((s) => r.test(s.split("?")[0]))).map((r) => r.source.replace(/^\^|\$$/g, "").replaceAll("\\/", "/").replaceAll(/\([^)]*\)/g, "none")).filter((path) => path !== "/ui")];
let core;
let browser;

before(async () => {
  core = await Core.start();
  browser = await launch();
  await seed(core);
});

after(async () => {
  await browser?.close();
  await core?.stop();
});

test("c001_types_of_the_page_are_those_of_the_cores_document", async () => {
  const folder = await mkdtemp(join(tmpdir(), "wharf-types-"));
  try {
    const file = join(folder, "openapi.json");
    await writeFile(file, JSON.stringify(await core.api("/openapi.json")));
    await promisify(execFile)(process.execPath, ["scripts/types.mjs", file, "--check"], { cwd: HERE });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("c001_every_route_that_the_page_asks_for_stands_in_the_document", async () => {
  const paths = Object.keys((await core.api("/openapi.json")).paths);
  const known = paths.map((path) => new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, ".+")}$`));
  assert.ok(ROUTES.length > 15 && ROUTES.every((r) => r.test("/ui") || ADDRESSES.some((a) => r.test(a.split("?")[0]))), ADDRESSES.join(" "));
  const page = await newPage(browser);
  const asked = new Set();
  page.on("request", (r) => asked.add(new URL(r.url()).pathname));
  await signIn(page, core);
  for (const screen of ADDRESSES) {
    await goto(page, core, screen);
    await page.waitForLoadState("networkidle").catch(() => {});
  }
  const unknown = [...asked].filter((path) => path.startsWith("/v1/") && !known.some((it) => it.test(path)));
  assert.deepEqual(unknown, []);
  assert.ok([...asked].some((path) => path.startsWith("/v1/runs")), "it asked for something");
  await page.context().close();
});

test("c003_the_page_keeps_its_size_and_asks_no_other_host", async () => {
  const page = await newPage(browser);
  let first = 0;
  const sizes = [];
  page.on("response", (answer) => {
    const path = new URL(answer.url()).pathname;
    if (path === "/" || path.startsWith("/assets/")) sizes.push(answer.request().sizes().then((s) => (first += s.responseBodySize)));
  });
  await signIn(page, core);
  await page.waitForLoadState("networkidle").catch(() => {});
  await Promise.all(sizes);
  assert.ok(first > 10_000 && first <= 120 * 1024, `${first} bytes for the first paint`);
  for (const screen of ADDRESSES) await goto(page, core, screen);
  assert.deepEqual([...page.hosts], [new URL(core.url).host]);
  const folder = join(HERE, "dist/assets");
  let all = 0;
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".gz")) continue;
    const packed = await readFile(join(folder, name));
    assert.ok(gunzipSync(packed).equals(await readFile(join(folder, name.slice(0, -3)))), name);
    all += packed.length;
  }
  assert.ok(all <= 250 * 1024, `${all} bytes in all`);
  await page.context().close();
});

test("c033_text_of_others_stands_apart", async () => {
  const page = await newPage(browser);
  await signIn(page, core);
  await goto(page, core, "/inbox");
  await page.locator("bdi").first().waitFor();
  const foreign = await page.locator("bdi").allTextContents();
  const titles = (await core.api("/v1/inbox")).items.map((ask) => ask.title);
  assert.ok(titles.some((title) => foreign.includes(title)), foreign.join(" | "));
  await page.context().close();
});
