import { expect, test } from "vitest";
import { waitWords } from "../src/lib/waits";

const NOW = Date.parse("2026-11-19T12:00:00Z");
const until = (ms: number) => new Date(NOW + ms).toISOString();

test.each([
  ["retry", 12_000, "It is tried again in 12 s.", ""],
  ["retry", 1000, "It is tried again in a moment.", ""],
  ["retry", -60_000, "It is tried again now.", ""],
  ["room", 120_000, "It waits for room at its provider.", "It gives up in 2 min."],
  ["provider", 30_000, "It waits for its provider.", "It gives up in 30 s."],
  ["ask", 30_000, "", ""],
])("c012_%s_is_told_by_what_it_waits_for", (kind, ms, what, when) => {
  expect(waitWords({ kind, message: "The upstream is away.", until: until(ms) }, NOW)).toEqual({ what, said: "The upstream is away.", when });
});

test("c012_a_wait_without_a_moment_is_told_without_one", () => {
  expect(waitWords({ kind: "retry", message: "", until: "?" }, NOW)).toEqual({ what: "It is tried again soon.", said: "", when: "" });
});
