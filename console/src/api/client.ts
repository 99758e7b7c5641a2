// One way to ask the core. Credentials are the two halves of the session: a cookie the page cannot see, and a key it keeps.
import { signal } from "@preact/signals";
import type { ErrorInfo } from "./types";

const KEY = "wharf.session";

/** A refusal by the core, or the absence of an answer. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly info: ErrorInfo) {
    super(info.message);
  }
  get code(): string {
    return this.info.code;
  }
}

/** When the core last answered, and whether it does. */
export const lastAnswer = signal(Date.now());
export const reachable = signal(true);
/** Since when the oldest question is unanswered. */
export const waiting = signal<number | undefined>(undefined);
const asked = new Map<symbol, number>();

/** Keeps in mind that something was asked; gives back what says that it was answered. */
function asking(): () => void {
  const id = Symbol();
  const oldest = () => (waiting.value = asked.values().next().value);
  asked.set(id, Date.now());
  oldest();
  return () => (asked.delete(id), oldest());
}

let onSignedOut: () => void = () => {};
/** What happens when the core says that there is no session. */
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

export function sessionKey(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
export function keepSessionKey(key: string | null): void {
  if (key === null) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, key);
}
export const SESSION_KEY = KEY;

export type Params = Record<string, string | number | boolean | null | undefined>;

/** A path with its query; what is empty is left out. */
export function address(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== null && v !== "" && v !== false) query.set(k, String(v));
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

type Ask = { method?: string; body?: BodyInit | null; type?: string; signal?: AbortSignal | undefined; quiet?: boolean; headers?: Record<string, string> };

/** Sends a request and gives the answer if the core agreed. */
export async function request(path: string, ask: Ask = {}): Promise<Response> {
  const headers = new Headers(ask.headers);
  const key = sessionKey();
  if (key) headers.set("wharf-session", key);
  if (ask.type) headers.set("content-type", ask.type);
  let answer: Response;
  // What is sent takes as long as it is large; only what is read tells of a slow core.
  const answered = ask.body == null ? asking() : undefined;
  try {
    const init: RequestInit = { method: ask.method ?? "GET", headers, credentials: "same-origin", cache: "no-store", redirect: "error" };
    if (ask.body !== undefined) init.body = ask.body;
    if (ask.signal) init.signal = ask.signal;
    answer = await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    reachable.value = false;
    throw new ApiError(0, { code: "core.unreachable", message: "The core does not answer. It may be stopped or restarting.", retryable: true });
  } finally {
    answered?.();
  }
  lastAnswer.value = Date.now();
  reachable.value = true;
  if (answer.ok) return answer;
  const info = await errorOf(answer);
  if (answer.status === 401 && !ask.quiet) onSignedOut();
  throw new ApiError(answer.status, info);
}

async function errorOf(answer: Response): Promise<ErrorInfo> {
  try {
    const body = (await answer.json()) as { error?: ErrorInfo };
    if (body.error) return body.error;
  } catch {
    // No JSON: a proxy's page, or nothing.
  }
  return { code: `http.${answer.status}`, message: `The core answered with status ${answer.status}.`, retryable: answer.status >= 500 };
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  return (await (await request(address(path, params), { signal })).json()) as T;
}

/** More than this is not shown as one list: it is to be narrowed. */
export const ALL_MAX = 10_000;

/** All pages of a list; at most so many items. */
export async function all<T>(path: string, params: Params, signal: AbortSignal, max = ALL_MAX): Promise<T[]> {
  const out: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await get<{ items: T[]; next_cursor?: string | null }>(path, { ...params, limit: 200, cursor }, signal);
    out.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && out.length < max);
  return out;
}

/** The answer as text, for what must keep its numbers as they are written. */
export async function getText(path: string, params: Params = {}, signal?: AbortSignal): Promise<string> {
  return (await request(address(path, params), { signal })).text();
}

/** Sends JSON; text is taken as JSON that is already written. */
export async function send<T = void>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const answer = await request(path, { method, body: text ?? null, ...(text === undefined ? {} : { type: "application/json" }), signal });
  const out = await answer.text();
  return (out ? JSON.parse(out) : undefined) as T;
}

/** Whether a refusal only says that this core does not have the route. */
export function isMissingRoute(error: unknown): boolean {
  return error instanceof ApiError && (error.code === "request.route_unknown" || error.status === 405);
}

/** Path segments, encoded one by one. */
export function seg(text: string): string {
  return encodeURIComponent(text);
}
export function path(text: string): string {
  return text.split("/").map(encodeURIComponent).join("/");
}
