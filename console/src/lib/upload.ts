// Files into a world: small ones at once, large ones in parts that are sent again alone when a connection breaks.
import { address, ApiError, path, request, seg, send } from "../api/client";

export const PART = 16 * 1024 * 1024;
type Upload = { upload_id: string; part_bytes_min: number; parts: { part: number; bytes: number }[] };
export type Progress = (sent: number, total: number) => void;

/** How long a begun upload is taken up again; older ones begin anew. */
const KEPT_MS = 24 * 3_600_000;
const MARK = "wharf.upload ";

/** The id of an upload that was begun and not ended; what is too old is forgotten. */
function kept(key: string): string | undefined {
  for (const k of Object.keys(localStorage)) if (k.startsWith(MARK) && !(Number(localStorage.getItem(k)?.split(" ")[1]) > Date.now() - KEPT_MS)) localStorage.removeItem(k);
  return localStorage.getItem(key)?.split(" ")[0];
}

function keep(key: string, id: string | undefined): void {
  if (id === undefined) localStorage.removeItem(key);
  else localStorage.setItem(key, `${id} ${Date.now()}`);
}

export async function upload(world: string, to: string, file: Blob, type: string, signal: AbortSignal, tell: Progress): Promise<void> {
  const base = `/v1/worlds/${seg(world)}`;
  if (file.size <= PART) {
    await request(`${base}/files${path(to)}`, { method: "PUT", body: file, type: type || "application/octet-stream", signal });
    tell(file.size, file.size);
    return;
  }
  // An upload that broke off before is taken up again, also in another tab or after the browser was closed: its id is
  // kept for the file's path, size and time.
  const key = `${MARK}${world} ${to} ${file.size} ${file instanceof File ? file.lastModified : 0}`;
  let state: Upload | undefined;
  const known = kept(key);
  if (known) state = await request(address(`${base}/uploads/${seg(known)}`, { path: to }), { signal }).then((a) => a.json() as Promise<Upload>).catch(() => undefined);
  state ??= await send<Upload>("POST", `${base}/uploads`, { path: to, ...(type ? { media_type: type } : {}) }, signal);
  keep(key, state.upload_id);
  const done = new Map(state.parts.map((p) => [p.part, p.bytes]));
  const count = Math.ceil(file.size / PART);
  for (let n = 1; n <= count; n += 1) {
    const piece = file.slice((n - 1) * PART, Math.min(n * PART, file.size));
    if (done.get(n) !== piece.size) await part(address(`${base}/uploads/${seg(state.upload_id)}/parts/${n}`, { path: to }), piece, signal);
    tell(Math.min(n * PART, file.size), file.size);
  }
  await send("POST", address(`${base}/uploads/${seg(state.upload_id)}/complete`, { path: to }), { bytes: file.size, ...(type ? { media_type: type } : {}) }, signal);
  keep(key, undefined);
}

async function part(to: string, piece: Blob, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await request(to, { method: "PUT", body: piece, signal });
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || !error.info.retryable || attempt >= 6) throw error;
      await new Promise((go) => setTimeout(go, 500 * 2 ** attempt));
    }
  }
}
