// The words that mean something of their own here, each in a sentence or two. They are the words of ARCHITECTURE.md.
export const WORDS = {
  World: "The boundary that owns data, budget and rights. A run belongs to one world, which pays for it.",
  Provider: "What executes a tool's runs: an agent, a tool server, an operative, an MCP server, an operator, or the core itself.",
  Ask: "Something a run waits for: a question, which wants information, or an approval, which wants permission.",
  Hold: "Money set aside for an attempt before it begins, so that a budget cannot be overrun.",
  Tool: "A named, typed operation that can be called. Its id is provider/name.",
  Run: "One call of a tool: it can be watched and canceled, and it ends exactly once.",
  Attempt: "One try of a run. A run that may be repeated safely gets another one when its provider is lost.",
  Agent: "A provider that the core launches in a sandbox and talks to over the agent protocol.",
  Operative: "A provider that connects by itself, such as a page or a desktop program.",
  Seat: "A durable place of an operator. It keeps what waits for it while nobody sits there.",
  Flow: "A tool made of several steps in a document, which the core itself goes through. Each call among them is a run.",
  Schedule: "What starts a run by the clock: by a pattern, after a length of time, or once.",
  Trigger: "What somebody outside starts a run with: an address that is called, and a proof that the caller may.",
  Receiver: "An address outside that the core tells what happens, such as that an approval waits.",
  Audit: "The record of who did what, without contents. Each entry is chained to the one before.",
} as const;

export type WordName = keyof typeof WORDS;
