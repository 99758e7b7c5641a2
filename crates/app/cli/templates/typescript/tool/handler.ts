/** The tool {{id}}: counts what a text has. */

import { tool } from "#wharf";

export const count = tool({
  description: "Counts the words and lines of a text.",
  input: {
    type: "object",
    properties: { text: { type: "string", description: "The text, or a reference to a file with it" } },
    required: ["text"],
    additionalProperties: false,
  },
  output: {
    type: "object",
    properties: { words: { type: "integer", minimum: 0 }, lines: { type: "integer", minimum: 0 } },
    required: ["words", "lines"],
    additionalProperties: false,
  },
  run({ text }, cx) {
    cx.status("counting", 0.5);
    const words = text.split(/\s+/).filter((word) => word !== "").length;
    const lines = text === "" ? 0 : text.replace(/\r?\n$/, "").split(/\r?\n/).length;
    return { words, lines };
  },
});
