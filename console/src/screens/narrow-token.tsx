// A narrower token from one at hand, made in the page: its text is sent nowhere.
import { useState } from "preact/hooks";
import { heldBy, narrow } from "../lib/narrow";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/form";
import { Button, Command, Foreign, Note, Time } from "../ui/parts";
import { endOf, RightsFields, useRights, wordsOf } from "./rights";

export function NarrowToken({ onClose }: { onClose: () => void }) {
  const [token, setToken] = useState("");
  const [name, setName] = useState("");
  const rights = useRights([]);
  const [made, setMade] = useState("");
  const [error, setError] = useState("");
  const held = heldBy(token.trim());
  const fault = token.trim() && !held ? "This is not a token that can be narrowed; such a one begins with whf1." : undefined;
  const submit = async () => {
    if (!held) return;
    const { verbs, worlds, tools, end } = rights;
    const span = endOf(end);
    try {
      setMade(
        await narrow(token.trim(), name.trim(), {
          verbs: [...verbs],
          ...(wordsOf(worlds).length ? { worlds: wordsOf(worlds) } : {}),
          ...(wordsOf(tools).length ? { tools: wordsOf(tools) } : {}),
          ...(span ? { until: Date.now() + span } : {}),
        }),
      );
      setToken("");
    } catch (e) {
      setError((e as Error).message);
    }
  };
  if (made)
    return (
      <Dialog title="The narrower token" onClose={onClose} foot={<Button kind="primary" onClick={onClose}>I have kept it</Button>}>
        <Note>It was made in this page and is known nowhere else. It ends with the token it was made from, and is no person's.</Note>
        <Command text={made} />
      </Dialog>
    );
  return (
    <Dialog title="A narrower token" onClose={onClose} onSubmit={submit} foot={<><Button onClick={onClose}>Back</Button><Button type="submit" kind="primary" disabled={!held || !name.trim() || rights.verbs.size === 0}>Narrow it</Button></>}>
      <TextField label="The token to begin with" type="password" mono value={token} onInput={setToken} fault={fault} hint="One that you have at hand. It stays in this page. The owner's own token cannot be narrowed here: make a new one instead." autoFocus />
      {held && (
        <p class="muted">
          <code class="break"><Foreign text={held.id} max={120} /></code> may {held.verbs.join(", ") || "nothing"}{held.worlds && <> in <Foreign text={held.worlds.join(", ")} max={200} /></>}{held.until !== undefined && <>, until <Time at={new Date(held.until).toISOString()} plain /></>}.
        </p>
      )}
      <TextField label="Name" value={name} onInput={setName} hint="The audit tells it by this name, behind that of the first." />
      {held && <RightsFields of={rights} verbs={held.verbs} />}
      {error && <Note tone="bad">{error}</Note>}
    </Dialog>
  );
}
