// The inbox: what runs wait for, oldest first. Nothing here moves the focus by itself.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { itemsOf, useWindows } from "../api/resource";
import type { Ask, Page } from "../api/types";
import { keysOn } from "../app";
import { at, relative } from "../lib/format";
import { go, link, place, setQuery } from "../router";
import { Badge, Card, Command, Empty, Foreign, More, now, Status, Tabs, Word } from "../ui/parts";
import { useStill } from "../ui/still";
import { Fresh } from "../ui/table";
import { AskCard, AskTitle, decisionWord } from "./ask";
import { Loaded, Screen } from "./frame";

/** A window of asks: open ones oldest first, decided ones newest first. */
function window(state: string, kind: string, cursor: string | undefined, signal: AbortSignal): Promise<Page<Ask>> {
  const params = { kind: kind || undefined, limit: 200, cursor };
  return state === "open" ? get<Page<Ask>>("/v1/inbox", params, signal) : get<Page<Ask>>("/v1/asks", { ...params, state }, signal);
}

const KINDS: [string, string][] = [["", "All"], ["question", "Questions"], ["approval", "Approvals"]];

export default function Inbox() {
  const q = place.value.query;
  const state = q.get("state") ?? "open";
  const kind = q.get("kind") ?? "";
  const list = useWindows<Page<Ask>, Ask[]>(`inbox ${state} ${kind}`, (cursor, s) => window(state, kind, cursor, s), itemsOf, { kinds: ["ASK"] });
  // An ask that was decided elsewhere stays where it is until one looks away.
  const kept = useRef(new Map<string, Ask>());
  const mine = useRef(new Set<string>());
  // One comes from starting a run, which asks a moment later: that ask is wanted, not the oldest.
  const run = q.get("run");
  const [patient, setPatient] = useState(true);
  useEffect(() => {
    const timer = setTimeout(() => setPatient(false), 4000);
    return () => clearTimeout(timer);
  }, [run]);
  const wanted = q.get("ask") ?? (run && list.data.value?.items.find((a) => a.run_id === run)?.ask_id);
  const awaited = !!run && !wanted && patient;
  const items = useMemo(() => {
    const all = (list.data.value?.items ?? []).filter((a) => !mine.current.has(a.ask_id));
    for (const a of all) kept.current.set(a.ask_id, a);
    const gone = wanted ? kept.current.get(wanted) : undefined;
    return gone && !all.some((a) => a.ask_id === wanted) ? [gone, ...all] : all;
  }, [list.data.value, wanted]);
  const still = useStill(items, (a) => a.ask_id);
  const current = items.find((a) => a.ask_id === wanted) ?? (wanted || awaited ? undefined : items[0]);
  useKeys(items, current);
  // What is shown is pinned to the address: if somebody else decides it, no other ask slips under the pointer.
  useEffect(() => {
    if ((!wanted || run) && current) go(link("/inbox", { ...Object.fromEntries(place.peek().query), run: undefined, ask: current.ask_id }), true);
  }, [wanted, run, current?.ask_id]);
  // The list shows which one it is, wherever the page is scrolled.
  useEffect(() => {
    const item = document.querySelector<HTMLElement>(".askitem[aria-current]");
    const box = item?.closest<HTMLElement>(".asklist");
    if (!item || !box) return;
    const [here, around] = [item.getBoundingClientRect(), box.getBoundingClientRect()];
    if (here.top < around.top) box.scrollTop -= around.top - here.top;
    else if (here.bottom > around.bottom) box.scrollTop += here.bottom - around.bottom;
  }, [current?.ask_id]);
  const done = (id: string) => {
    const i = items.findIndex((a) => a.ask_id === id);
    const next = items[i + 1] ?? items[i - 1];
    if (state === "open") mine.current.add(id);
    go(link("/inbox", { kind, state: state === "open" ? undefined : state, ask: next?.ask_id }), true);
    list.reload();
  };
  const show = (a: Ask) => link("/inbox", { ask: a.ask_id, state: state === "open" ? undefined : state, kind });
  return (
    <Screen title="Inbox" of={list} lead={<>Every <Word name="Ask">ask</Word> that a run waits for: questions to answer, and acts to allow or deny. Oldest first.</>}>
      <Tabs label="Which asks" current={state} hrefOf={(s) => link("/inbox", { state: s === "open" ? undefined : s, kind })} tabs={[{ id: "open", name: "Open", count: state === "open" && !kind && !list.data.value?.more ? items.length : undefined }, { id: "decided", name: "Decided" }]} />
      <div class="choices" role="group" aria-label="Kind of ask">
        {KINDS.map(([k, name]) => <button type="button" class="btn small" aria-pressed={kind === k} onClick={() => setQuery({ kind: k || undefined, ask: undefined }, false)}>{name}</button>)}
      </div>
      <Loaded of={list}>
        {() =>
          items.length === 0 && !wanted && !awaited ? (
            <Card>
              {kind ? (
                <Empty icon="search" title={`No ${kind} here`}>
                  <p><a href={link("/inbox", { state: state === "open" ? undefined : state })}>Show all asks</a></p>
                </Empty>
              ) : state === "open" ? (
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
                {still.fresh > 0 && <Fresh count={still.fresh} show={still.show} />}
                <ul {...still.props}>
                  {still.rows.map((a) => (
                    <li key={a.ask_id} class={still.gone.has(a.ask_id) ? "gone" : undefined}>
                      <a class="askitem" href={show(a)} aria-current={a.ask_id === current?.ask_id ? "true" : undefined}>
                        <span class="row">
                          <Badge tone={a.kind === "approval" ? "warn" : "run"}>{a.kind}</Badge>
                          <span class="grow" />
                          <span class="muted nowrap">{relative(at(a.created_at) ?? now.value, now.value)}</span>
                        </span>
                        <span class="t"><AskTitle ask={a} max={200} /></span>
                        <span class="m">
                          <span class="clip"><Foreign text={a.tool} max={60} /></span>
                          <span class="clip"><Foreign text={a.world} max={40} /></span>
                        </span>
                        {a.decision && <Status state={decisionWord(a.decision)} />}
                      </a>
                    </li>
                  ))}
                </ul>
                <More of={list} what="asks" />
              </nav>
              {awaited && <Card><p class="muted" role="status">The run has begun. It asks in a moment.</p></Card>}
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
      } else if (e.key === "a" || e.key === "d") {
        // The letter is the command's, not the beginning of what is typed into the dialog that opens.
        e.preventDefault();
        document.querySelector<HTMLElement>(e.key === "a" ? "[data-act=allow]" : "[data-act=deny]")?.click();
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}
