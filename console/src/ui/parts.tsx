// The small parts that screens are made of.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import * as f from "../lib/format";
import { WORDS, type WordName } from "../lib/glossary";
import { pieces } from "../lib/text";
import { place } from "../router";
import { Icon, type IconName } from "./icons";
import { toast } from "./toast";

/** The time of day as parts show it; beats once a second while the page is seen. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export function zone(): f.Zone {
  return place.value.query.get("tz") === "utc" ? "utc" : "local";
}

type ButtonProps = {
  children?: ComponentChildren;
  icon?: IconName;
  label?: string;
  kind?: "primary" | "danger" | "quiet";
  solid?: boolean;
  small?: boolean;
  type?: "button" | "submit";
  disabled?: boolean;
  pressed?: boolean;
  busy?: boolean;
  describedBy?: string | undefined;
  onClick?: (event: MouseEvent) => unknown;
};

export function Button(p: ButtonProps) {
  const [busy, setBusy] = useState(false);
  const only = p.icon && !p.children;
  const cls = ["btn", p.kind, p.solid && "solid", p.small && "small", only && "icon"].filter(Boolean).join(" ");
  const click = async (event: MouseEvent) => {
    const out = p.onClick?.(event);
    if (out instanceof Promise) {
      setBusy(true);
      try {
        await out;
      } finally {
        setBusy(false);
      }
    }
  };
  return (
    <button type={p.type ?? "button"} class={cls} disabled={p.disabled || busy || p.busy} aria-label={only ? p.label : undefined} title={only ? p.label : undefined} aria-pressed={p.pressed} aria-describedby={p.describedBy} onClick={click}>
      {p.icon && <Icon name={p.icon} />}
      {p.children}
    </button>
  );
}

/** Text that others wrote: never markup, strange characters as escapes, its direction kept to itself. */
export function Foreign({ text, max }: { text: string; max?: number }) {
  const shown = max && text.length > max ? `${text.slice(0, max)}…` : text;
  return (
    <bdi>
      {pieces(shown).map((p) => (p.escaped ? <span class="esc">{p.text}</span> : p.text))}
    </bdi>
  );
}

const TONES: Record<string, [string, IconName | "spin" | "ring" | "dash"]> = {
  succeeded: ["ok", "check"], allowed: ["ok", "check"], answered: ["ok", "check"], "answered otherwise": ["ok", "check"], available: ["ok", "check"], active: ["ok", "check"], ok: ["ok", "check"], connected: ["ok", "check"], approved: ["run", "check"],
  failed: ["bad", "x"], crashed: ["bad", "x"], fail: ["bad", "x"], denied: ["bad", "x"], error: ["bad", "x"],
  declined: ["calm", "dash"], cancelled: ["calm", "dash"], withdrawn: ["calm", "dash"], refused: ["odd", "x"], quarantined: ["warn", "warn"], drifted: ["warn", "warn"], unhealthy: ["warn", "warn"], backing_off: ["warn", "clock"], warn: ["warn", "warn"], waiting: ["warn", "pause"], open: ["warn", "pause"], warning: ["warn", "warn"],
  running: ["run", "spin"], starting: ["run", "spin"], draining: ["warn", "spin"],
  queued: ["calm", "ring"], canceled: ["calm", "dash"], stopped: ["calm", "dash"], disabled: ["calm", "dash"], unavailable: ["calm", "dash"], added: ["calm", "ring"], away: ["calm", "dash"], expired: ["calm", "dash"], revoked: ["calm", "dash"], info: ["calm", "info"],
};

export function toneOf(state: string): string {
  return TONES[state]?.[0] ?? "calm";
}

/** A state as a sign, a colour and a word. Providers that run are well; runs that run are under way. */
export function Status({ state, steady, short }: { state: string; steady?: boolean; short?: boolean }) {
  let [tone, sign] = TONES[state] ?? ["calm", "ring"];
  if (steady && state === "running") [tone, sign] = ["ok", "check"];
  return (
    <span class={`status ${tone}`}>
      <StateSign sign={sign} />
      {short ? <span class="sr">{state}</span> : state.replaceAll("_", " ")}
    </span>
  );
}

