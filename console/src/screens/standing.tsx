// What stands until somebody removes it: schedules, triggers, receivers. They are paused, resumed and removed alike.
import type { ComponentChildren } from "preact";
import { send } from "../api/client";
import { go } from "../router";
import { confirm } from "../ui/dialog";
import { Button, Menu } from "../ui/parts";
import { toast, toastError } from "../ui/toast";

/** Where it is asked for, what it is called, where its like are listed, and what goes with it. */
export type Standing = { base: string; kind: "schedule" | "trigger" | "receiver"; name: string; list: string; goes: string; state: string; reload: () => void };

/** Asks the core for one of its acts, says that it was done, and reads anew. */
export function actOn({ base, reload }: Pick<Standing, "base" | "reload">, word: string, done: string) {
  return async () => {
    try {
      await send("POST", `${base}/${word}`);
      toast(done);
      reload();
    } catch (e) {
      toastError(e);
    }
  };
}

/** Buttons to pause, resume and remove it, with those that only its kind has. */
export function StandingActs({ of, children }: { of: Standing; children?: ComponentChildren }) {
  const remove = () =>
    confirm({ title: `Remove the ${of.kind} ${of.name}?`, text: <p>{of.goes}</p>, act: "Remove it", danger: true, run: async () => { await send("DELETE", of.base); go(of.list); } });
  return (
    <>
      {of.state === "active" && <Button icon="pause" onClick={actOn(of, "pause", "It is paused.")}>Pause</Button>}
      {of.state === "paused" && <Button kind="primary" icon="play" onClick={actOn(of, "resume", "It goes on.")}>Resume</Button>}
      {children}
      <Menu label="More" items={[{ name: `Remove this ${of.kind}`, icon: "trash", danger: true, onClick: remove }]} />
    </>
  );
}
