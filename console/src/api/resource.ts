// Data of a screen: the last known at once, read again when the feed says that it changed, with its age when the core is slow.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError } from "./client";
import { feed, onChange, type Change } from "./live";

export type Resource<T> = {
  data: Signal<T | undefined>;
  error: Signal<ApiError | undefined>;
  loading: Signal<boolean>;
  /** When what is shown was read. */
  at: Signal<number | undefined>;
  reload(): void;
};

const cache = new Map<string, { data: unknown; at: number }>();
const CACHE_MAX = 60;

function remember(key: string, data: unknown): void {
  cache.delete(key);
  cache.set(key, { data, at: Date.now() });
  if (cache.size > CACHE_MAX) cache.delete(cache.keys().next().value as string);
}

/** Forgets everything, when somebody signs out. */
export function forgetAll(): void {
  cache.clear();
}

const GAP_MS = 500;
const POLL_MS = 4000;

export type Watch = { kinds?: Change["kind"][]; match?: (change: Change) => boolean; every?: number };

export function useResource<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>, watch: Watch = {}): Resource<T> {
  const loader = useRef(load);
  loader.current = load;
  const watching = useRef(watch);
  watching.current = watch;
  const r = useMemo(() => {
    const known = key === null ? undefined : (cache.get(key) as { data: T; at: number } | undefined);
    const state = {
      data: signal<T | undefined>(known?.data),
      error: signal<ApiError | undefined>(undefined),
      loading: signal(known === undefined && key !== null),
      at: signal<number | undefined>(known?.at),
      reload: () => {},
    };
    return state as Resource<T>;
  }, [key]);

  useEffect(() => {
    if (key === null) return;
    const end = new AbortController();
    let busy = false;
    let again = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async (): Promise<void> => {
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      try {
        const data = await loader.current(end.signal);
        if (end.signal.aborted) return;
        remember(key, data);
        r.data.value = data;
        r.at.value = Date.now();
        r.error.value = undefined;
      } catch (error) {
        if (end.signal.aborted) return;
        r.error.value = error instanceof ApiError ? error : new ApiError(0, { code: "page.failed", message: String(error), retryable: true });
        if (r.error.value.info.retryable && r.error.value.status !== 429) timer ??= setTimeout(soon, 3000);
      } finally {
        busy = false;
        r.loading.value = false;
        if (again && !end.signal.aborted) {
          again = false;
          later();
        }
      }
    };
    const soon = () => {
      timer = undefined;
      void run();
    };
    const later = () => {
      timer ??= setTimeout(soon, GAP_MS);
    };
    r.reload = () => void run();
    void run();
    const off = onChange((frame) => {
      const { kinds, match } = watching.current;
      if (!kinds) return;
      if (frame.reset || frame.items.some((c) => kinds.includes(c.kind) && (!match || match(c)))) later();
    });
    const poll = setInterval(() => {
      if (document.hidden) return;
      const { kinds, every } = watching.current;
      const last = r.at.value ?? 0;
      if (every && Date.now() - last >= every) later();
      else if (kinds && feed.value !== "live" && Date.now() - last >= POLL_MS) later();
    }, 1000);
    return () => {
      end.abort();
      off();
      clearInterval(poll);
      if (timer) clearTimeout(timer);
    };
  }, [key]);
  return r;
}

export type Windows<T> = Resource<{ items: T; more: boolean }> & { showMore(): void };

/** A list that is fetched in windows, as far as one asked for it; what was fetched is kept fresh. */
export function useWindows<P extends { next_cursor?: string | null }, T>(key: string, page: (cursor: string | undefined, signal: AbortSignal) => Promise<P>, join: (pages: P[]) => T, watch: Watch = {}): Windows<T> {
  const count = useMemo(() => ({ wanted: 1 }), [key]);
  const of = useResource<{ items: T; more: boolean }>(key, async (signal) => {
    const pages: P[] = [];
    let cursor: string | undefined;
    do {
      const next: P = await page(cursor, signal);
      pages.push(next);
      cursor = next.next_cursor ?? undefined;
    } while (cursor && pages.length < count.wanted);
    return { items: join(pages), more: !!cursor };
  }, watch);
  return Object.assign(of, { showMore: () => ((count.wanted += 1), of.reload()) });
}

/** The items of all pages that were fetched. */
export function itemsOf<T>(pages: { items: T[] }[]): T[] {
  return pages.flatMap((p) => p.items);
}
