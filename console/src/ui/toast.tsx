// Short messages about what was just done. They are read out once and go by themselves, except refusals.
import { signal } from "@preact/signals";
import { ApiError } from "../api/client";
import { safe } from "../lib/text";
import { Icon } from "./icons";
import { CodeLink } from "./parts";

type Toast = { id: number; text: string; tone: "ok" | "bad" | "warn"; code?: string };
const toasts = signal<Toast[]>([]);
let next = 0;

export function toast(text: string, tone: Toast["tone"] = "ok", code?: string): void {
  const id = (next += 1);
  toasts.value = [...toasts.value.slice(-3), code === undefined ? { id, text, tone } : { id, text, tone, code }];
  if (tone === "ok") setTimeout(() => drop(id), 4000);
  else setTimeout(() => drop(id), 20_000);
}

/** Shows a refusal; what was aborted is no refusal. */
export function toastError(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (error instanceof ApiError) toast(error.info.message, "bad", error.code);
  else toast(error instanceof Error ? error.message : String(error), "bad");
}

function drop(id: number): void {
  toasts.value = toasts.value.filter((t) => t.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((t) => (
        <div class="toast" key={t.id}>
          <span class={`status ${t.tone}`}>
            <Icon name={t.tone === "ok" ? "check" : "warn"} />
          </span>
          <div class="grow">
            {safe(t.text)}
            {t.code && (
              <>
                {" "}
                <CodeLink code={t.code} />
              </>
            )}
          </div>
          <button type="button" class="btn quiet small icon" aria-label="Close this message" onClick={() => drop(t.id)}>
            <Icon name="x" />
          </button>
        </div>
      ))}
    </div>
  );
}
