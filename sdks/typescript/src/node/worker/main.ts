/**
 * What runs a handler inside the workers of a tool server, and says what it has.
 *
 * `main.js run FILE KNOWN` serves the one run that arrives on descriptor 3; `main.js describe FILE
 * KNOWN ANSWER` writes what tools there are to a file, and `check` does the same for the tool that
 * is to be served.
 */

import { writeFileSync } from "node:fs";

import { Channel } from "./channel.js";
import { describe } from "./describe.js";
import { WorkerRun } from "./run.js";

const CHANNEL = 3;

const [word, file = "", known = "", answer = ""] = process.argv.slice(2);
const wanted = process.env["WHARF_FUNCTION"];
delete process.env["WHARF_FUNCTION"];
// What the handler sees is its own file.
process.argv.splice(1, process.argv.length, file);
if (word === "run") {
  const channel = new Channel(CHANNEL);
  await new WorkerRun(channel, await channel.started).run(file, known, wanted);
} else {
  writeFileSync(answer, JSON.stringify(await describe(file, known, wanted, word === "check")));
}
// What is left behind, such as timers, is not waited for.
process.exit(0);
