// The list of runs: windows of 200, fetched while one scrolls, kept fresh without jumping under the pointer.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, get, type Params } from "../api/client";
import { feed, onChange, type Change } from "../api/live";
import type { Page, Run, Status } from "../api/types";

const WINDOW = 200;
const REFRESH_MS = 1000;

export function useRuns(filter: Params) {
  const key = JSON.stringify(filter);
  const list = useMemo(() => {
    const rows = signal<Run[]>([]);
    const fresh = signal<Run[]>([]);
    const cursor = signal<string | null | undefined>(undefined);
    const error = signal<ApiError | undefined>(undefined);
    const total = signal<{ count: number; exact: boolean } | undefined>(undefined);
    return { rows, fresh, cursor, error, total, calm: { value: true }, reload: () => {}, more: () => {} };
  }, [key]);

  useEffect(() => {
    const end = new AbortController();
    let busy = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const fail = (e: unknown) => {
      if (!end.signal.aborted && e instanceof ApiError) list.error.value = e;
    };
    const fetchPage = (cursor?: string) => get<Page<Run>>("/v1/runs", { ...filter, limit: WINDOW, cursor }, end.signal);
    const count = () =>
      void get<{ count: number; exact: boolean }>("/v1/runs/count", filter, end.signal).then(
        (c) => (list.total.value = c),
        (e) => e instanceof ApiError && e.info.retryable && !end.signal.aborted && soon(),
      );
    const first = async () => {
      busy = true;
      try {
        const page = await fetchPage();
        merge(page);
        list.error.value = undefined;
      } catch (e) {
        fail(e);
      }
      busy = false;
    };
    const merge = (page: Page<Run>) => {
      const known = new Map(list.rows.value.map((r) => [`${r.world}/${r.run_id}`, r]));
      // The first window is all there is: what does not fit the filters any more goes, unless somebody points at it.
      const whole = list.cursor.value === null || list.rows.value.length <= WINDOW;
      if (known.size === 0 || (whole && list.calm.value)) {
        list.rows.value = page.items;
        list.fresh.value = [];
        list.cursor.value = page.next_cursor ?? null;
        return;
      }
      const news: Run[] = [];
      const changed = new Map<string, Run>();
      for (const run of page.items) {
        const id = `${run.world}/${run.run_id}`;
        if (known.has(id)) changed.set(id, run);
        else news.push(run);
      }
      const kept = list.rows.value.map((r) => changed.get(`${r.world}/${r.run_id}`) ?? r);
      if (news.length === 0 || list.calm.value) {
        list.rows.value = news.length === 0 ? kept : [...news, ...kept];
        list.fresh.value = [];
      } else {
        list.rows.value = kept;
        list.fresh.value = news;
      }
    };
    list.more = () => {
      if (busy || !list.cursor.value) return;
      busy = true;
      void fetchPage(list.cursor.value)
        .then((page) => {
          const known = new Set(list.rows.value.map((r) => `${r.world}/${r.run_id}`));
          list.rows.value = [...list.rows.value, ...page.items.filter((r) => !known.has(`${r.world}/${r.run_id}`))];
          list.cursor.value = page.next_cursor ?? null;
        })
        .catch(fail)
        .finally(() => (busy = false));
    };
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (document.hidden || busy) return soon();
        void first();
        count();
      }, REFRESH_MS);
    };
    const touch = (changes: Change[]) => {
      const by = new Map(changes.filter((c) => c.kind === "RUN").map((c) => [`${c.world ?? "default"}/${c.id}`, c.status]));
      if (by.size === 0) return;
      list.rows.value = list.rows.value.map((r) => {
        const status = by.get(`${r.world}/${r.run_id}`);
        return status && status !== r.status ? { ...r, status: status as Status } : r;
      });
    };
    list.reload = () => void first();
    void first();
    count();
    const off = onChange((frame) => {
      touch(frame.items);
      if (frame.reset || frame.items.some((c) => c.kind === "RUN")) soon();
    });
    const poll = setInterval(() => feed.value !== "live" && soon(), 4000);
    return () => (end.abort(), off(), clearInterval(poll), timer && clearTimeout(timer));
  }, [key]);
  return list;
}
