// Which address shows which screen. Screens are loaded when they are first opened.
import type { ComponentType } from "preact";

type Screen = ComponentType<{ args: string[] }>;
type Route = { pattern: RegExp; title: string; load: () => Promise<{ default: Screen }> };

export const routes: Route[] = [
  { pattern: /^\/$/, title: "Home", load: () => import("./home") },
  { pattern: /^\/runs$/, title: "Runs", load: () => import("./runs") },
  { pattern: /^\/runs\/([^/]+)\/([^/]+)$/, title: "Run", load: () => import("./run") },
  { pattern: /^\/inbox$/, title: "Inbox", load: () => import("./inbox") },
  { pattern: /^\/tools$/, title: "Tools", load: () => import("./tools") },
  { pattern: /^\/tools\/(.+)$/, title: "Tool", load: () => import("./tool") },
  { pattern: /^\/flows$/, title: "Flows", load: () => import("./flows") },
  { pattern: /^\/flows\/([^/]+)$/, title: "Flow", load: () => import("./flow") },
  { pattern: /^\/providers$/, title: "Providers", load: () => import("./providers") },
  { pattern: /^\/providers\/(.+)$/, title: "Provider", load: () => import("./provider") },
  { pattern: /^\/worlds$/, title: "Worlds", load: () => import("./worlds") },
  { pattern: /^\/worlds\/([^/]+)$/, title: "World", load: () => import("./world") },
  { pattern: /^\/schedules$/, title: "Schedules", load: () => import("./schedules") },
  { pattern: /^\/schedules\/([^/]+)$/, title: "Schedule", load: () => import("./schedule") },
  { pattern: /^\/triggers$/, title: "Triggers", load: () => import("./triggers") },
  { pattern: /^\/triggers\/([^/]+)$/, title: "Trigger", load: () => import("./trigger") },
  { pattern: /^\/receivers$/, title: "Receivers", load: () => import("./receivers") },
  { pattern: /^\/receivers\/([^/]+)$/, title: "Receiver", load: () => import("./receiver") },
  { pattern: /^\/money$/, title: "Money", load: () => import("./money") },
  { pattern: /^\/operators$/, title: "Operators", load: () => import("./operators") },
  { pattern: /^\/audit$/, title: "Audit", load: () => import("./audit") },
  { pattern: /^\/tokens$/, title: "Tokens and secrets", load: () => import("./tokens") },
  { pattern: /^\/system$/, title: "System", load: () => import("./system") },
  { pattern: /^\/ui$/, title: "Design", load: () => import("../ui/gallery") },
];

export function match(path: string): { route: Route; args: string[] } | undefined {
  for (const route of routes) {
    const m = route.pattern.exec(path);
    if (m) return { route, args: m.slice(1).map(decode) };
  }
  return undefined;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
