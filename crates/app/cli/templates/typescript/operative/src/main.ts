/** The operative {{id}}: tools that are there for as long as this program runs. */

import { connectOperative } from "#wharf";

import { findCore } from "./core.js";
import { Say } from "./tools.js";

const { url, token } = findCore();
const operative = connectOperative(url, { provider: "{{id}}", token, tools: [Say] });

const stop = (): void => void operative.close({ drainMs: 10_000 });
process.once("SIGINT", stop).once("SIGTERM", stop);

const tools = await operative.ready;
console.error(`serving ${tools.join(", ")}; Ctrl-C ends it`);
