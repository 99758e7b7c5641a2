// What schedules, triggers and receivers have in common: paused, resumed and removed from their page.
import assert from "node:assert/strict";
import { barriers, overflow } from "./browser.mjs";

/** Pauses what the page shows, and waits until the page says what that means. No barrier, also where it is narrow. */
export async function pauses(page, said) {
  await page.getByRole("button", { name: "Pause" }).click();
  for (const text of said) await page.getByText(text).first().waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.setViewportSize({ width: 320, height: 800 });
  assert.ok((await overflow(page)) <= 0);
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** Resumes it and removes it; the list then says that there is none. */
export async function resumesAndGoes(page, kind, name, none) {
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: `Remove this ${kind}` }).click();
  await page.getByRole("heading", { name: `Remove the ${kind} ${name}?` }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Remove it" }).click();
  await page.getByText(none).waitFor();
  assert.deepEqual(page.faults, []);
}
