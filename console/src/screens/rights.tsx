// What a token may do, as fields: for one that is made and for one that is narrowed.
import { useState } from "preact/hooks";
import type { Token } from "../api/types";
import { Check, SelectField, TextField } from "../ui/form";

const VERBS: [Token["verbs"][number], string][] = [["read", "look at runs, tools, worlds, files, the inbox"], ["run", "start runs, cancel its own, put files"], ["answer", "answer questions"], ["approve", "decide approvals"], ["serve", "offer tools by connecting"], ["operate", "start and stop providers, cancel runs of others"], ["flow:write", "add and remove flows, run flows that come with a request"], ["metrics", "read metrics, and nothing else"], ["admin", "make worlds and tokens, remove runs"]];
const ENDS: [string, string, number | undefined][] = [["1h", "One hour", 3_600_000], ["8h", "Eight hours", 28_800_000], ["7d", "A week", 604_800_000], ["90d", "90 days", 7_776_000_000], ["none", "No end", undefined]];

export type Rights = ReturnType<typeof useRights>;

/** The state of such fields. */
export function useRights(first: string[]) {
  const [verbs, setVerbs] = useState(new Set<string>(first));
  const [worlds, setWorlds] = useState("");
  const [tools, setTools] = useState("");
  const [end, setEnd] = useState("8h");
  return { verbs, setVerbs, worlds, setWorlds, tools, setTools, end, setEnd };
}

/** Names with spaces or commas between them. */
export const wordsOf = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** How long it is good for, in milliseconds; nothing if it has no end. */
export const endOf = (end: string) => ENDS.find(([k]) => k === end)?.[2];

/** `verbs` are those that can be given at all. */
export function RightsFields({ of, verbs }: { of: Rights; verbs: readonly string[] | undefined }) {
  const turn = (verb: string, on: boolean) => {
    const next = new Set(of.verbs);
    if (on) next.add(verb);
    else next.delete(verb);
    of.setVerbs(next);
  };
  return (
    <>
      <fieldset class="field"><legend>What it may do</legend>{VERBS.filter(([v]) => verbs?.includes(v) ?? true).map(([v, text]) => <Check label={<code>{v}</code>} hint={text} checked={of.verbs.has(v)} onChange={(on) => turn(v, on)} />)}</fieldset>
      <TextField label="Worlds" optional value={of.worlds} onInput={of.setWorlds} hint="With spaces between them. Empty: all of those it would have." />
      <TextField label="Tools" optional value={of.tools} onInput={of.setTools} hint="Such as llm/* mail/send. Empty: all." />
      <SelectField label="Good for" value={of.end} onChange={of.setEnd} options={ENDS.map(([value, name]) => ({ value, name }))} />
    </>
  );
}
