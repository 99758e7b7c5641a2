// One tool: what it takes and gives, whether it is well, and a form to try it.
import { get, path, seg, send } from "../api/client";
import { useResource } from "../api/resource";
import { mayEverywhere, may } from "../api/session";
import type { Provider, Tool, ToolDiff } from "../api/types";
import { money } from "../lib/format";
import { fromJs, write } from "../lib/json";
import { link, place, providerLink, toolLink } from "../router";
import { Diff } from "../ui/code";
import { confirm } from "../ui/dialog";
import { JsonView } from "../ui/json";
import { Badge, Button, Card, Empty, Facts, Foreign, Menu, Note, Status, Tabs } from "../ui/parts";
import { toast, toastError } from "../ui/toast";
import { Loaded, Screen } from "./frame";
import { Permissions } from "./permissions";
import { TryIt } from "./try-it";

export default function ToolScreen({ args }: { args: string[] }) {
  const id = args[0] ?? "";
  const tool = useResource<Tool>(`tool ${id}`, (s) => get(`/v1/tools/${path(id)}`, {}, s), { kinds: ["PROVIDER"], every: 10_000 });
  const tab = place.value.query.get("tab") ?? "try";
  return (
    <Screen title={id} heading={<Foreign text={id} max={200} />} of={tool} crumb={<><a href={link("/tools")}>Tools</a> / <a href={link("/tools", { q: id.slice(0, id.lastIndexOf("/")) })}><Foreign text={id.slice(0, id.lastIndexOf("/"))} max={100} /></a></>} acts={tool.data.value && <Acts tool={tool.data.value} reload={tool.reload} />}>
      <Loaded of={tool}>
        {(t) => (
          <>
            <p class="break"><Foreign text={t.description} max={4000} /></p>
            <div class="row wrap">
              <Status state={t.state} />
              {t.state_reason && <span class="muted"><Foreign text={t.state_reason} max={300} /></span>}
              <span>by <a href={providerLink(t.provider)}><Foreign text={t.provider} max={100} /></a></span>
              {t.side_effects ? <Badge tone="warn">acts on the world outside</Badge> : <Badge>no side effects</Badge>}
              {t.requires_directive && <Badge tone="odd">asks for approval first</Badge>}
              {t.free && <Badge tone="ok">free</Badge>}
              {t.max_cost_micro != null && <Badge>up to {money(t.max_cost_micro)} a run</Badge>}
              {t.tags?.map((x) => <Badge><Foreign text={x} max={40} /></Badge>)}
              <a href={link("/runs", { tool: t.tool_id })}>Its runs</a>
            </div>
            {t.state === "quarantined" && <Quarantined tool={t} reload={tool.reload} />}
            <Tabs label="Parts of this tool" current={tab} hrefOf={(x) => toolLink(id, { tab: x === "try" ? undefined : x })} tabs={[{ id: "try", name: "Try it" }, { id: "definition", name: "Definition" }, ...(t.server ? [{ id: "server", name: "Server" }] : [])]} />
            {tab === "try" && (may("run") ? <TryIt tool={t} /> : <Card><Empty icon="tool" title="Your session may not start runs"><p>It may read. A token with the verb <code>run</code> starts runs.</p></Empty></Card>)}
            {tab === "definition" && (
              <div class="grid2">
                <Card title="What it takes"><JsonView value={fromJs(t.input_schema)} open={4} label="Input schema" /></Card>
                <Card title="What it gives">{t.output_schema ? <JsonView value={fromJs(t.output_schema)} open={4} label="Output schema" /> : <p class="muted">It does not say.</p>}</Card>
              </div>
            )}
            {tab === "server" && t.server && (
              <div class="grid2">
                <Card title="Server"><Facts items={[["Kind", t.server.kind], ["State", <Status state={t.server.state} steady />], ["Why", t.server["reason"] ? <Foreign text={String(t.server["reason"])} /> : undefined], ["Folder", t.server["folder"] ? <code><Foreign text={String(t.server["folder"])} /></code> : undefined], ["Sandbox", String(t.server["sandbox"] ?? "–")]]} /></Card>
                <Permissions of={t.server as unknown as Provider} />
              </div>
            )}
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function Acts({ tool, reload }: { tool: Tool; reload: () => void }) {
  if (!tool.server) return null;
  const act = (name: string, done: string) => async () => {
    try {
      await send("POST", `/v1/tools/${path(tool.tool_id)}/${name}`);
      toast(done);
      reload();
    } catch (e) {
      toastError(e);
    }
  };
  const on = tool.server.enabled;
  return (
    <Menu label="Steer this tool" items={[
      mayEverywhere("operate") && !on && { name: "Enable", icon: "play", onClick: act("enable", "Enabled.") },
      mayEverywhere("operate") && on && { name: "Restart", icon: "again", onClick: act("restart", "It restarts.") },
      mayEverywhere("operate") && on && { name: "Disable", icon: "stop", onClick: act("disable", "Disabled.") },
      mayEverywhere("admin") && !on && { name: "Forget this tool", icon: "trash", danger: true, onClick: () => confirm({ title: `Forget ${tool.tool_id}?`, text: <p>The tool leaves the catalog with its approval. Its files and past runs stay.</p>, act: "Forget it", danger: true, run: async () => { await send("DELETE", `/v1/tools/${path(tool.tool_id)}`); location.assign(link("/tools")); } }) },
    ]} />
  );
}

function Quarantined({ tool, reload }: { tool: Tool; reload: () => void }) {
  const diff = useResource<ToolDiff>(`diff ${tool.tool_id}`, (s) => get(`/v1/tools/${path(tool.tool_id)}/diff`, {}, s));
  return (
    <Card title="Its definition changed since it was approved">
      <div class="col">
        <Note tone="warn">Runs of it are refused until somebody takes the change on. Read what is different: descriptions are what models act on.</Note>
        <Loaded of={diff}>{(d) => <><p>Changed: {d.changes.join(", ") || "it is new"}.</p><Diff label="What changed" before={d.pinned ? write(fromJs(d.pinned)) : ""} after={d.offered ? write(fromJs(d.offered)) : ""} /></>}</Loaded>
        {mayEverywhere("admin") && (
          <div class="row">
            <Button kind="primary" onClick={async () => { try { await send("POST", `/v1/tools/${path(tool.tool_id)}/approve`); toast("The change is taken on."); reload(); } catch (e) { toastError(e); } }}>Take the change on</Button>
            <span class="muted">Do nothing to keep it out.</span>
          </div>
        )}
      </div>
    </Card>
  );
}

export { seg };
