// Logging in to an MCP server elsewhere: by a page that leads back here, or by a code that is typed on a page of any machine.
import { useEffect, useState } from "preact/hooks";
import { ApiError, seg, send } from "../api/client";
import type { Provider } from "../api/types";
import { place, providerLink, setQuery } from "../router";
import { confirm } from "../ui/dialog";
import { Button, Card, Foreign, Note, Refusal } from "../ui/parts";
import { toast } from "../ui/toast";

type LoginPage = { url: string; state: string; user_code?: string | null; expires_in_s: number };
const BACK = ["state", "code", "iss", "error", "error_description"];
/** The state of a login that was begun in this browser: what another page leads here with is not taken. */
const MARK = "wharf.mcp-login";

/** Whether a page may lead back here: servers take such addresses of one's own machine only. */
function leadsBack(): boolean {
  return location.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
}

export function McpLogin({ p, reload }: { p: Provider; reload: () => void }) {
  const base = `/v1/mcp/${seg(p.provider_id)}/login`;
  const [begun, setBegun] = useState<LoginPage>();
  const [error, setError] = useState<ApiError>();
  const finish = async (end: Record<string, string | undefined>, signal?: AbortSignal) => {
    const { done } = await send<{ done: boolean }>("POST", `${base}/finish`, end, signal);
    if (done) {
      setBegun(undefined);
      toast("Logged in.");
      reload();
    }
    return done;
  };
  const fail = (e: unknown) => setError(e instanceof ApiError ? e : undefined);
  // The page has led back here.
  useEffect(() => {
    const q = Object.fromEntries(place.peek().query);
    if (!q["state"] || (!q["code"] && !q["error"])) return;
    const mine = localStorage.getItem(MARK) === q["state"];
    localStorage.removeItem(MARK);
    setQuery(Object.fromEntries(BACK.map((k) => [k, undefined])));
    if (mine) void finish({ state: q["state"], code: q["code"], iss: q["iss"], error: q["error"] }).catch(fail);
    else toast("This login was not begun here. Begin it again.", "warn");
  }, []);
  // A code is typed elsewhere: the core is asked until it was, and answers each time after a while.
  useEffect(() => {
    if (!begun?.user_code) return;
    const end = new AbortController();
    void (async () => {
      while (!end.signal.aborted && !(await finish({ state: begun.state }, end.signal))) await new Promise((go) => setTimeout(go, 1000));
    })().catch((e) => !end.signal.aborted && (setBegun(undefined), fail(e)));
    return () => end.abort();
  }, [begun?.state]);
  const begin = (device: boolean) => async () => {
    setError(undefined);
    try {
      const page = await send<LoginPage>("POST", base, device ? { device } : { device, redirect_uri: location.origin + providerLink(p.provider_id).split("?")[0] });
      if (!/^https?:\/\//.test(page.url)) throw new ApiError(0, { code: "page.failed", message: "The server names no page to open.", retryable: false });
      if (!device) localStorage.setItem(MARK, page.state);
      setBegun(page);
    } catch (e) {
      fail(e);
    }
  };
  const forget = () =>
    confirm({ title: `Log out of ${p.provider_id}?`, text: <p>The core forgets what the login brought. Calls that need one fail until somebody logs in again.</p>, act: "Log out", danger: true, run: async () => { await send("DELETE", base); reload(); } });
  return (
    <Card title="Login" actions={<Button small onClick={forget}>Log out</Button>}>
      <div class="col">
        <p class="muted">Some servers want a person to log in. The core keeps what that brings with the secrets, renews it, and sends it to this server only.</p>
        {begun ? (
          <div class="col" role="status">
            <p>Open <a href={begun.url} target="_blank" rel="noreferrer"><Foreign text={new URL(begun.url).host} max={100} /></a>{begun.user_code ? <> and type <code><Foreign text={begun.user_code} max={60} /></code>. This page goes on by itself.</> : ". It leads back here."}</p>
            <div class="row"><Button small onClick={() => setBegun(undefined)}>Leave it</Button></div>
          </div>
        ) : (
          <div class="row wrap">
            {leadsBack() && <Button onClick={begin(false)}>Log in</Button>}
            <Button onClick={begin(true)}>Log in with a code</Button>
          </div>
        )}
        {!leadsBack() && !begun && <Note>A page can lead back to the machine where the browser runs only. Here, log in with a code, or type <code>wharf mcp login</code> on that machine.</Note>}
        {error && <Refusal error={error} />}
      </div>
    </Card>
  );
}
