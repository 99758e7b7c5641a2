// Files of a world: folders, previews, upload, download, where a file comes from.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, get, isMissingRoute, path as encodePath, request, seg, send } from "../api/client";
import { useResource, useWindows } from "../api/resource";
import { may } from "../api/session";
import type { Artifact, Folder, Lineage, Page, Trace } from "../api/types";
import { bytes, count, plural } from "../lib/format";
import { safe } from "../lib/text";
import { upload } from "../lib/upload";
import { go, place, runLink, worldLink } from "../router";
import { Code } from "../ui/code";
import { confirm } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { Button, Card, Command, Empty, Facts, Foreign, Meter, More, Note, Refusal, Time, Tip } from "../ui/parts";
import { Table } from "../ui/table";
import { toast, toastError } from "../ui/toast";
import { Loaded } from "./frame";
import { LineageGraph } from "./lineage";

type Row = { folder: Folder } | { file: Artifact };
type Listing = Page<Artifact> & { folders?: Folder[] | null };

const pathOf = (r: Row) => ("folder" in r ? r.folder.path : r.file.path);

/** How much a folder holds. Counting ends somewhere, and then it is at least that much. */
function Held({ of }: { of: Folder }) {
  if (of.files == null || of.bytes == null) return null;
  const least = of.more ? "at least " : "";
  return <Tip plain text={`${least}${plural(of.files, "file")} with ${bytes(of.bytes)}, folders within included`}><span>{of.more && "> "}{bytes(of.bytes)}</span></Tip>;
}

export function FilesTab({ world, onChange }: { world: string; onChange: () => void }) {
  const q = place.value.query;
  const file = q.get("file");
  const folder = q.get("folder") ?? (file ? file.slice(0, file.lastIndexOf("/") + 1) : "/");
  const files = useWindows(
    `files ${world} ${folder}`,
    (cursor, s) => get<Listing>(`/v1/worlds/${seg(world)}/artifacts`, { prefix: folder, delimiter: "/", limit: 200, cursor }, s),
    (pages): Row[] => [...pages.flatMap((p) => (p.folders ?? []).map((folder) => ({ folder }))), ...pages.flatMap((p) => p.items.map((file) => ({ file })))],
    { kinds: ["RUN"], match: (c) => c.world === world },
  );
  const parts = folder.split("/").filter(Boolean);
  const reload = () => (files.reload(), onChange());
  return (
    <div class="col">
      <div class="row wrap">
        <nav class="row wrap grow" aria-label="Folder">
          <a href={worldLink(world)}>{world}</a>
          {parts.map((p, i) => <><span class="muted">/</span><a href={worldLink(world, { folder: `/${parts.slice(0, i + 1).join("/")}/` })}><Foreign text={p} max={60} /></a></>)}
        </nav>
        {may("run", world) && <Upload world={world} folder={folder} onDone={reload} />}
      </div>
      {file && <FileCard world={world} file={file} onGone={() => (reload(), go(worldLink(world, { folder })))} />}
      <Loaded of={files}>
        {({ items: rows }) =>
          rows.length === 0 ? (
            <Card><Empty icon="folder" title={folder === "/" ? "This world holds no files" : "This folder is empty"}><p>Runs write files here, and you can put some: drop them on “Upload”, or type</p><Command text={`wharf run wharf/echo text=hello --out text.world=/out/hello.txt --world ${world}`} /></Empty></Card>
          ) : (
            <Card flush>
              <div class="files">
                <Table label="Files" keyOf={pathOf} rows={rows} hrefOf={(r) => hrefOf(world, folder, r)} columns={[
                  { name: "Name", cell: (r) => <span class="name"><Icon name={"folder" in r ? "folder" : "file"} /><a class="clip" href={hrefOf(world, folder, r)}><Foreign text={pathOf(r).slice(folder.length)} max={200} /></a></span> },
                  { name: "Size", num: true, cell: (r) => ("folder" in r ? <Held of={r.folder} /> : bytes(r.file.bytes)) },
                  { name: "Kind", drop: 2, cell: (r) => ("folder" in r ? (r.folder.files == null ? "folder" : <span>folder, {plural(r.folder.files, "file")}{r.folder.more && " or more"}</span>) : <span class="muted"><Foreign text={r.file.media_type.split(";")[0] ?? ""} max={60} /></span>) },
                  { name: "Written", drop: 1, cell: (r) => ("folder" in r ? "" : <Time at={r.file.at} plain />) },
                  { name: "By", drop: 3, cell: (r) => ("folder" in r ? "" : !r.file.run_id ? <span class="muted">upload</span> : <a class="id" href={runLink(world, r.file.run_id)}><Foreign text={r.file.run_id.length > 18 ? `…${r.file.run_id.slice(-12)}` : r.file.run_id} /></a>) },
                ]} />
              </div>
              <More of={files} what="files in this folder" />
            </Card>
          )
        }
      </Loaded>
    </div>
  );
}

function hrefOf(world: string, folder: string, r: Row): string {
  return worldLink(world, "folder" in r ? { folder: r.folder.path } : { file: r.file.path, folder });
}

