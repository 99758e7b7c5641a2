// One line that says why a run does not move, or how it ended.
import type { Run, WaitingFor } from "../api/types";
import * as f from "../lib/format";
import { waitWords } from "../lib/waits";
import { link } from "../router";
import { CodeLink, Foreign, Note, now } from "../ui/parts";

const EXECUTED: Record<string, string> = { no: "The tool did not act.", maybe: "The tool may have acted: check before you run it again.", yes: "The tool acted." };

/** What a run waits for, and when that ends. */
export function Waits({ of, max = 300 }: { of: WaitingFor; max?: number }) {
  const { what, said, when } = waitWords(of, now.value);
  return (
    <>
      {what} {of.kind === "retry" && said && "The attempt before: "}
      {said && <Foreign text={said} max={max} />} {when}
    </>
  );
}

export function Why({ run, phases }: { run: Run; phases: { phase: string; fraction?: number | null } | undefined }) {
  if (run.error) {
    const executed = String(run.error.details?.["executed"] ?? "");
    return (
      <Note tone={run.status === "canceled" ? undefined : "bad"}>
        <p>{run.kept?.error ? "What this error said was not kept." : <Foreign text={run.error.message} max={4000} />}</p>
        <p class="row wrap">
          <CodeLink code={run.error.code} />
          {EXECUTED[executed] && <span>{EXECUTED[executed]}</span>}
          <span>{run.error.retryable ? "The same request may succeed later." : run.status === "canceled" ? "" : "The same request will fail again; change the inputs first."}</span>
        </p>
      </Note>
    );
  }
  if (run.status === "waiting" && (!run.waiting_for || run.waiting_for.kind === "ask"))
    return (
      <Note tone="warn" icon="pause">
        It waits for {run.ask?.kind === "approval" ? "an approval" : "an answer"}
        {run.ask && <>: <a href={link("/inbox", { ask: run.ask.ask_id })}><Foreign text={run.ask.title} max={300} /></a></>}
        {run.ask && <span class="muted"> · open for {f.span(now.value - (f.at(run.ask.created_at) ?? now.value))}</span>}
      </Note>
    );
  if (run.waiting_for) return <Note tone="run" icon={run.waiting_for.kind === "retry" ? "again" : "clock"}><Waits of={run.waiting_for} max={500} /></Note>;
  if (run.status === "queued") return <Note icon="clock">It waits for its turn.</Note>;
  if (run.status === "running" && phases) return <Note tone="run" icon="play">It is <Foreign text={phases.phase} max={100} />{phases.fraction != null && `, ${f.percent(phases.fraction, 1)} done`}.</Note>;
  return null;
}
