// Signing in: by a link from the command line, or by a token that is pasted.
import { useEffect, useState } from "preact/hooks";
import { exchange } from "../api/session";
import { TextField } from "../ui/form";
import { Logo } from "../ui/icons";
import { Button, CodeLink, Command, Note } from "../ui/parts";

export function SignIn({ why, code }: { why?: string | undefined; code?: string | undefined }) {
  const [token, setToken] = useState("");
  const [fault, setFault] = useState<string>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Wharf";
  }, []);
  const submit = async (e: Event) => {
    e.preventDefault();
    const text = token.trim();
    if (!text) {
      setFault("Paste a token first.");
      return;
    }
    setBusy(true);
    setFault(undefined);
    await exchange({ token: text });
    setToken("");
    setBusy(false);
  };
  return (
    <main class="gate" id="main">
      <div class="card">
        <div class="lead">
          <Logo size={36} />
          <div>
            <h1>Sign in to Wharf</h1>
            <p class="muted">Runs, questions, approvals and money of this core.</p>
          </div>
        </div>
        {why && (
          <div role="alert">
            <Note tone="warn"><p>{why}</p>{code && <p><CodeLink code={code} /></p>}</Note>
          </div>
        )}
        <div class="col tight">
          <p>On the machine where the core runs, type</p>
          <div>
            <Command text="wharf console" />
          </div>
          <p class="muted">It opens this page with a link that works once, for a minute.</p>
        </div>
        <div class="or">or</div>
        <form class="col" onSubmit={submit} autocomplete="off">
          <TextField label="Token" type="password" mono value={token} onInput={setToken} fault={fault} hint="The page keeps a session, never the token." />
          <div>
            <Button type="submit" kind="primary" busy={busy}>
              Sign in
            </Button>
          </div>
        </form>
      </div>
    </main>
  );
}
