// The small parts that screens are made of.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import * as f from "../lib/format";
import { WORDS, type WordName } from "../lib/glossary";
import { pieces, safe } from "../lib/text";
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
  /** Has the focus when its dialog opens. */
  autoFocus?: boolean;
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
    <button type={p.type ?? "button"} class={cls} disabled={p.disabled || busy || p.busy} aria-label={only ? p.label : undefined} title={only ? p.label : undefined} aria-pressed={p.pressed} aria-describedby={p.describedBy} autoFocus={p.autoFocus} onClick={click}>
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
  succeeded: ["ok", "check"], done: ["ok", "check"], allowed: ["ok", "check"], answered: ["ok", "check"], "answered otherwise": ["ok", "check"], available: ["ok", "check"], active: ["ok", "check"], started: ["ok", "check"], ok: ["ok", "check"], connected: ["ok", "check"], approved: ["run", "check"], sent: ["ok", "check"],
  failed: ["bad", "x"], crashed: ["bad", "x"], fail: ["bad", "x"], denied: ["bad", "x"], parked: ["bad", "x"], error: ["bad", "x"],
  declined: ["calm", "dash"], cancelled: ["calm", "dash"], withdrawn: ["calm", "dash"], refused: ["odd", "x"], quarantined: ["warn", "warn"], drifted: ["warn", "warn"], unhealthy: ["warn", "warn"], backing_off: ["warn", "clock"], retrying: ["warn", "clock"], warn: ["warn", "warn"], waiting: ["warn", "pause"], open: ["warn", "pause"], warning: ["warn", "warn"],
  running: ["run", "spin"], starting: ["run", "spin"], draining: ["warn", "spin"],
  queued: ["calm", "ring"], due: ["run", "ring"], paused: ["warn", "pause"], skipped: ["calm", "dash"], missed: ["warn", "warn"], over: ["calm", "dash"], canceled: ["calm", "dash"], stopped: ["calm", "dash"], disabled: ["calm", "dash"], unavailable: ["calm", "dash"], added: ["calm", "ring"], away: ["calm", "dash"], expired: ["calm", "dash"], revoked: ["calm", "dash"], info: ["calm", "info"],
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

const HOVER_MS = 200;

/** More to know about a word or a figure, by focus, tap or pointer. It lies above everything, so that no table cuts it off. */
export function Tip({ text, children, end, plain }: { text: ComponentChildren; children: ComponentChildren; end?: boolean; plain?: boolean }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const at = useRef<HTMLSpanElement>(null);
  const pop = useRef<HTMLSpanElement>(null);
  // A pointer on its way over a column of times opens none of them.
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const near = () => (timer.current = setTimeout(() => setOpen(true), HOVER_MS));
  const away = () => (clearTimeout(timer.current), setOpen(false));
  useEffect(() => () => clearTimeout(timer.current), []);
  useLayoutEffect(() => {
    const el = pop.current;
    if (!open || !el || !at.current) return;
    el.showPopover?.();
    const word = at.current.getBoundingClientRect();
    const { width, height } = el.getBoundingClientRect();
    const left = end ? word.right - width : word.left;
    el.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    el.style.top = `${word.bottom + height + 8 > innerHeight ? word.top - height - 2 : word.bottom + 2}px`;
    const close = () => setOpen(false);
    addEventListener("scroll", close, { capture: true, passive: true });
    return () => removeEventListener("scroll", close, { capture: true });
  }, [open]);
  return (
    <span class={plain ? "tip plain" : "tip"} ref={at} onMouseEnter={near} onMouseLeave={away} onKeyDown={(e) => e.key === "Escape" && open && (e.stopPropagation(), setOpen(false))}>
      <button type="button" aria-describedby={open ? id : undefined} onFocus={() => setOpen(true)} onBlur={() => setOpen(false)} onClick={(e) => (e.stopPropagation(), setOpen(true))}>
        {children}
      </button>
      {open && (
        <span role="tooltip" id={id} class="pop" ref={pop} popover="manual">
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

/** A moment: coarse, with the exact one by focus, tap or pointer. In a table it is plain: nothing marks it until then. */
export function Time({ at, as = "clock", plain }: { at: string | number | null | undefined; as?: "clock" | "relative"; plain?: boolean }) {
  const t = typeof at === "number" ? at : f.at(at);
  if (t === undefined) return <span class="muted">–</span>;
  const text = as === "relative" ? f.relative(t, now.value) : f.clock(t, now.value, zone());
  const time = <time dateTime={new Date(t).toISOString()}>{text}</time>;
  return <Tip text={f.exact(t, zone())} plain={plain ?? false}>{time}</Tip>;
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
      <Button kind="quiet" small icon="copy" label={safe(`Copy: ${text}`)} onClick={() => copy(text)} />
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

/** A code of the core as a link to its page; what has none stands alone. */
export function CodeLink({ code }: { code: string }) {
  const known = /^[a-z_]+(\.[a-z_]+)+$/.test(code) && !/^(http|page|core\.unreachable)/.test(code);
  if (!known) return <code><Foreign text={code} max={100} /></code>;
  return <a href={`/docs/errors/${code}`} target="_blank" rel="noreferrer"><code>{code}</code></a>;
}

/** A refusal with its code, its sentence and a link to its page. */
export function Refusal({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <Note tone="bad">
      <p>
        <Foreign text={error.info.message} max={2000} />
      </p>
      <p class="row wrap">
        <CodeLink code={error.code} />
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

/** Below a list of which only a part was fetched. */
export function More({ of, what }: { of: { data: { value: { more: boolean } | undefined }; showMore(): void }; what: string }) {
  if (!of.data.value?.more) return null;
  return <p class="row wrap more"><Button small onClick={() => of.showMore()}>Show more</Button> <span class="muted">There are more {what}.</span></p>;
}

/** A figure with its name and what there is to say about it; one that leads somewhere is a link. */
export function Figure({ name, value, under, href }: { name: string; value: ComponentChildren; under?: ComponentChildren; href?: string }) {
  const inner = (
    <>
      <span class="name">{name}</span>
      <span class="value">{value ?? "–"}</span>
      <span class="under">{under ?? "\u00a0"}</span>
    </>
  );
  return href ? <a class="figure" href={href}>{inner}</a> : <div class="figure">{inner}</div>;
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
    <div class="meter" role="img" aria-label={safe(label)}>
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

/** What changes all the time, as it may be read out: at most every five seconds. */
export function useCalm(text: string, ms = 5000): string {
  const [said, setSaid] = useState(text);
  const last = useRef(0);
  useEffect(() => {
    if (text === said) return;
    const timer = setTimeout(() => {
      last.current = Date.now();
      setSaid(text);
    }, Math.max(0, last.current + ms - Date.now()));
    return () => clearTimeout(timer);
  }, [text, said]);
  return said;
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
export function Menu({ label, icon = "more", text, items, left, quiet }: { label: string; icon?: IconName; text?: string; left?: boolean; quiet?: boolean; items: ({ name: string; icon?: IconName; danger?: boolean; href?: string; download?: boolean; onClick?: () => unknown } | false | undefined | null)[] }) {
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
      <button type="button" class={`btn${text ? "" : " icon"}${quiet ? " quiet small" : ""}`} aria-haspopup="true" aria-expanded={open} aria-label={text ? undefined : label} title={label} onClick={() => setOpen(!open)}>
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
