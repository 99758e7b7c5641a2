// Ctrl K: one field that finds runs, tools, providers, worlds, files, screens and commands.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { mayEverywhere, may, signOut } from "../api/session";
import type { Artifact, Found, Page, World } from "../api/types";
import { flowLink, go, link, providerLink, runLink, scheduleLink, toolLink, triggerLink, worldLink } from "../router";
import { choose, theme } from "../theme";
import { Icon, type IconName } from "./icons";
import { Foreign } from "./parts";

export const paletteOpen = signal(false);

type Option = { group: string; name: string; icon: IconName; kind?: string; href?: string; act?: () => unknown };

const SCREENS: [string, string, IconName][] = [
  ["Home", "/", "home"], ["Inbox", "/inbox", "inbox"], ["Runs", "/runs", "runs"], ["Failed runs", "/runs?status=failed", "runs"], ["Running now", "/runs?status=queued,waiting,running", "runs"],
  ["Tools", "/tools", "tool"], ["Flows", "/flows", "flow"], ["Providers", "/providers", "provider"], ["Worlds", "/worlds", "world"], ["Schedules", "/schedules", "clock"], ["Triggers", "/triggers", "hook"], ["Operators", "/operators", "seat"], ["Money", "/money", "money"], ["System", "/system", "system"],
];

function commands(): Option[] {
  const out: Option[] = SCREENS.map(([name, path, icon]) => ({ group: "Screens", name, icon, href: path }));
  if (mayEverywhere("admin")) out.push({ group: "Screens", name: "Audit", icon: "audit", href: "/audit" });
  if (may("admin")) out.push({ group: "Screens", name: "Tokens and secrets", icon: "key", href: "/tokens" }, { group: "Commands", name: "Make a token", icon: "plus", href: "/tokens?new=token" });
  if (may("admin")) out.push({ group: "Screens", name: "Receivers", icon: "bell", href: "/receivers" });
  if (mayEverywhere("admin")) out.push({ group: "Commands", name: "Make a world", icon: "plus", href: "/worlds?new=1" });
  if (may("run")) out.push({ group: "Commands", name: "Make a schedule", icon: "plus", href: "/schedules?new=1" }, { group: "Commands", name: "Make a trigger", icon: "plus", href: "/triggers?new=1" });
  if (may("admin")) out.push({ group: "Commands", name: "Add a receiver", icon: "plus", href: "/receivers?new=1" });
  if (mayEverywhere("flow:write")) out.push({ group: "Commands", name: "Add a flow", icon: "plus", href: "/flows?new=1" });
  out.push({ group: "Commands", name: theme.value === "dark" ? "Use light colours" : "Use dark colours", icon: "sun", act: () => choose(theme.peek() === "dark" ? "light" : "dark") });
  out.push({ group: "Commands", name: "Sign out", icon: "out", act: () => signOut() });
  return out;
}

async function find(q: string, signal: AbortSignal): Promise<Option[]> {
  if (q.startsWith("/")) return files(q, signal);
  return shown(await get<Found>("/v1/search", { q }, signal));
}

function shown(found: Found): Option[] {
  return [
    ...found.tools.map((t): Option => ({ group: "Tools", name: t.tool_id, icon: "tool", kind: t.state, href: toolLink(t.tool_id) })),
    ...found.runs.map((r): Option => ({ group: "Runs", name: r.run_id, icon: "runs", kind: `${r.tool} · ${r.status}`, href: runLink(r.world, r.run_id) })),
    ...found.providers.map((p): Option => ({ group: "Providers", name: p.provider_id, icon: "provider", kind: p.kind.replaceAll("_", " "), href: providerLink(p.provider_id) })),
    ...(found.flows ?? []).map((x): Option => ({ group: "Flows", name: x.name, icon: "flow", kind: x.tool_id, href: flowLink(x.name) })),
    ...(found.schedules ?? []).map((x): Option => ({ group: "Schedules", name: x.name, icon: "clock", kind: x.tool_id, href: scheduleLink(x.name) })),
    ...(found.triggers ?? []).map((x): Option => ({ group: "Triggers", name: x.name, icon: "hook", kind: x.tool_id, href: triggerLink(x.name) })),
    ...found.worlds.map((w): Option => ({ group: "Worlds", name: w.world, icon: "world", href: worldLink(w.world) })),
  ];
}

