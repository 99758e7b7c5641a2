// The address is the state: which screen, which filters, which tab. Everything that can be shared stands in it.
import { signal } from "@preact/signals";

export type Place = { path: string; query: URLSearchParams };

function read(): Place {
  return { path: decodePath(location.pathname), query: new URLSearchParams(location.search) };
}
function decodePath(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

export const place = signal<Place>(read());

/** An address with its query; what is empty is left out, the time zone is carried along. */
export function link(path: string, query: Record<string, string | undefined> = {}): string {
  const out = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v !== undefined && v !== "") out.set(k, v);
  const zone = place.peek().query.get("tz");
  if (zone && !out.has("tz")) out.set("tz", zone);
  const text = out.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text ? `${path}?${text}` : path;
}

export function go(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  const before = location.pathname;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.value = read();
  // Another screen begins at its top; another tab or filter of the same screen leaves one where one is.
  if (!replace && location.pathname !== before) {
    scrollTo(0, 0);
    queueMicrotask(() => document.getElementById("main")?.focus({ preventScroll: true }));
  }
}

/** Changes parts of the query and keeps the rest. */
export function setQuery(change: Record<string, string | undefined>, replace = true): void {
  const query: Record<string, string | undefined> = Object.fromEntries(place.peek().query);
  Object.assign(query, change);
  if ("tz" in change && !change["tz"]) place.peek().query.delete("tz");
  go(link(location.pathname, query), replace);
}

export function startRouter(): void {
  addEventListener("popstate", () => (place.value = read()));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const a = (event.target as Element | null)?.closest?.("a");
    if (!a || a.target || a.hasAttribute("download") || a.origin !== location.origin) return;
    if (/^\/(v1|graphql|mcp|docs|openapi\.json|metrics)(\/|$)/.test(a.pathname)) return;
    event.preventDefault();
    go(a.pathname + a.search);
  });
}

/** The address of a run's screen. */
export function runLink(world: string, run: string, query: Record<string, string | undefined> = {}): string {
  return link(`/runs/${encodeURIComponent(world)}/${encodeURIComponent(run)}`, query);
}
export function toolLink(tool: string, query: Record<string, string | undefined> = {}): string {
  return link(`/tools/${tool.split("/").map(encodeURIComponent).join("/")}`, query);
}
export function flowLink(name: string, query: Record<string, string | undefined> = {}): string {
  return link(`/flows/${encodeURIComponent(name)}`, query);
}
export function providerLink(id: string, query: Record<string, string | undefined> = {}): string {
  return link(`/providers/${encodeURIComponent(id)}`, query);
}
export function scheduleLink(name: string, query: Record<string, string | undefined> = {}): string {
  return link(`/schedules/${encodeURIComponent(name)}`, query);
}
export function triggerLink(name: string): string {
  return link(`/triggers/${encodeURIComponent(name)}`);
}
export function receiverLink(name: string): string {
  return link(`/receivers/${encodeURIComponent(name)}`);
}
export function worldLink(world: string, query: Record<string, string | undefined> = {}): string {
  return link(`/worlds/${encodeURIComponent(world)}`, query);
}
