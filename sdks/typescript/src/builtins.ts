/** The tools that every side knows: asking somebody, telling somebody, asking a model. */

import { Fault } from "./fault.js";
import { check, isStandard, jsonSchema, jsonSchemaOf, type Schema, type StandardSchema } from "./schema.js";
import { define, type Tool } from "./tool.js";

/** A question. */
export interface ElicitInput {
  /** What is asked. */
  message: string;
  /** What the answer must look like. */
  schema?: Schema | undefined;
  /** How it is asked: `form`, `confirmation`, or a word that both sides know. */
  type?: string | undefined;
  /** More for the other side. */
  meta?: Record<string, unknown> | undefined;
}

/** What became of a question. Each of these is an answer; only trouble on the way is an error. */
export type Elicited<T = unknown> =
  /** Answered; `content` fits the schema. */
  | { status: "accepted"; content: T }
  /** They do not want to answer. */
  | { status: "declined" }
  /** They gave up, or the question was withdrawn. */
  | { status: "cancelled" }
  /** It must not be asked. */
  | { status: "denied" }
  /** They said something else, in words of their own. */
  | { status: "other"; content: string };

/** A message for people. */
export interface NotifyInput {
  message: string;
  /** How far things are, from 0 to 1. */
  progress?: number | undefined;
  level?: "debug" | "info" | "warning" | "error" | (string & {}) | undefined;
  meta?: Record<string, unknown> | undefined;
}

/** What a model is asked. */
export interface SampleInput {
  prompt: string | { role: string; content: string }[];
  maxTokens?: number | undefined;
  temperature?: number | undefined;
  stop?: string[] | undefined;
  model?: string | undefined;
  meta?: Record<string, unknown> | undefined;
}

/** What a model said. */
export interface Sampled {
  text: string;
  usage?: Record<string, unknown> | undefined;
  model?: string | undefined;
  finishReason?: string | undefined;
}

const text = { type: "string" };
const object = { type: "object" };
const MODEL_WORDS_SCHEMA = {
  type: "object",
  required: ["role", "content"],
  properties: { role: text, content: text },
};

/** Asks somebody for something that fits a schema. */
export const elicit: Tool<StandardSchema<ElicitInput>, StandardSchema<Elicited>, undefined> = define(
  {
    name: "elicit",
    description: "Asks somebody for structured input.",
    input: jsonSchema<ElicitInput>({
      type: "object",
      required: ["message"],
      properties: { message: text, type: text, meta: object },
    }),
    output: jsonSchema<Elicited>({
      type: "object",
      required: ["status"],
      properties: { status: { enum: ["accepted", "declined", "cancelled", "denied", "other"] } },
    }),
  },
  {
    builtin: true,
    request: ({ type, message, schema, meta }: ElicitInput) => {
      const payload: Record<string, unknown> = { message, schema: schema ? jsonSchemaOf(schema, "input") : {} };
      if (meta !== undefined) payload["meta"] = meta;
      return { kind: "elicit", type: type ?? "form", payload, builtin: "elicit" };
    },
    read: (outcome) => outcome,
    write: (output: Elicited) => output,
    settle: settleAnswer,
  },
) as Tool<StandardSchema<ElicitInput>, StandardSchema<Elicited>, undefined>;

/** Tells people something. */
export const notify: Tool<StandardSchema<NotifyInput>, StandardSchema<null | void, null>, undefined> = define(
  {
    name: "notify",
    description: "Tells people something.",
    input: jsonSchema<NotifyInput>({
      type: "object",
      required: ["message"],
      properties: { message: text, level: text, meta: object, progress: { type: "number" } },
    }),
    output: {},
  },
  {
    builtin: true,
    request: ({ message, progress, level, meta }: NotifyInput) => {
      const payload: Record<string, unknown> = { message, level: level ?? "info" };
      if (progress !== undefined) payload["progress"] = progress;
      if (meta !== undefined) payload["meta"] = meta;
      return { kind: "notify", type: "notification", payload, builtin: "notify" };
    },
    read: (outcome) => {
      if (outcome.status === "accepted") return null;
      throw new Fault("tool.failed", outcome.status === "other" ? outcome.content : "The notice was not taken.");
    },
    write: () => ({ status: "accepted", content: null }),
    settle: () => null,
  },
) as Tool<StandardSchema<NotifyInput>, StandardSchema<null | void, null>, undefined>;

/** Asks a model. */
export const sample: Tool<StandardSchema<SampleInput>, StandardSchema<Sampled>, undefined> = define(
  {
    name: "sample",
    description: "Asks a model.",
    input: jsonSchema<SampleInput>({
      type: "object",
      required: ["prompt"],
      properties: {
        prompt: { anyOf: [text, { type: "array", items: MODEL_WORDS_SCHEMA }] },
        maxTokens: { type: "integer", minimum: 1 },
        temperature: { type: "number" },
        stop: { type: "array", items: text },
        model: text,
        meta: object,
      },
    }),
    output: jsonSchema<Sampled>({
      type: "object",
      required: ["text"],
      properties: { text, model: text, finishReason: text, usage: object },
    }),
  },
  {
    builtin: true,
    request: (input: SampleInput) => ({ kind: "elicit", type: "sample", payload: input, builtin: "sample" }),
    write: (output: Sampled) => ({ status: "accepted", content: output }),
    read: (outcome) => {
      if (outcome.status === "accepted") return outcome.content;
      if (outcome.status === "other") throw new Fault("tool.failed", outcome.content);
      if (outcome.status === "cancelled") throw Fault.canceled("The model was called off.");
      throw outcome.status === "declined" ? Fault.declined("The model was declined.") : Fault.denied("The model was denied.");
    },
  },
) as Tool<StandardSchema<SampleInput>, StandardSchema<Sampled>, undefined>;

/** An accepted answer must fit what was asked for. A schema of a kind that is not known says nothing. */
async function settleAnswer(output: Elicited, { schema }: ElicitInput): Promise<Elicited> {
  switch (output.status) {
    case "accepted":
      if (!schema || !(isStandard(schema) || isPlainObject(schema))) return { status: "accepted", content: output.content };
      return { status: "accepted", content: await answerOf(schema, output.content) };
    case "other":
      return { status: "other", content: String(output.content ?? "") };
    default:
      return { status: output.status };
  }
}

async function answerOf(schema: Schema, content: unknown): Promise<unknown> {
  try {
    return await check(schema, content, "answer", "elicit");
  } catch (error) {
    const unreadable = error instanceof Fault && error.code === "tool.schema_invalid" && !isStandard(schema);
    if (!unreadable) throw error;
    return content;
  }
}

function isPlainObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
