/** The operative's tools. */

import { Fault, tool } from "#wharf";

let times = 0;

export const Say = tool({
  name: "say",
  description: "Says something where this program runs.",
  input: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
    additionalProperties: false,
  },
  output: {
    type: "object",
    properties: { said: { type: "string" }, times: { type: "integer" } },
    required: ["said", "times"],
    additionalProperties: false,
  },
  progress: { type: "string" },
  run({ text }, cx) {
    if (text.trim() === "") throw new Fault("{{code}}.nothing", "There is nothing to say.");
    cx.progress("clearing the throat");
    console.log(`{{id}} says: ${text}`);
    times += 1;
    return { said: text, times };
  },
});
