// The inbox: what runs wait for, oldest first. Nothing here moves the focus by itself.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { get } from "../api/client";
import { useResource } from "../api/resource";
import type { Ask, Page } from "../api/types";
import { keysOn } from "../app";
import { at, relative } from "../lib/format";
import { go, link, place } from "../router";
import { Badge, Card, Command, Empty, Foreign, now, Status, Tabs, Word } from "../ui/parts";
import { AskCard, decisionWord } from "./ask";
import { Loaded, Screen } from "./frame";

async function load(state: string, kind: string, signal: AbortSignal): Promise<Ask[]> {
  const params = { kind: kind || undefined, limit: 200 };
  return (await (state === "open" ? get<Page<Ask>>("/v1/inbox", params, signal) : get<Page<Ask>>("/v1/asks", { ...params, state }, signal))).items;
}

export default function Inbox() {
  const q = place.value.query;
  const state = q.get("state") ?? "open";
  const kind = q.get("kind") ?? "";
  const list = useResource<Ask[]>(`inbox ${state} ${kind}`, (s) => load(state, kind, s), { kinds: ["ASK"] });
  // An ask that was decided elsewhere stays where it is until one looks away.
  const kept = useRef(new Map<string, Ask>());
  const mine = useRef(new Set<string>());
  const wanted = q.get("ask");
  const items = useMemo(() => {
    const all = (list.data.value ?? []).filter((a) => !mine.current.has(a.ask_id));
    for (const a of all) kept.current.set(a.ask_id, a);
    const gone = wanted ? kept.current.get(wanted) : undefined;
    return gone && !all.some((a) => a.ask_id === wanted) ? [gone, ...all] : all;
  }, [list.data.value, wanted]);
  const current = items.find((a) => a.ask_id === wanted) ?? (wanted ? undefined : items[0]);
  useKeys(items, current);
  // What is shown is pinned to the address: if somebody else decides it, no other ask slips under the pointer.
  useEffect(() => {
    if (!wanted && current) go(link("/inbox", { ...Object.fromEntries(place.peek().query), ask: current.ask_id }), true);
  }, [wanted, current?.ask_id]);
  const done = (id: string) => {
    const i = items.findIndex((a) => a.ask_id === id);
    const next = items[i + 1] ?? items[i - 1];
    if (state === "open") mine.current.add(id);
    go(link("/inbox", { kind, ask: next?.ask_id }), true);
    list.reload();
  };
  const show = (a: Ask) => link("/inbox", { ask: a.ask_id, state: state === "open" ? undefined : state, kind });
  return (
    <Screen title="Inbox" of={list} lead={<>Every <Word name="Ask">ask</Word> that a run waits for: questions to answer, and acts to allow or deny. Oldest first.</>}>
      <Tabs label="Which asks" current={state} hrefOf={(s) => link("/inbox", { state: s === "open" ? undefined : s })} tabs={[{ id: "open", name: "Open", count: state === "open" ? items.length : undefined }, { id: "decided", name: "Decided" }]} />
      <Loaded of={list}>
        {() =>
          items.length === 0 && !wanted ? (
            <Card>
              {state === "open" ? (
                <Empty icon="inbox" title="Nothing waits for you">
                  <p>Questions and approvals of runs appear here the moment they are asked. To see one, type</p>
                  <Command text='wharf run wharf/ask question="Which color?" --detach' />
                </Empty>
              ) : (
                <Empty icon="inbox" title="Nothing has been decided yet">
                  <p>Answers and decisions are kept here with who gave them and when.</p>
                </Empty>
              )}
            </Card>
          ) : (
            <div class="inbox">
              <nav class="card asklist" aria-label="Asks">
                <ul>
                  {items.map((a) => (
                    <li key={a.ask_id}>
                      <a class="askitem" href={show(a)} aria-current={a.ask_id === current?.ask_id ? "true" : undefined}>
                        <span class="row">
                          <Badge tone={a.kind === "approval" ? "warn" : "run"}>{a.kind}</Badge>
                          <span class="grow" />
                          <span class="muted nowrap">{relative(at(a.created_at) ?? now.value, now.value)}</span>
                        </span>
                        <span class="t"><Foreign text={a.title} max={200} /></span>
                        <span class="m">
                          <span class="clip"><Foreign text={a.tool} max={60} /></span>
                          <span class="clip"><Foreign text={a.world} max={40} /></span>
                        </span>
                        {a.decision && <Status state={decisionWord(a.decision)} />}
                      </a>
                    </li>
                  ))}
                </ul>
              </nav>
              {(current || wanted) && <AskCard key={current?.ask_id ?? wanted} id={current?.ask_id ?? wanted ?? ""} onDone={() => done(current?.ask_id ?? wanted ?? "")} />}
            </div>
          )
        }
      </Loaded>
    </Screen>
  );
}

/** j and k go up and down; keys are dead in fields, and holding one down does nothing more. */
function useKeys(items: Ask[], current: Ask | undefined): void {
  const state = useRef({ items, current });
  state.current = { items, current };
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (!keysOn.value || e.repeat || e.ctrlKey || e.metaKey || e.altKey) return;
      const target = e.target as HTMLElement;
      if (target.closest("input,textarea,select,dialog,[contenteditable]")) return;
      const { items: all, current: here } = state.current;
      if (e.key === "j" || e.key === "k") {
        const i = all.findIndex((a) => a.ask_id === here?.ask_id);
        const next = all[Math.min(all.length - 1, Math.max(0, i + (e.key === "j" ? 1 : -1)))];
        if (next) go(link("/inbox", { ...Object.fromEntries(place.peek().query), ask: next.ask_id }), true);
      } else if (e.key === "a") document.querySelector<HTMLElement>("[data-act=allow]")?.click();
      else if (e.key === "d") document.querySelector<HTMLElement>("[data-act=deny]")?.click();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}
