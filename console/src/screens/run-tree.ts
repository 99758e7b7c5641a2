// What a run started, directly and further down: some of it at once, the rest where one opens it.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, isMissingRoute, seg } from "../api/client";
import { useResource } from "../api/resource";
import type { Page, Run, Tree } from "../api/types";

const WINDOW = 200;
/** Up to so many descendants are open by themselves; of more each is opened by hand. */
const OPEN_MAX = 40;
const ROOT_DEPTH = 3;

export const keyOf = (r: { world: string; run_id: string }): string => `${r.world}/${r.run_id}`;

type Branches = { kids: Map<string, Run[]>; more: Set<string> };

async function branch(into: Branches, parent: string, pages: number, depth: number, signal: AbortSignal): Promise<void> {
  const at = parent.indexOf("/");
  const known = new Map([...into.kids.values()].flat().map((r) => [keyOf(r), r]));
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const tree: Tree = await get<Tree>(`/v1/runs/${seg(parent.slice(at + 1))}/tree`, { world: parent.slice(0, at), depth, limit: WINDOW, cursor }, signal);
    for (const { run, more } of tree.items) {
      const id = keyOf(run);
      if (more) into.more.add(id);
      if (known.has(id)) continue;
      known.set(id, run);
      const above = run.parent ?? parent;
      into.kids.set(above, [...(into.kids.get(above) ?? []), run]);
    }
    cursor = tree.next_cursor ?? undefined;
    if (!cursor) break;
  }
  if (cursor) into.more.add(parent);
  else into.more.delete(parent);
}

/** The runs below a run, as far as they were opened, kept up to date while it is open itself. */
export function useRunTree(run: Run, live: boolean) {
  const root = keyOf(run);
  /** How many windows of a run's children are wanted. */
  const wanted = useRef(new Map<string, number>());
  const [turned, setTurned] = useState(new Map<string, boolean>());
  const few = useRef<boolean | undefined>(undefined);
  useEffect(() => {
    wanted.current.clear();
    few.current = undefined;
    setTurned(new Map());
  }, [root]);
  const data = useResource<Branches>(`tree ${root}`, async (s) => {
    const all: Branches = { kids: new Map(), more: new Set() };
    try {
      await branch(all, root, wanted.current.get(root) ?? 1, ROOT_DEPTH, s);
    } catch (error) {
      if (!isMissingRoute(error)) throw error;
      all.kids.set(root, (await get<Page<Run>>("/v1/runs", { parent: root, limit: WINDOW }, s)).items);
    }
    for (const [id, pages] of wanted.current) if (id !== root) await branch(all, id, pages, 1, s);
    return all;
  }, { kinds: ["RUN"], match: (c) => live || c.id === run.run_id });
  const { kids, more } = data.data.value ?? { kids: new Map<string, Run[]>(), more: new Set<string>() };
  if (data.data.value) few.current ??= [...kids.values()].reduce((n, all) => n + all.length, 0) <= OPEN_MAX;
  const isOpen = (id: string) => turned.get(id) ?? (few.current === true && kids.has(id));
  return {
    of: (id: string): Run[] => [...(kids.get(id) ?? [])].sort((a, b) => (a.created_at < b.created_at ? -1 : 1)),
    hasMore: (id: string) => more.has(id),
    isOpen,
    toggle: (id: string) => {
      const opens = !isOpen(id);
      setTurned(new Map(turned).set(id, opens));
      if (opens && !kids.has(id)) (wanted.current.set(id, 1), data.reload());
    },
    // A run below the root shows only some of its children at first; its first window has those, and others.
    showMore: (id: string) => (wanted.current.set(id, (wanted.current.get(id) ?? (id === root ? 1 : 0)) + 1), data.reload()),
  };
}
