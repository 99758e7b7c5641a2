// Source as it is, and the difference of two texts.
import { diff } from "../lib/diff";
import { Foreign } from "./parts";

export function Code({ text, label, max = 200_000 }: { text: string; label: string; max?: number }) {
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      <Foreign text={text} max={max} />
    </pre>
  );
}

const AROUND = 3;

export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = diff(before, after);
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - AROUND), i + AROUND + 1).some((l) => l.kind !== "same"));
  if (!near.some(Boolean)) return <p class="muted">There is no difference.</p>;
  return (
    <div class="diff" tabIndex={0} role="region" aria-label={label}>
      {lines.map((l, i) =>
        near[i] ? (
          <div class={l.kind}>
            <span aria-hidden="true">{l.kind === "add" ? "+ " : l.kind === "del" ? "− " : "  "}</span>
            {l.kind !== "same" && <span class="sr">{l.kind === "add" ? "added: " : "removed: "}</span>}
            <Foreign text={l.text} max={4000} />
          </div>
        ) : near[i - 1] ? (
          <div class="same">…</div>
        ) : null,
      )}
    </div>
  );
}
