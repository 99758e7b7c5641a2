/** The agent {{id}}: a process that a core starts, with any number of tools. */

import { runAgent } from "#wharf/agent";

import { Greet } from "./tools.js";

await runAgent([Greet], { id: "{{id}}", version: "0.1.0" });
