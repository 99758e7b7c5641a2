// Providers in one shape, whatever kind they are, and how each kind is steered.
import { all, get, path, seg, send } from "./client";
import type { Provider } from "./types";

/** All of them, window by window. */
export function providers(signal: AbortSignal): Promise<Provider[]> {
  return all<Provider>("/v1/providers", {}, signal);
}

export function provider(id: string, signal: AbortSignal): Promise<Provider> {
  return get<Provider>(`/v1/providers/${seg(id)}`, {}, signal);
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

/** Lets it finish what is under way; then it stops. */
export async function drain(p: Provider): Promise<void> {
  return send("POST", `/v1/providers/${seg(p.provider_id)}/drain`);
}

export const KIND_NAMES: Record<string, string> = { agent: "Agent", tool_server: "Tool server", mcp_server: "MCP server", operative: "Operative", operator: "Operator", builtin: "Part of the core" };