function StateSign({ sign }: { sign: string }) {
  if (sign === "spin")
    return (
      <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.8" aria-hidden="true" class="spin">
        <circle cx="7" cy="7" r="5" opacity=".25" />
        <path d="M12 7a5 5 0 0 0-5-5" stroke-linecap="round" />
      </svg>
    );
  if (sign === "ring" || sign === "dash")
    return (
      <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" aria-hidden="true">
        <circle cx="7" cy="7" r="5" stroke-dasharray={sign === "ring" ? "2.4 1.6" : undefined} />
        {sign === "dash" && <path d="M4.700 7h4.600" stroke-linecap="round" />}
      </svg>
    );
  return <Icon name={sign as IconName} size={14} />;
}

export function Badge({ tone, children }: { tone?: string; children: ComponentChildren }) {
  return <span class={`badge ${tone ?? ""}`}>{children}</span>;
}

/** More to know about a word or a figure, by focus, tap or pointer. */
export function Tip({ text, children, end }: { text: ComponentChildren; children: ComponentChildren; end?: boolean }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <span class={end ? "tip end" : "tip"} onMouseEnter={() => setOpen(true)} onMouseLeave={() => setOpen(false)} onKeyDown={(e) => e.key === "Escape" && setOpen(false)}>
      <button type="button" aria-describedby={open ? id : undefined} onFocus={() => setOpen(true)} onBlur={() => setOpen(false)} onClick={(e) => (e.stopPropagation(), setOpen(true))}>
        {children}
      </button>
      {open && (
        <span role="tooltip" id={id} class="pop">
          {text}
        </span>
      )}
    </span>
  );
}

/** A word of the glossary. */
export function Word({ name, children }: { name: WordName; children?: ComponentChildren }) {
  return <Tip text={WORDS[name]}>{children ?? name}</Tip>;
}

/** A moment: coarse, with the exact one by focus, tap or pointer. */
export function Time({ at, as = "clock", plain }: { at: string | number | null | undefined; as?: "clock" | "relative"; plain?: boolean }) {
  const t = typeof at === "number" ? at : f.at(at);
  if (t === undefined) return <span class="muted">–</span>;
  const text = as === "relative" ? f.relative(t, now.value) : f.clock(t, now.value, zone());
  const time = <time dateTime={new Date(t).toISOString()}>{text}</time>;
  if (plain) return <span title={f.exact(t, zone())}>{time}</span>;
  return <Tip text={f.exact(t, zone())}>{time}</Tip>;
}

/** How long something took or has been taking. */
export function Took({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const a = f.at(from);
  if (a === undefined) return <span class="muted">–</span>;
  const b = f.at(to);
  return <span class="nowrap">{f.span((b ?? Math.max(now.value, a)) - a)}</span>;
}

export async function copy(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(what, "ok");
  } catch {
    toast("The browser does not let the page copy. Select the text and copy it by hand.", "warn");
  }
}

/** A command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span class="cmd">
      <code tabIndex={0}>{text}</code>
      <Button kind="quiet" small icon="copy" label={`Copy: ${text}`} onClick={() => copy(text)} />
    </span>
  );
}

export function Empty({ icon = "info", title, children, level = 2 }: { icon?: IconName; title: string; children?: ComponentChildren; level?: 2 | 3 }) {
  const H = level === 2 ? "h2" : "h3";
  return (
    <div class="empty">
      <span class="glyph">
        <Icon name={icon} size={30} />
      </span>
      <H>{title}</H>
      {children}
    </div>
  );
}

export function Note({ tone, children, icon }: { tone?: "bad" | "warn" | "run" | "ok" | undefined; children: ComponentChildren; icon?: IconName }) {
  const sign: IconName = icon ?? (tone === "bad" || tone === "warn" ? "warn" : tone === "ok" ? "check" : "info");
  return (
    <div class={`note ${tone ?? ""}`}>
      <Icon name={sign} />
      <div class="grow">{children}</div>
    </div>
  );
}

/** A refusal with its code, its sentence and a link to its page. */
export function Refusal({ error, retry }: { error: ApiError; retry?: () => void }) {
  const page = /^[a-z_]+(\.[a-z_]+)+$/.test(error.code) && !/^(http|page|core\.unreachable)/.test(error.code);
  return (
    <Note tone="bad">
      <p>
        <Foreign text={error.info.message} max={2000} />
      </p>
      <p class="row wrap">
        {page ? (
          <a href={`/docs/errors/${error.code}`} target="_blank" rel="noreferrer">
            <code>{error.code}</code>
          </a>
        ) : (
          <code>{error.code}</code>
        )}
        {retry && (
          <Button small icon="again" onClick={retry}>
            Try again
          </Button>
        )}
      </p>
    </Note>
  );
}

