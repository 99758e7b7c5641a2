// Dialogs are the browser's own: they keep the focus inside and give it back.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { Button, Foreign, Refusal } from "./parts";

export function Dialog({ title, onClose, children, foot, wide, onSubmit }: { title: ComponentChildren; onClose: () => void; children: ComponentChildren; foot?: ComponentChildren; wide?: boolean; onSubmit?: () => unknown }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement as HTMLElement | null;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      before?.focus?.();
    };
  }, []);
  const inner = (
    <>
      <div class="head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" small icon="x" label="Close" onClick={onClose} />
      </div>
      <div class="body">{children}</div>
      {foot && <div class="foot">{foot}</div>}
    </>
  );
  return (
    <dialog ref={ref} class={wide ? "dialog wide" : "dialog"} aria-labelledby={id} onCancel={(e) => (e.preventDefault(), onClose())} onClick={(e) => e.target === ref.current && onClose()}>
      {onSubmit ? (
        <form
          onSubmit={(e) => {
            e.preventDefault();
            void onSubmit();
          }}
        >
          {inner}
        </form>
      ) : (
        <div class="inner">{inner}</div>
      )}
    </dialog>
  );
}

type Question = { title: string; text: ComponentChildren; act: string; danger?: boolean; run: () => Promise<unknown>; reason?: string };
const asked = signal<Question | undefined>(undefined);

/** Asks before something is done that cannot be undone. The button names the act. */
export function confirm(question: Question): void {
  asked.value = question;
}

export function Confirmations() {
  const q = asked.value;
  return q ? <Confirmation q={q} key={q.title} /> : null;
}

function Confirmation({ q }: { q: Question }) {
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const close = () => (asked.value = undefined);
  const go = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await q.run();
      close();
    } catch (e) {
      setError(e instanceof ApiError ? e : new ApiError(0, { code: "page.failed", message: String(e), retryable: false }));
    }
    setBusy(false);
  };
  return (
    <Dialog
      title={<Foreign text={q.title} max={300} />}
      onClose={close}
      onSubmit={go}
      foot={
        <>
          <Button onClick={close}>Keep it as it is</Button>
          <Button type="submit" kind={q.danger ? "danger" : "primary"} solid busy={busy}>
            {q.act}
          </Button>
        </>
      }
    >
      <div class="prose">{q.text}</div>
      {error && <Refusal error={error} />}
    </Dialog>
  );
}
