/** The agent's tools. */

import { Fault, tool } from "#wharf";

export const Greet = tool({
  name: "greet",
  description: "Greets somebody by name.",
  input: {
    type: "object",
    properties: { name: { type: "string", description: "Whom to greet" } },
    required: ["name"],
    additionalProperties: false,
  },
  output: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
    additionalProperties: false,
  },
  progress: { type: "string" },
  sideEffects: false,
  run({ name }, cx) {
    if (name.trim() === "") throw new Fault("{{code}}.no_name", "There is nobody to greet.");
    cx.progress("thinking of something nice");
    return { text: `Hello, ${name.trim()}!` };
  },
});