export function Card({ title, actions, children, flush, level = 2, id }: { title?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; flush?: boolean; level?: 2 | 3; id?: string }) {
  const H = level === 2 ? "h2" : "h3";
  return (
    <section class="card" id={id}>
      {title && (
        <div class="head">
          <H>{title}</H>
          {actions}
        </div>
      )}
      <div class={flush ? "body flush" : "body"}>{children}</div>
    </section>
  );
}

export function Facts({ items }: { items: [ComponentChildren, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {items.map(([name, value]) =>
        value === undefined || value === null || value === false ? null : (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ),
      )}
    </dl>
  );
}

export function Meter({ parts, max, label }: { parts: { value: number; cls?: string }[]; max: number; label: string }) {
  return (
    <div class="meter" role="img" aria-label={label}>
      {parts.map((p) => (
        <i class={p.cls} style={{ width: `${max > 0 ? Math.min(100, (p.value / max) * 100) : 0}%` }} />
      ))}
    </div>
  );
}

/** Tabs whose choice stands in the address. */
export function Tabs({ tabs, current, hrefOf, label }: { tabs: { id: string; name: string; count?: number | undefined }[]; current: string; hrefOf: (id: string) => string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((t) => (
        <a class="tab" href={hrefOf(t.id)} aria-current={t.id === current ? "page" : undefined}>
          {t.name}
          {t.count !== undefined && t.count > 0 && <span class="count">{f.count(t.count)}</span>}
        </a>
      ))}
    </nav>
  );
}

/** True once something has taken longer than people notice: no sign of waiting before that. */
export function useSlow(waiting: boolean, ms = 150): boolean {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    if (!waiting) {
      setSlow(false);
      return;
    }
    const timer = setTimeout(() => setSlow(true), ms);
    return () => clearTimeout(timer);
  }, [waiting]);
  return slow && waiting;
}

export function Skeleton({ lines = 4 }: { lines?: number }) {
  const slow = useSlow(true);
  if (!slow) return null;
  return (
    <div class="col" aria-hidden="true">
      {Array.from({ length: lines }, (_, i) => (
        <span class="skeleton" style={{ width: `${90 - ((i * 23) % 45)}%` }} />
      ))}
    </div>
  );
}

/** A menu of acts behind one button. */
export function Menu({ label, icon = "more", text, items, left }: { label: string; icon?: IconName; text?: string; left?: boolean; items: ({ name: string; icon?: IconName; danger?: boolean; href?: string; download?: boolean; onClick?: () => unknown } | false | undefined | null)[] }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", close);
    (box.current?.querySelector(".item") as HTMLElement | null)?.focus();
    return () => removeEventListener("pointerdown", close);
  }, [open]);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      setOpen(false);
      (box.current?.querySelector("button") as HTMLElement | null)?.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const all = [...(box.current?.querySelectorAll<HTMLElement>(".item") ?? [])];
      const i = all.indexOf(document.activeElement as HTMLElement);
      all[(i + (event.key === "ArrowDown" ? 1 : all.length - 1)) % all.length]?.focus();
    }
  };
  const shown = items.filter((i): i is Exclude<typeof i, false | undefined | null> => !!i);
  if (shown.length === 0) return null;
  return (
    <div class="menu" ref={box} onKeyDown={keys}>
      <button type="button" class={text ? "btn" : "btn icon"} aria-haspopup="true" aria-expanded={open} aria-label={text ? undefined : label} title={label} onClick={() => setOpen(!open)}>
        <Icon name={icon} />
        {text}
      </button>
      {open && (
        <div class={left ? "list left" : "list"}>
          {shown.map((i) =>
            i.href ? (
              <a class="item" href={i.href} download={i.download} onClick={() => setOpen(false)}>
                {i.icon && <Icon name={i.icon} />}
                {i.name}
              </a>
            ) : (
              <button type="button" class={i.danger ? "item danger" : "item"} onClick={() => (setOpen(false), void i.onClick?.())}>
                {i.icon && <Icon name={i.icon} />}
                {i.name}
              </button>
            ),
          )}
        </div>
      )}
    </div>
  );
}

export type { JSX };
