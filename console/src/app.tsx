// The frame around every screen: navigation, who is signed in, how fresh what is shown is.
import { effect, signal } from "@preact/signals";
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, lastAnswer, waiting } from "./api/client";
import { awaySince, feed, startLive, stopLive } from "./api/live";
import { forgetAll, useResource } from "./api/resource";
import { coreChanged, may, mayEverywhere, session, signOut } from "./api/session";
import type { Ask, Page } from "./api/types";
import { span } from "./lib/format";
import { safe } from "./lib/text";
import { link, place, setQuery } from "./router";
import { SignIn } from "./screens/signin";
import { match } from "./screens/routes";
import { choice, choose } from "./theme";
import { Confirmations } from "./ui/dialog";
import { Icon, Logo, type IconName } from "./ui/icons";
import { Button, Empty, Menu, now, Note, zone } from "./ui/parts";
import { Palette, paletteOpen } from "./ui/palette";
import { toast, Toasts } from "./ui/toast";

/** How many asks are open, for the navigation and the title. */
export const asksOpen = signal(0);
/** What the current screen is about, for the title. */
export const titleOf = signal("");

effect(() => {
  const n = asksOpen.value;
  document.title = `${n > 0 ? `(${n}) ` : ""}${titleOf.value ? `${safe(titleOf.value)} · ` : ""}Wharf`;
});

export function App() {
  const state = session.value;
  useEffect(() => {
    if (state.at !== "in") return;
    const stop = startLive();
    return () => (stop(), stopLive());
  }, [state.at, state.at === "in" ? (state.me.session_id ?? state.me.grant) : ""]);
  useEffect(() => {
    if (state.at === "out") forgetAll();
  }, [state.at]);
  return (
    <>
      {state.at === "checking" && <Checking />}
      {state.at === "out" && <SignIn why={state.why} code={state.code} />}
      {state.at === "in" && <Shell />}
      <Toasts />
    </>
  );
}

function Checking() {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 800);
    return () => clearTimeout(timer);
  }, []);
  return (
    <main class="gate">
      <h1 class="sr">Wharf</h1>
      {slow && <p class="muted">Waiting for the core …</p>}
    </main>
  );
}

const NAV: { name: string; path: string; icon: IconName; may?: () => boolean; group?: string }[] = [
  { name: "Home", path: "/", icon: "home" },
  { name: "Inbox", path: "/inbox", icon: "inbox" },
  { name: "Runs", path: "/runs", icon: "runs" },
  { name: "Tools", path: "/tools", icon: "tool", group: "What there is" },
  { name: "Flows", path: "/flows", icon: "flow" },
  { name: "Providers", path: "/providers", icon: "provider" },
  { name: "Worlds", path: "/worlds", icon: "world" },
  { name: "Schedules", path: "/schedules", icon: "clock" },
  { name: "Triggers", path: "/triggers", icon: "hook" },
  { name: "Receivers", path: "/receivers", icon: "bell", may: () => may("admin") },
  { name: "Operators", path: "/operators", icon: "seat", may: () => mayEverywhere("operate") },
  { name: "Money", path: "/money", icon: "money", group: "Looking after it" },
  { name: "Audit", path: "/audit", icon: "audit", may: () => mayEverywhere("admin") },
  { name: "Tokens", path: "/tokens", icon: "key", may: () => may("admin") },
  { name: "System", path: "/system", icon: "system" },
];

function Shell() {
  const [menu, setMenu] = useState(false);
  const path = place.value.path;
  const inbox = useResource<Page<Ask>>("inbox-count", (s) => get("/v1/inbox", { limit: 200 }, s), { kinds: ["ASK"] });
  const open = inbox.data.value?.items.length ?? 0;
  useEffect(() => {
    if (open > asksOpen.peek() && inbox.at.value) notify(inbox.data.value?.items.at(-1));
    asksOpen.value = open;
  }, [open]);
  useEffect(() => setMenu(false), [path]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
        e.preventDefault();
        paletteOpen.value = !paletteOpen.value;
      } else if (e.key === "Escape") setMenu(false);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const fill = path === "/runs" || path === "/audit";
  return (
    <div class="shell">
      <a class="btn skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        Go to the content
      </a>
      <header class="top">
        <Button kind="quiet" icon="menu" label="Open the navigation" onClick={() => setMenu(true)} />
        <a class="brand" href={link("/")}>
          <Logo /> Wharf
        </a>
        <Button kind="quiet" icon="search" label="Search" onClick={() => (paletteOpen.value = true)} />
      </header>
      {menu && <button type="button" class="veil" aria-label="Close the navigation" onClick={() => setMenu(false)} />}
      <nav class={menu ? "side open" : "side"} aria-label="Screens">
        <a class="brand p3" href={link("/")}>
          <Logo /> Wharf
        </a>
        <button type="button" class="searchbtn" onClick={() => (paletteOpen.value = true)}>
          <Icon name="search" /> Search <kbd class="kbd">Ctrl K</kbd>
        </button>
        <ul>
          {NAV.filter((n) => !n.may || n.may()).map((n) => (
            <>
              {n.group && <li class="group">{n.group}</li>}
              <li>
                <a class="nav" href={link(n.path)} aria-current={isHere(path, n.path) ? "page" : undefined}>
                  <Icon name={n.icon} />
                  {n.name}
                  {n.path === "/inbox" && open > 0 && (
                    <span class="n">
                      {open >= 200 ? "200+" : open}
                      <span class="sr"> open</span>
                    </span>
                  )}
                </a>
              </li>
            </>
          ))}
        </ul>
        <Foot />
      </nav>
      <div class="grow">
        <Away />
        <Changed />
        <main class={fill ? "main fill" : "main"} id="main" tabIndex={-1}>
          <Boundary key={path}>
            <Current />
          </Boundary>
        </main>
      </div>
      <Palette />
      <Confirmations />
    </div>
  );
}

