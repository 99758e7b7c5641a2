// Who is signed in, and what they may do. A session has two halves; this page holds one of them.
import { signal } from "@preact/signals";
import { ApiError, isMissingRoute, keepSessionKey, request, sessionKey, SESSION_KEY, whenSignedOut } from "./client";
import type { Me } from "./types";

type Verb = Me["verbs"][number];
export type SessionState = { at: "checking" } | { at: "in"; me: Me } | { at: "out"; why?: string; code?: string };
export const session = signal<SessionState>({ at: "checking" });
/** The core has another version now than the one that this page came from. */
export const coreChanged = signal<{ from: string; to: string } | undefined>(undefined);

/** The one-time code of a link, taken out of the address before anything else happens. */
export function takeLink(): string | undefined {
  const hash = location.hash;
  if (!hash.startsWith("#link=")) return undefined;
  history.replaceState(history.state, "", location.pathname + location.search);
  return decodeURIComponent(hash.slice("#link=".length));
}

export async function start(link: string | undefined): Promise<void> {
  whenSignedOut(() => forget("Your session is over. Sign in again to go on."));
  addEventListener("storage", (event) => {
    if (event.key !== SESSION_KEY && event.key !== null) return;
    if (sessionKey() === null) forget("You signed out in another tab.");
    else void check();
  });
  // A link pasted into the address of an open page changes only what stands after the #.
  addEventListener("hashchange", () => {
    const pasted = takeLink();
    if (pasted) void exchange({ link: pasted });
  });
  if (link) return exchange({ link });
  if (!sessionKey() && !import.meta.env.DEV) {
    session.value = { at: "out" };
    return;
  }
  return check();
}

/** Exchanges a link or a pasted token for a session. */
export async function exchange(what: { link: string } | { token: string }): Promise<void> {
  try {
    const answer = await request("/v1/console/session", { method: "POST", body: JSON.stringify(what), type: "application/json", quiet: true });
    const { key, ...me } = (await answer.json()) as Me;
    if (key) keepSessionKey(key);
    session.value = { at: "in", me };
  } catch (error) {
    session.value = { at: "out", why: refusal(error, "link" in what), ...(error instanceof ApiError ? { code: error.code } : {}) };
  }
}

function refusal(error: unknown, link: boolean): string {
  if (!(error instanceof ApiError)) return "The sign-in did not work.";
  if (error.status === 401 && link) return "This link was used before or is older than a minute. Type wharf console for a new one.";
  if (error.status === 401) return "The core does not know this token, or it is revoked or expired.";
  if (error.status === 429) {
    const ms = Number(error.info.details?.["retry_after_ms"] ?? 60_000);
    return `Too many attempts failed. Try again in ${Math.ceil(ms / 1000)} seconds.`;
  }
  return error.info.message;
}

async function check(): Promise<void> {
  try {
    const answer = await request("/v1/console/session", { quiet: true });
    session.value = { at: "in", me: (await answer.json()) as Me };
  } catch (error) {
    if (import.meta.env.DEV && isMissingRoute(error)) {
      session.value = { at: "in", me: { grant: "owner", label: "development", person: true, home_id: "", version: "", verbs: ["run", "read", "answer", "approve", "operate", "admin"] } };
    } else if (error instanceof ApiError && error.status === 401) {
      forget();
    } else {
      // The core may be away for a moment: try again, and show that.
      session.value = { at: "checking" };
      setTimeout(() => void check(), 1500);
    }
  }
}

/** Reads the session again: after a reconnect it may be another core, another version, or over. */
export async function recheck(): Promise<void> {
  if (session.value.at !== "in") return;
  try {
    const answer = await request("/v1/console/session", { quiet: true });
    const me = (await answer.json()) as Me;
    const before = session.value.me;
    // What is typed here may be lost by loading the page again: the person decides when.
    if (before.version && me.version && before.version !== me.version) coreChanged.value = { from: before.version, to: me.version };
    else coreChanged.value = undefined;
    session.value = { at: "in", me: { ...me, version: before.version } };
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) forget("Your session is over. Sign in again to go on.");
  }
}

function forget(why?: string): void {
  if (sessionKey() !== null) keepSessionKey(null);
  session.value = why ? { at: "out", why } : { at: "out" };
}

/** Ends the session here, in all tabs, and in the core. */
export async function signOut(): Promise<void> {
  try {
    await request("/v1/console/session", { method: "DELETE", quiet: true });
  } catch {
    // Gone already, or the core is away: this half is forgotten in any case.
  }
  forget();
}

/** Whether the one who is signed in may do something; in a world, where one is named. */
export function may(verb: Verb, world?: string): boolean {
  if (session.value.at !== "in") return false;
  const me = session.value.me;
  if (!me.verbs.includes(verb)) return false;
  return world === undefined || !me.worlds || me.worlds.includes(world);
}

/** Whether they may do something that concerns all worlds. */
export function mayEverywhere(verb: Verb): boolean {
  return may(verb) && session.value.at === "in" && !session.value.me.worlds;
}