function Upload({ world, folder, onDone }: { world: string; folder: string; onDone: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [state, setState] = useState<{ name: string; sent: number; total: number; end: AbortController }>();
  const [over, setOver] = useState(false);
  const take = async (list: FileList | null) => {
    for (const file of Array.from(list ?? [])) {
      const end = new AbortController();
      setState({ name: file.name, sent: 0, total: file.size, end });
      try {
        await upload(world, folder + file.name, file, file.type, end.signal, (sent, total) => setState({ name: file.name, sent, total, end }));
        toast(`${file.name} is there.`);
      } catch (e) {
        toastError(e);
      }
      setState(undefined);
      onDone();
    }
  };
  return (
    <div class="row" onDragOver={(e) => (e.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)} onDrop={(e) => (e.preventDefault(), setOver(false), void take(e.dataTransfer?.files ?? null))}>
      {state && <><span class="muted clip"><Foreign text={state.name} max={40} /> {bytes(state.sent)} of {bytes(state.total)}</span><Meter label={safe(`Uploading ${state.name}`)} max={state.total} parts={[{ value: state.sent }]} /><Button small onClick={() => state.end.abort()}>Stop</Button></>}
      <Button icon="up" kind={over ? "primary" : undefined as never} onClick={() => input.current?.click()} disabled={!!state}>Upload</Button>
      <input ref={input} type="file" multiple hidden onChange={(e) => (void take(e.currentTarget.files), (e.currentTarget.value = ""))} />
    </div>
  );
}

type Ticket = { url: string; media_type?: string };
const TEXT_MAX = 256 * 1024;

/** A short-lived address for one file, where the core gives one. */
async function ticket(world: string, file: string): Promise<Ticket | undefined> {
  try {
    return await send<Ticket>("POST", `/v1/worlds/${seg(world)}/tickets`, { path: file });
  } catch (e) {
    if (isMissingRoute(e)) return undefined;
    throw e;
  }
}

async function download(world: string, file: string): Promise<void> {
  const name = file.slice(file.lastIndexOf("/") + 1);
  try {
    const t = await ticket(world, file);
    const a = document.createElement("a");
    a.download = name;
    if (t) a.href = `${t.url}?download=${encodeURIComponent(name)}`;
    else a.href = URL.createObjectURL(await (await request(`/v1/worlds/${seg(world)}/files${encodePath(file)}`)).blob());
    a.click();
  } catch (e) {
    toastError(e);
  }
}

function FileCard({ world, file, onGone }: { world: string; file: string; onGone: () => void }) {
  const lineage = place.value.query.get("tab") === "lineage";
  const depth = lineage ? Math.min(5, Math.max(1, Number(place.value.query.get("depth")) || 1)) : 1;
  const trace = useResource<Trace>(`trace ${world} ${file} ${depth}`, (s) => get(`/v1/worlds/${seg(world)}/trace`, { path: file, depth }, s), { kinds: ["RUN"], match: (c) => c.world === world });
  const name = file.slice(file.lastIndexOf("/") + 1);
  return (
    <Card
      title={<Foreign text={name} max={120} />}
      actions={
        <>
          <Button small icon="download" onClick={() => download(world, file)}>Download</Button>
          {may("operate", world) && <Button small kind="danger" icon="trash" onClick={() => confirm({ title: `Delete ${file}?`, text: <p>The file is gone for good. Where it came from and went stays on record.</p>, act: "Delete the file", danger: true, run: async () => { await send("DELETE", `/v1/worlds/${seg(world)}/files${encodePath(file)}`); onGone(); } })}>Delete</Button>}
          <Button small kind="quiet" icon="x" label="Close" onClick={() => go(worldLink(world, { folder: file.slice(0, file.lastIndexOf("/") + 1) }))} />
        </>
      }
    >
      <Loaded of={trace}>
        {(t) => {
          const newest = t.written.at(-1);
          const l: Lineage = { world, run_id: "", read: t.read, wrote: t.written, made_from: t.made_from, went_into: t.went_into, cut: t.cut };
          return (
            <div class="col">
              <div class="grid2">
                <Facts items={[["Path", <code class="break"><Foreign text={file} max={400} /></code>], ["Size", newest && bytes(newest.bytes)], ["Kind", newest && <Foreign text={newest.media_type} max={80} />], ["BLAKE3", newest?.b3 && <code class="break">{newest.b3}</code>], ["Written", newest && <Time at={newest.at} />], ["Versions", count(t.written.length)], ["Gone", newest?.gone_at && <Time at={newest.gone_at} />]]} />
                {newest && !newest.gone_at && <Preview world={world} file={file} type={newest.media_type} size={newest.bytes} />}
              </div>
              <div class="row">
                <a class="btn small" aria-current={lineage ? "true" : undefined} href={worldLink(world, { file, tab: lineage ? undefined : "lineage" })}>{lineage ? "Hide where it comes from" : "Where it comes from"}</a>
              </div>
              {lineage && (
                <div class="choices" role="group" aria-label="How many runs away">
                  {[1, 2, 3, 4, 5].map((n) => <a class="btn small" aria-current={n === depth ? "true" : undefined} href={worldLink(world, { file, tab: "lineage", depth: n === 1 ? undefined : String(n) })}>{plural(n, "run")} away</a>)}
                </div>
              )}
              {lineage && <LineageGraph of={{ kind: "file", world, id: file, label: file }} lineage={l} further={t.further} />}
              {t.written.length > 1 && (
                <details><summary>{plural(t.written.length, "version")}</summary>
                  <Table label="Versions" rows={[...t.written].reverse()} keyOf={(a) => `${a.at}${a.run_id}`} columns={[{ name: "Written", cell: (a) => <Time at={a.at} plain /> }, { name: "Size", num: true, cell: (a) => bytes(a.bytes) }, { name: "By", cell: (a) => (a.run_id ? <a class="id" href={runLink(world, a.run_id)}><Foreign text={a.run_id} max={60} /></a> : "upload") }]} />
                </details>
              )}
            </div>
          );
        }}
      </Loaded>
    </Card>
  );
}

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const MEDIA = /^(audio|video)\/(mpeg|mp3|ogg|wav|flac|aac|mp4|webm|x-wav|x-m4a)$/;
const RENEW_MIN_MS = 5000;
const TEXT = /^(text\/|application\/(json|xml|javascript|x-ndjson|toml|yaml|x-sh))/;

/** Pictures and sound by a ticket; text and markup as source; the rest is only named. */
function Preview({ world, file, type, size }: { world: string; file: string; type: string; size: number }) {
  const kind = (type.split(";")[0] ?? "").trim().toLowerCase();
  const isText = (TEXT.test(kind) && kind !== "image/svg+xml") || kind === "text/html";
  const [shown, setShown] = useState<{ url?: string; text?: string; cut?: boolean }>();
  const [error, setError] = useState<ApiError>();
  const key = useMemo(() => `${world}${file}${size}`, [world, file, size]);
  useEffect(() => {
    const end = new AbortController();
    let made: string | undefined;
    void (async () => {
      try {
        if (IMAGE.test(kind) || MEDIA.test(kind)) {
          // A drawing is shown as a picture only, from memory: no script of it runs in an <img>.
          const svg = kind === "image/svg+xml";
          const t = svg ? undefined : await ticket(world, file);
          if (t) setShown({ url: t.url });
          else if (size < 8 * 1024 * 1024) {
            const data = await (await request(`/v1/worlds/${seg(world)}/files${encodePath(file)}`, { signal: end.signal })).arrayBuffer();
            setShown({ url: (made = URL.createObjectURL(new Blob([data], { type: kind }))) });
          }
        } else if (isText && size > 0) {
          const answer = await request(`/v1/worlds/${seg(world)}/files${encodePath(file)}`, { signal: end.signal, headers: { range: `bytes=0-${TEXT_MAX - 1}` } });
          setShown({ text: await answer.text(), cut: size > TEXT_MAX });
        }
      } catch (e) {
        if (!end.signal.aborted && e instanceof ApiError) setError(e);
      }
    })();
    return () => (end.abort(), made && URL.revokeObjectURL(made));
  }, [key]);
  if (error) return <Refusal error={error} />;
  if (!shown) return null;
  return (
    <div class="previewbox col tight">
      {shown.url && IMAGE.test(kind) && <img src={shown.url} alt={safe(`Preview of ${file}`)} />}
      {shown.url && MEDIA.test(kind) && <Media first={shown.url} world={world} file={file} kind={kind} />}
      {shown.text !== undefined && <Code text={shown.text} label={safe(`Content of ${file}`)} />}
      {shown.cut && <Note>Only the beginning is shown.</Note>}
    </div>
  );
}

/** Sound and film go on past the end of their ticket: when the core takes it no more, a new one is asked for once. */
function Media({ first, world, file, kind }: { first: string; world: string; file: string; kind: string }) {
  const [src, setSrc] = useState(first);
  const el = useRef<HTMLMediaElement>(null);
  const at = useRef({ time: 0, playing: false, since: Date.now() });
  const renew = async () => {
    // One that fails at once is not played by this browser, whatever its address.
    if (Date.now() - at.current.since < RENEW_MIN_MS) return;
    at.current.since = Date.now();
    const t = await ticket(world, file).catch(() => undefined);
    if (t) setSrc(t.url);
  };
  const props = {
    controls: true,
    src,
    "aria-label": safe(file),
    onError: () => void renew(),
    onTimeUpdate: () => el.current && el.current.currentTime > 0 && (at.current.time = el.current.currentTime),
    onSeeking: () => el.current && (at.current.time = el.current.currentTime),
    onPlay: () => (at.current.playing = true),
    onPause: () => el.current && !el.current.error && (at.current.playing = false),
    onLoadedMetadata: () => {
      if (!el.current || src === first) return;
      el.current.currentTime = at.current.time;
      if (at.current.playing) void el.current.play().catch(() => {});
    },
  };
  return kind.startsWith("audio/") ? <audio ref={el as never} {...props} /> : <video ref={el as never} {...props} />;
}