function isHere(path: string, nav: string): boolean {
  return nav === "/" ? path === "/" : path === nav || path.startsWith(`${nav}/`);
}

function Foot() {
  const me = session.value.at === "in" ? session.value.me : undefined;
  const f = feed.value;
  const themes = { system: "light", light: "dark", dark: "system" } as const;
  return (
    <div class="foot">
      <div class={`beat ${f === "live" ? "" : f === "off" || f === "starting" ? "off" : "away"}`}>
        <i aria-hidden="true" />
        {f === "live" ? "Live" : f === "off" ? "Read every few seconds" : f === "starting" ? "Connecting" : "Reconnecting"}
      </div>
      <div class="who">
        <div class="grow" title={me?.label ?? undefined}>
          {me?.label || me?.grant}
          {me?.version && <span class="muted"> · {me.version}</span>}
        </div>
        <Button kind="quiet" small icon={choice.value === "dark" ? "moon" : "sun"} label={`Colours: ${choice.value}. Switch to ${themes[choice.value]}.`} onClick={() => choose(themes[choice.value])} />
        <Menu
          label="You"
          left
          quiet
          items={[
            { name: zone() === "utc" ? "Show local times" : "Show times in UTC", icon: "clock", onClick: () => setQuery({ tz: zone() === "utc" ? undefined : "utc" }) },
            "Notification" in window && Notification.permission === "default" && { name: "Notify me of new asks", icon: "bell", onClick: askForNotifications },
            { name: keysOn.value ? "Switch single keys off" : "Switch single keys on", icon: "key", onClick: () => setKeys(!keysOn.value) },
            { name: "Sign out", icon: "out", onClick: () => signOut() },
          ]}
        />
      </div>
    </div>
  );
}

/** Whether single letters do something. */
export const keysOn = signal(localStorage.getItem("wharf.keys") !== "off");
function setKeys(on: boolean): void {
  keysOn.value = on;
  localStorage.setItem("wharf.keys", on ? "on" : "off");
}

async function askForNotifications(): Promise<void> {
  const answer = await Notification.requestPermission();
  toast(answer === "granted" ? "New asks are shown by your system while this page is open." : "The browser does not allow it.", answer === "granted" ? "ok" : "warn");
}

function notify(ask: Ask | undefined): void {
  if (!ask || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const n = new Notification(ask.kind === "approval" ? "An approval waits" : "A question waits", { body: safe(ask.title), tag: ask.ask_id });
  n.onclick = () => (window.focus(), n.close());
}

/** Says when what is shown may be old. Its age counts on; only that it is old is read out. */
function Away() {
  const since = awaySince.value;
  const asked = waiting.value;
  if (since === undefined || now.value - since < 2000) {
    if (asked === undefined || now.value - asked < 3000) return null;
    return (
      <section class="banner" aria-label="Connection">
        <span role="status">The core answers slowly.</span> What you see is {span(now.value - asked)} old.
      </section>
    );
  }
  return (
    <section class="banner" aria-label="Connection">
      <span role="status">Reconnecting.</span> What you see is {span(Math.max(0, now.value - lastAnswer.value))} old.
    </section>
  );
}

/** Says when the core is not the one any more that this page came from. */
function Changed() {
  const changed = coreChanged.value;
  if (!changed) return null;
  return (
    <div class="banner row wrap" role="status">
      <span class="grow">
        The core was changed from version {changed.from} to {changed.to} while this page was open. What you see may not fit it.
      </span>
      <Button small icon="again" onClick={() => location.reload()}>
        Load the page again
      </Button>
    </div>
  );
}

type Loaded = { at: string; screen: ComponentType<{ args: string[] }> };

function Current() {
  const path = place.value.path;
  const found = match(path);
  const at = found ? String(found.route.pattern) : "";
  const [loaded, setLoaded] = useState<Loaded>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!found) return;
    let gone = false;
    titleOf.value = found.route.title;
    found.route.load().then(
      (m) => !gone && setLoaded({ at, screen: m.default }),
      () => !gone && setFailed(true),
    );
    return () => void (gone = true);
  }, [at]);
  if (!found)
    return (
      <div class="screen narrow">
        <h1>There is nothing here</h1>
        <Empty icon="search" title="No screen has this address">
          <p>
            <a href={link("/")}>Go home</a>, or press Ctrl K to search.
          </p>
        </Empty>
      </div>
    );
  if (failed)
    return (
      <div class="screen narrow">
        <h1>This screen did not load</h1>
        <Note tone="warn">
          <p>The core may have another version now.</p>
          <Button icon="again" onClick={() => location.reload()}>
            Load the page again
          </Button>
        </Note>
      </div>
    );
  if (!loaded || loaded.at !== at) return null;
  const Screen = loaded.screen;
  return <Screen args={found.args} key={path} />;
}

/** One screen that fails does not take the others with it. */
class Boundary extends Component<{ children: ComponentChildren }, { error?: Error }> {
  override state: { error?: Error } = {};
  static override getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div class="screen narrow">
        <h1>This screen has failed</h1>
        <Note tone="bad">
          <p>{safe(this.state.error.message)}</p>
          <Button icon="again" onClick={() => this.setState({})}>
            Show it again
          </Button>
        </Note>
      </div>
    );
  }
}
