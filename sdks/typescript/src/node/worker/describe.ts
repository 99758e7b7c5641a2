/** What tools a handler has, as one JSON object: `{"describe": 1, "tools": […]}`, or why it cannot be imported. */

import type { AnyTool } from "../../tool.js";
import { objectSchema } from "../values.js";
import { load, Unusable, type Handler } from "./load.js";

const FORM = 1;

/** Describes a handler; `function` is the one that must be among its tools, if one is named. */
export async function describe(file: string, known: string, wanted: string | undefined, isServed: boolean): Promise<object> {
  try {
    const handler = await load(file, known);
    if (isServed) handler.choose(wanted);
    return { describe: FORM, tools: tools(handler) };
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
    return { describe: FORM, error: { message: error.message, sentence: error.sentence, traceback: error.lines } };
  }
}

function tools(handler: Handler): object[] {
  return [...handler.tools].map(([name, tool]) => one(name, tool));
}

function one(name: string, { description, schemas, mock, durable }: AnyTool): object {
  const output_schema = Object.keys(schemas.output).length === 0 ? null : objectSchema(schemas.output);
  return { name, description, input_schema: objectSchema(schemas.input), output_schema, stream: null, mock, durable };
}