/** Worlds whose files are searched. */
const WORLDS_MAX = 50;

async function files(prefix: string, signal: AbortSignal): Promise<Option[]> {
  const worlds = await get<Page<World>>("/v1/worlds", { limit: WORLDS_MAX }, signal);
  const all = await Promise.all(worlds.items.map((w) => get<Page<Artifact>>(`/v1/worlds/${encodeURIComponent(w.world)}/artifacts`, { prefix, limit: 5 }, signal)));
  return all.flatMap((p) => p.items).map((a): Option => ({ group: "Files", name: a.path, icon: "file", kind: a.world, href: worldLink(a.world, { file: a.path }) }));
}

export function Palette() {
  return paletteOpen.value ? <Open /> : null;
}

function Open() {
  const ref = useRef<HTMLDialogElement>(null);
  const [q, setQ] = useState("");
  const [found, setFound] = useState<Option[]>([]);
  const [at, setAt] = useState(0);
  const close = () => (paletteOpen.value = false);
  // Before the next key arrives: nothing of what is typed goes astray.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => before?.focus?.();
  }, []);
  useEffect(() => {
    const end = new AbortController();
    if (!q.trim()) {
      setFound([]);
      return;
    }
    const timer = setTimeout(() => void find(q.trim(), end.signal).then((f) => !end.signal.aborted && setFound(f), () => {}), 120);
    return () => (clearTimeout(timer), end.abort());
  }, [q]);
  const options = useMemo(() => {
    const wanted = q.trim().toLowerCase();
    return [...commands().filter((c) => c.name.toLowerCase().includes(wanted)), ...found];
  }, [q, found]);
  useEffect(() => setAt(0), [q]);
  const pick = (o: Option | undefined) => {
    if (!o) return;
    close();
    if (o.href) go(o.href.includes("?") ? o.href : link(o.href));
    else void o.act?.();
  };
  const keys = (e: KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step) {
      e.preventDefault();
      const n = (at + step + options.length) % Math.max(1, options.length);
      setAt(n);
      document.getElementById(`opt-${n}`)?.scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter") {
      e.preventDefault();
      pick(options[at]);
    }
  };
  let last = "";
  return (
    <dialog ref={ref} class="dialog palette" aria-label="Search" onCancel={(e) => (e.preventDefault(), close())} onClick={(e) => e.target === ref.current && close()}>
      <input class="input" type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={options.length ? `opt-${at}` : undefined} aria-label="Search runs, tools, flows, schedules, providers, worlds, screens" placeholder="Search, or type / for files" autoFocus autoComplete="off" spellcheck={false} value={q} onInput={(e) => setQ(e.currentTarget.value)} onKeyDown={keys} />
      <div class="list" id="palette-list" role="listbox" aria-label="What was found">
        {options.map((o, i) => {
          const head = o.group !== last;
          last = o.group;
          return (
            <>
              {head && (
                <div class="grp" role="presentation">
                  {o.group}
                </div>
              )}
              <div class="opt" role="option" id={`opt-${i}`} aria-selected={i === at} onPointerMove={() => setAt(i)} onClick={() => pick(o)}>
                <Icon name={o.icon} />
                <span class="clip">
                  <Foreign text={o.name} max={200} />
                </span>
                {o.kind && <span class="k">{o.kind}</span>}
              </div>
            </>
          );
        })}
        {options.length === 0 && <p class="grp">Nothing matches. Runs are found by the beginning of their id, files by a path that begins with /.</p>}
      </div>
    </dialog>
  );
}
