/** The tool {{id}} as a server, which a core starts. */

import { serveTool } from "#wharf/toolserver";

import { Count } from "./tool.js";

await serveTool("{{id}}", Count);
