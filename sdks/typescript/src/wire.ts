/**
 * Messages between the two sides of a tool, as text and back.
 *
 * Reading is lenient: requests with and without an envelope, missing values, keys and types that
 * nobody here knows. Writing is strict: only the keys that every peer knows, since there are peers
 * that drop a message with one more key. Only faults and costs go beyond, to peers that asked for it.
 */

import { Fault, type FaultMessage } from "./fault.js";

/** The WebSocket subprotocol of peers that understand faults and costs. */
export const PROTOCOL = "wharf.tool.v1";

/** How a request ended. */
export type Outcome =
  | { status: "accepted"; content: unknown }
  | { status: "declined" }
  | { status: "cancelled" }
  | { status: "denied" }
  | { status: "other"; content: string };

/** What one side asks of the other. */
export interface Request {
  id: string;
  kind: "elicit" | "notify";
  type: string;
  payload: unknown;
}

/** A request before it has an id. */
export interface Ask extends Omit<Request, "id"> {
  /** Which of the built-in tools it is. Messages do not say so. */
  builtin?: "elicit" | "notify" | "sample";
}

/** A tool as it is offered. */
export interface Offer {
  name: string;
  description: string;
  input: unknown;
  output?: unknown;
  progress?: unknown;
}

/** A message that was read. */
export type Message =
  | { type: "request"; request: Request }
  | { type: "child"; of: string; request: Request }
  /** Without data only the cost is told. */
  | { type: "progress"; id: string; data?: unknown; cost: number | undefined }
  | { type: "response"; id: string; outcome: Outcome | Fault; cost: number | undefined }
  | { type: "cancel"; id: string }
  | { type: "offer"; tools: unknown }
  | { type: "offered"; tools: string[]; fault: Fault | undefined }
  | { type: "closed"; code: number; reason: string }
  | { type: "gap" }
  | { type: "unknown" }
  | { type: "malformed"; id: string | undefined };

type Fields = Record<string, unknown>;

/** Reads one message. */
export function readMessage(text: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { type: "malformed", id: undefined };
  }
  if (!isObject(value)) return { type: "malformed", id: undefined };
  if ("kind" in value) return readRequest(value, (request) => ({ type: "request", request }));
  const id = textOf(value["id"]);
  switch (value["type"]) {
    case "request":
      return readRequest(value["payload"], (request) => ({ type: "request", request }), id);
    case "child": {
      const of = textOf(value["of"]);
      if (of === undefined) return readRequest(value["payload"], () => ({ type: "malformed", id }));
      return readRequest(value["payload"], (request) => ({ type: "child", of, request }));
    }
    case "progress": {
      if (id === undefined) return { type: "malformed", id };
      const cost = costOf(value["cost_micro"]);
      const onlyCost = cost !== undefined && !("data" in value);
      return onlyCost ? { type: "progress", id, cost } : { type: "progress", id, data: value["data"] ?? null, cost };
    }
    case "response":
      // Nobody answers an answer, so it is not said whose it was.
      if (id === undefined) return { type: "malformed", id };
      return { type: "response", id, outcome: readOutcome(value["response"]), cost: costOf(value["cost_micro"]) };
    case "cancel":
      return id === undefined ? { type: "malformed", id } : { type: "cancel", id };
    case "offer":
      return { type: "offer", tools: value["tools"] };
    case "offered":
      return readOffered(value);
    case "closed":
      return { type: "closed", code: Number(value["code"]), reason: textOf(value["reason"]) ?? "" };
    case "gap":
      return { type: "gap" };
    default:
      return typeof value["type"] === "string" ? { type: "unknown" } : { type: "malformed", id };
  }
}

function readRequest(value: unknown, found: (request: Request) => Message, outer?: string): Message {
  if (!isObject(value)) return { type: "malformed", id: outer };
  const { kind, type } = value;
  const id = textOf(value["id"]);
  if (id === undefined || (kind !== "elicit" && kind !== "notify") || typeof type !== "string") {
    return { type: "malformed", id: id ?? outer };
  }
  return found({ id, kind, type, payload: value["payload"] ?? null });
}

