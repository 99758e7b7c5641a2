/** The example page in a real browser. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium, type Page } from "playwright-core";

const SERVE = fileURLToPath(new URL("../../../../../examples/operatives/get-location/serve.mjs", import.meta.url));
const BROWSERS = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const PLACE = { latitude: 59.91, longitude: 10.75 };

/** A test that needs a browser. Without one it is skipped, and says so. */
export function browserTest(name: string, body: (open: () => Promise<Page>) => Promise<void>): void {
  const executablePath = BROWSERS.find((path) => path !== undefined && existsSync(path));
  if (!executablePath) return void test(name, { skip: "there is no chromium" }, () => {});
  test(name, async () => {
    const server = spawn(process.execPath, [SERVE, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
    const [url] = (await once(createInterface(server.stdout), "line")) as [string];
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    try {
      const context = await browser.newContext({ geolocation: PLACE, permissions: ["geolocation"], viewport: { width: 720, height: 640 } });
      await body(async () => {
        const page = await context.newPage();
        await page.goto(url);
        return page;
      });
    } finally {
      await browser.close();
      server.kill();
      await once(server, "exit");
    }
  });
}

/** Fills in where the core is. */
export async function offerFrom(page: Page, url: string, token: string, provider: string): Promise<void> {
  await page.fill("[name=url]", url);
  await page.fill("[name=token]", token);
  await page.fill("[name=provider]", provider);
  await page.click("form button");
}

/** Waits until the page says that its tool can be called. */
export async function offered(page: Page): Promise<void> {
  await page.waitForSelector("#state[data-state=offered]");
}
