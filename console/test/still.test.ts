import { expect, test } from "vitest";
import { holdStill } from "../src/lib/still";

const rows = (text: string) => text.split(" ").filter(Boolean).map((word) => ({ id: word[0]!, word }));
const still = (held: string, now: string) => {
  const out = holdStill(new Map(rows(held).map((r) => [r.id, r])), rows(now), (r) => r.id);
  return [out.rows.map((r) => r.word).join(" "), out.fresh, [...out.gone].join("")];
};

test.each([
  ["a new row at the top waits", "a b c", "n a b c", "a b c", 1, ""],
  ["rows in another order stay", "a b c", "c b a", "a b c", 0, ""],
  ["what is new in a row is shown", "a1 b1", "b2 a2", "a2 b2", 0, ""],
  ["a row that is gone keeps its place", "a b c", "a c", "a b c", 0, "b"],
  ["what follows after the last one follows", "a b", "a b c d", "a b c d", 0, ""],
  ["in between it waits", "a c", "a b c d", "a c d", 1, ""],
  ["nothing known is left", "a", "x y", "a x y", 0, "a"],
])("c005_%s", (_, held, now, shown, fresh, gone) => {
  expect(still(held, now)).toEqual([shown, fresh, gone]);
});