function readOutcome(value: unknown): Outcome | Fault {
  if (!isObject(value)) return new Fault("protocol.malformed", "The answer has no form that is known.");
  const { status, content } = value;
  switch (status) {
    case "accepted":
      return { status, content: content ?? null };
    case "declined":
    case "cancelled":
    case "denied":
      return { status };
    case "other": {
      const text = typeof content === "string" ? content : JSON.stringify(content ?? null);
      return isObject(value["fault"]) ? Fault.read(value["fault"], text) : { status, content: text };
    }
    default:
      if (value["ok"] === true) return { status: "accepted", content: null };
      return new Fault("protocol.malformed", "The answer has a status that is not known.");
  }
}

function readOffered(value: Fields): Message {
  const tools = Array.isArray(value["tools"]) ? value["tools"].filter((name) => typeof name === "string") : [];
  const fault = value["error"] === undefined ? undefined : Fault.read(value["error"], "The offer was refused.");
  return { type: "offered", tools, fault };
}

/** A request. Where the connection has no other messages going that way it goes without an envelope. */
export function writeRequest(request: Request, bare: boolean): string {
  return JSON.stringify(bare ? plain(request) : { type: "request", payload: plain(request) });
}

/** A request made while another one is served. */
export function writeChild(of: string, request: Request): string {
  return JSON.stringify({ type: "child", of, payload: plain(request) });
}

function plain({ id, kind, type, payload }: Request): Request {
  return { id, kind, type, payload: payload ?? null };
}

/** One piece of progress. */
export function writeProgress(id: string, data: unknown): string {
  return JSON.stringify({ type: "progress", id, data: data ?? null });
}

/** What a request has cost so far, in millionths of a dollar. Only peers that understand costs are told. */
export function writeCost(id: string, micro: number): string {
  return JSON.stringify({ type: "progress", id, cost_micro: micro });
}

/** The end of a request. `own` says that the other side understands faults, and what it has cost. */
export function writeResponse(id: string, kind: Request["kind"], answer: Outcome | Fault, own: boolean, micro = 0): string {
  const response = { type: "response", id, response: responseOf(kind, answer, own) };
  return JSON.stringify(own && micro > 0 ? { ...response, cost_micro: micro } : response);
}

function responseOf(kind: Request["kind"], answer: Outcome | Fault, own: boolean): Fields {
  if (!(answer instanceof Fault)) {
    if (answer.status !== "accepted") return { ...answer };
    return kind === "notify" ? { ok: true } : { status: "accepted", content: answer.content ?? null };
  }
  if (answer.code === "tool.canceled") return { status: "cancelled" };
  if (answer.code === "tool.declined") return { status: "declined" };
  if (answer.code === "permission.denied") return { status: "denied" };
  const plainForm = { status: "other", content: answer.message };
  return own ? { ...plainForm, fault: answer.toJSON() satisfies FaultMessage } : plainForm;
}

/** Asks the other side to stop what it does for a request. */
export function writeCancel(id: string): string {
  return JSON.stringify({ type: "cancel", id });
}

/** Says that nobody comes back to a session that outlives its connections. */
export function writeFarewell(): string {
  return JSON.stringify({ type: "closed", code: 1000, reason: "closed" });
}

/** Says which tools there are. */
export function writeOffer(tools: readonly Offer[]): string {
  return JSON.stringify({ type: "offer", tools });
}

/** Says under which names an offer was accepted, or why not. */
export function writeOffered(answer: readonly string[] | Fault): string {
  if (!(answer instanceof Fault)) return JSON.stringify({ type: "offered", tools: answer });
  return JSON.stringify({ type: "offered", error: { code: answer.code, message: answer.message } });
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A whole number of millionths of a dollar; anything else says nothing. */
function costOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A text that says something. */
function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
