/** Files that export tools: what they say of themselves, and how a tool is tried without a core. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Fault, scope, serve, memoryPair, tool, tryTool } from "wharf-sdk";
import { z } from "zod";

const MAIN = fileURLToPath(new URL("../../src/node/worker/main.js", import.meta.url));

/** What a file says of itself; what is known of its types is given. */
async function described(text: string, known: Record<string, object> = {}, name = "handler.mjs"): Promise<any> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "wharf-handler-")));
  try {
    const [file, place, answer] = [name, "known.json", "answer.json"].map((one) => join(folder, one)) as [string, string, string];
    await writeFile(file, text);
    const files = Object.fromEntries(Object.entries(known).map(([path, one]) => [join(folder, path), one]));
    await writeFile(place, JSON.stringify({ folder, files }));
    await promisify(execFile)(process.execPath, [MAIN, "describe", file, place, answer]);
    return JSON.parse(await readFile(answer, "utf8"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("k033_every_exported_tool_is_described_once_by_its_code", async () => {
  const { tools } = await described(`
    import { tool } from "wharf-sdk";
    const text = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
    export const countWords = tool({ description: "Counts.", input: text, mock: true, run: ({ text }) => ({ words: text.length }) });
    export const named = tool({ name: "other", input: { type: "string" }, output: { type: "number" }, run: () => 1 });
    export default countWords;
    export const nothing = 7;
  `);
  assert.deepEqual(tools.map((one: any) => one.name), ["countWords", "other"]);
  assert.deepEqual([tools[0].description, tools[0].mock, tools[0].output_schema], ["Counts.", true, null]);
  assert.deepEqual(tools[0].input_schema.required, ["text"]);
  assert.deepEqual(tools[1].input_schema.properties, { value: { type: "string" } });
  assert.deepEqual(tools[1].output_schema.properties, { value: { type: "number" } });
  const alone = await described(`import { tool } from "#wharf"; export default tool({ input: {}, run: () => 1 });`);
  assert.equal(alone.tools[0].name, "handler");
  const common = await described(`const { tool } = require("wharf-sdk"); module.exports = { a: tool({ input: {}, run: () => 1 }) };`, {}, "handler.cjs");
  assert.deepEqual(common.tools.map((one: any) => one.name), ["a"], JSON.stringify(common));
});

test("k033_what_is_wrong_with_a_file_is_one_sentence_with_its_line", async () => {
  const head = `import { tool } from "wharf-sdk";\n`;
  const of = async (text: string, known = {}): Promise<string> => (await described(head + text, known)).error.message;
  assert.match(await of(`import { a } from "@none/such/part";`), /^handler\.mjs, line 2: the package @none\/such is not installed; run `npm install @none\/such`/);
  assert.match(await of(`null.x;`), /^TypeError in handler\.mjs, line 2: /);
  assert.match(await of(`import { a } from "node:fs";`), /import type/);
  assert.match(await of(`export const a = tool({ input: {} });`), /`a` of handler\.mjs has no `run`/);
  const twice = `export const a = tool({ name: "x", input: {}, run: () => 1 }), b = tool({ name: "x", input: {}, run: () => 2 });`;
  assert.match(await of(twice), /two tools of the name `x`/);
  const schema = `const s = { "~standard": { version: 1, vendor: "mine", validate: (value) => ({ value }) } };\n`;
  assert.match(await of(`${schema}export const a = tool({ input: s, run: () => 1 });`), /schema of mine that cannot be said/);
  const wrong = await described("not = javascript (", { "handler.mjs": { why: "SyntaxError: Unexpected token", line: 1 } });
  assert.equal(wrong.error.message, "SyntaxError in handler.mjs, line 1: Unexpected token");
  assert.deepEqual(wrong.error.traceback, [wrong.error.message, "    not = javascript ("]);
});

const Count = tool({
  input: z.object({ text: z.string() }),
  async run({ text }, cx) {
    cx.status("counting", 2);
    cx.log("a line");
    cx.text("one ");
    cx.text("two");
    cx.cost(5);
    const image = await cx.write("image", new Uint8Array(2));
    const more = (await cx.call("acme/more", { text })) as { n: number };
    const answer = await cx.ask("Sure?", z.boolean());
    return { letters: text.length, image, more: more.n, sure: answer.status === "accepted" && answer.content, mock: cx.isMock };
  },
});

test("k033_a_tool_is_tried_without_a_core", async () => {
  const options = { tools: { "acme/more": () => ({ n: 3 }) }, answer: () => true, outputs: ["image"], mock: true };
  const tried = await tryTool(Count, { text: "word" }, options);
  assert.deepEqual(tried.output, { letters: 4, image: "/artifacts/image", more: 3, sure: true, mock: true });
  assert.deepEqual(tried.status, [{ text: "counting", fraction: 1 }]);
  assert.deepEqual(tried.logs, [{ level: "info", text: "a line" }]);
  assert.deepEqual([tried.text, tried.cost, tried.written], [{ text: "one two" }, 5, { image: new Uint8Array(2) }]);
  await assert.rejects(tryTool(Count, { text: 1 } as never), (fault: Fault) => fault.code === "tool.invalid_input");
  await assert.rejects(tryTool(Count, { text: "x" }), /acme\/more/);
});

test("k033_a_tool_without_a_name_is_for_files_and_in_place", async () => {
  const Plain = tool({ input: {}, run: () => 1 });
  assert.equal(await scope().call(Plain, {}), 1);
  const [near] = memoryPair();
  assert.throws(() => serve(near, [Plain]), /needs a name/);
});

test("k033_a_file_stands_where_a_schema_says_so", async () => {
  const schema = { type: "object", properties: { document: { type: "string", format: "binary" } }, required: ["document"] } as const;
  const Size = tool({ input: schema, run: ({ document }) => document.size });
  assert.equal((await tryTool(Size, { document: new File(["abc"], "x") })).output, 3);
  const Text = tool({ input: { type: "object", properties: { text: { type: "string" } } }, run: () => 1 });
  await assert.rejects(tryTool(Text, { text: new File([], "x") } as never), /not of type "string"/);
});
