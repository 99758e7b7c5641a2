// Providers in one shape, whatever kind they are, and how each kind is steered.
import { get, isMissingRoute, path, seg, send } from "./client";
import type { Page, Provider } from "./types";

export async function providers(signal: AbortSignal): Promise<Provider[]> {
  try {
    return (await get<Page<Provider>>("/v1/providers", { limit: 200 }, signal)).items;
  } catch (error) {
    if (!isMissingRoute(error)) throw error;
  }
  const none = { items: [] };
  const [agents, mcp, operatives] = await Promise.all([
    get<Page<Record<string, unknown>>>("/v1/agents", { limit: 200 }, signal).catch(() => none),
    get<Page<Record<string, unknown>>>("/v1/mcp", { limit: 200 }, signal).catch(() => none),
    get<Page<Record<string, unknown>>>("/v1/operatives", { limit: 200 }, signal).catch(() => none),
  ]);
  return [
    ...agents.items.map((a) => ({ ...a, provider_id: a["agent_id"], kind: "agent" }) as unknown as Provider),
    ...mcp.items.map((m) => ({ ...m, provider_id: m["server_id"], name: m["server_id"], kind: "mcp_server" }) as unknown as Provider),
    ...operatives.items.map((o) => ({ ...o, provider_id: o["name"], kind: "operative", state: o["connected"] ? "connected" : "away" }) as unknown as Provider),
  ];
}

export async function provider(id: string, signal: AbortSignal): Promise<Provider> {
  try {
    return await get<Provider>(`/v1/providers/${seg(id)}`, {}, signal);
  } catch (error) {
    if (!isMissingRoute(error)) throw error;
  }
  const found = (await providers(signal)).find((p) => p.provider_id === id);
  if (found) return found;
  return { provider_id: id, kind: id === "wharf" ? "builtin" : "tool_server", state: "running", name: id, tools: [] };
}

/** Where a provider is steered; nothing for those that cannot be. */
export function baseOf(p: Provider): string | undefined {
  switch (p.kind) {
    case "agent":
      return `/v1/agents/${seg(p.provider_id)}`;
    case "mcp_server":
      return `/v1/mcp/${seg(p.provider_id)}`;
    case "tool_server":
      return `/v1/tools/${path(p.provider_id)}`;
    case "operative":
      return `/v1/operatives/${seg(p.provider_id)}`;
    default:
      return undefined;
  }
}

export type Act = "start" | "stop" | "restart" | "refresh" | "revoke" | "approve";

export async function steer(p: Provider, act: Act, body?: unknown): Promise<void> {
  const word = p.kind === "tool_server" ? ({ start: "enable", stop: "disable" } as Record<string, string>)[act] ?? act : act;
  return send("POST", `${baseOf(p)}/${word}`, body);
}

export const KIND_NAMES: Record<string, string> = { agent: "Agent", tool_server: "Tool server", mcp_server: "MCP server", operative: "Operative", operator: "Operator", builtin: "Part of the core" };
