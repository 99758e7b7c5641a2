import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { asCurl, asWharf, notTyped } from "../src/lib/commands";
import { parse } from "../src/lib/json";

const run = (inputs, more = {}) => ({ tool: "acme/resize", world: "lab", inputs: parse(inputs), ...more });
/** The words that a shell makes of a command. */
const words = (command) => execFileSync("sh", ["-c", `printf '%s\\n' ${command}`], { encoding: "utf8" }).trimEnd().split("\n");

test.each([
  ["simple", run('{"n": 12345678901234567890, "text": "it\'s"}', { world: "default" }), ["wharf", "run", "acme/resize", "n=12345678901234567890", "text=it's"]],
  ["files", run('{"image.world": "/in/a.png"}', { outputs: [{ key: "small", path: "/out/a b.png", world: "lab" }, { key: null, path: "/x", world: "lab" }, { key: "far", path: "/x", world: "other" }] }), ["wharf", "run", "acme/resize", "image.world=/in/a.png", "--out", "small.world=/out/a b.png", "--world", "lab"]],
  ["deep", run('{"list": [1, 2]}', { mode: "mock", continues: "r-1" }), ["wharf", "run", "acme/resize", "--input", '{"list":[1,2]}', "--world", "lab", "--mode", "mock", "--continues", "r-1"]],
  ["limits", run("{}", { timeout_ms: 90_000, budget_micro: 2_500 }), ["wharf", "run", "acme/resize", "--world", "lab", "--timeout", "90s", "--budget-micro", "2500"]],
  ["odd limits", run("{}", { timeout_ms: 1_500, budget_micro: 0 }), ["wharf", "run", "acme/resize", "--world", "lab", "--timeout", "1500ms", "--budget-micro", "0"]],
])("c012_a_run_as_a_command_says_all_that_is_known_%s", (_, typed, expected) => {
  expect(words(asWharf(typed))).toEqual(expected);
});

test("c012_a_run_as_curl_names_its_files_and_its_mode", () => {
  const typed = run('{"image.world": "/in/a.png"}', { mode: "mock", continues: "r-1", timeout_ms: 60_000, budget_micro: 5, outputs: [{ key: "small", path: "/out/a.png", world: "lab" }] });
  const body = words(asCurl("http://127.0.0.1:7420", typed).replace("curl -s", "")).at(-1);
  expect(JSON.parse(body ?? "")).toEqual({ tool: "acme/resize", world: "lab", inputs: { "image.world": "/in/a.png" }, outputs: { "small.world": "/out/a.png" }, mode: "mock", continues: "r-1", timeout_ms: 60_000, budget_micro: 5 });
});

test("c012_what_a_command_cannot_say_is_named", () => {
  expect(notTyped(run('{"to": ["https://a.example/x"]}'))).toMatch(/credentials that stood in addresses/);
  expect(notTyped(run('{"to": "plain"}'))).toBeUndefined();
});
