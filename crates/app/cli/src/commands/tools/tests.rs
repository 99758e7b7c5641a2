use clap::Parser as _;
use serde_json::{Value, json};
use wharf_client::Locator;
use wharf_testkit::scripted::{Reply, Request, Scripted};
use wharf_vocab::{SandboxLevel, ServerKind};
use wharf_wire::rest_v1::ToolServer;

use super::*;
use crate::output::Output;

const SHOUT: &str = "text/shout@1";

/// A tool with a server of its own.
fn example(state: &str, server: &str) -> Value {
    json!({"tool_id": SHOUT, "name": "shout@1", "description": "shouts", "provider": SHOUT,
        "input_schema": {"type": "object", "required": ["text"],
            "properties": {"text": {"type": "string"}}},
        "side_effects": false, "requires_directive": false, "state": state,
        "server": {"kind": "handler", "state": server, "enabled": false, "folder": "/tools/shout",
            "command": ["./handler.py"], "added_at": "2026-11-15T09:00:00.000Z", "sandbox": "none",
            "permissions_requested": ["secret:use:KEY", "env:read:LANG"],
            "permissions": [
                {"permission": "secret:use:KEY", "meaning": "Use the secret KEY", "approved": false},
                {"permission": "env:read:LANG", "meaning": "See the variable LANG",
                    "approved": false}],
            "manifest_hash": "00ff"}})
}

fn typed(value: Value) -> Tool {
    serde_json::from_value(value).expect("a tool")
}

fn approved(state: &str, server: &str) -> Tool {
    let mut tool = typed(example(state, server));
    let server: &mut ToolServer = tool.server.as_mut().expect("a server");
    server.permissions_approved = Some(vec!["env:read:LANG".to_owned()]);
    server.permissions[1].approved = true;
    server.sandbox_wanted = Some(SandboxLevel::Standard);
    server.sandbox = SandboxLevel::Standard;
    server.isolation = Some(wharf_vocab::Isolation::Shared);
    server.pinned_files = [(".", "00"), ("handler.py", "0123456789abcdef0123")]
        .map(|(path, digest)| (path.to_owned(), digest.to_owned()))
        .into();
    tool
}

#[track_caller]
fn contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[test]
fn what_was_added_is_introduced_with_what_it_asks_for_and_how_to_approve_it() {
    let output = Output::new(false);
    let mut tool = typed(example("unavailable", "added"));
    tool.state_reason = Some("not approved".to_owned());
    contains_all(
        &add::text_of(&tool, false, output),
        &[
            "added text/shout@1, shouts\n",
            "it is served by the handler ./handler.py\n",
            "use the secret KEY",
            "approve it with\n  wharf tools approve text/shout@1\n",
            "or only some of it\n  wharf tools approve text/shout@1 --permission 'env:read:LANG'\n",
        ],
    );
    let known = add::text_of(&approved("disabled", "stopped"), false, output);
    assert_eq!(known, "text/shout@1 is known and has not changed; it is disabled\n");
    let text = add::text_of(&approved("available", "running"), true, output);
    contains_all(
        &text,
        &[
            "added and approved text/shout@1",
            "not approved\n",
            "it runs in the sandbox standard, one process for all runs\n",
            "it is available\n",
        ],
    );
    assert!(!text.contains("approve it with"), "{text}");
}

#[test]
fn a_tool_is_shown_with_its_server_and_what_to_do_next() {
    let output = Output::new(false);
    for (state, server, next) in [
        ("unavailable", "added", "  wharf tools approve text/shout@1\n"),
        ("disabled", "stopped", "  wharf tools enable text/shout@1\n"),
        ("unavailable", "crashed", "  wharf tools logs text/shout@1\n"),
        ("unavailable", "drifted", "  wharf tools add '/tools/shout' --approve\n"),
        ("quarantined", "running", "  wharf tools diff text/shout@1\n"),
    ] {
        let text = show::text_of(&typed(example(state, server)), output);
        contains_all(&text, &["served by", "the handler ./handler.py", "/tools/shout", next]);
        assert!(!text.contains("wharf run"), "{state}: nobody may call it: {text}");
    }
    let mut tool = approved("available", "running");
    let server = tool.server.as_mut().expect("a server");
    server.pid = Some(4711);
    server.drift = vec!["handler.py was changed".to_owned()];
    server.limits.calls_max = Some(4);
    let package = json!({"name": "humanize", "version": "4.9.0", "sha256": "ab".repeat(32)});
    let environment = json!({"interpreter": "/usr/bin/python3.12", "version": "3.12.1",
        "requirements": "requirements.txt", "key": "0fe1", "packages": [package]});
    server.environment = Some(serde_json::from_value(environment).expect("an environment"));
    contains_all(
        &show::text_of(&tool, output),
        &[
            "4711",
            "standard",
            "4 calls at once",
            "  handler.py  0123456789abcdef\n",
            "3.12.1 (/usr/bin/python3.12)",
            "packages of requirements.txt, in the environment 0fe1\n  humanize  4.9.0  sha256:abab",
            "it is not what was approved\n  handler.py was changed\n",
            "wharf run text/shout@1 text=",
        ],
    );
    tool.server = None;
    contains_all(
        &show::text_of(&tool, output),
        &["provider", "try\n  wharf run text/shout@1 text="],
    );
}

#[test]
fn each_kind_of_server_has_a_word() {
    let mut server = approved("available", "running").server.expect("a server");
    for (kind, command, words) in [
        (
            ServerKind::Program,
            vec!["./server", "--port", "{port}"],
            "the program ./server --port '{port}'",
        ),
        (ServerKind::Image, vec!["tool@sha256:00"], "the image tool@sha256:00"),
        (
            ServerKind::Remote,
            vec!["wss://tools.example.org/run"],
            "the server at wss://tools.example.org/run",
        ),
    ] {
        server.kind = kind;
        server.command = command.into_iter().map(str::to_owned).collect();
        assert_eq!(words::kind(&server), words);
    }
    server.kind = ServerKind::Remote;
    assert_eq!(words::terms(&server), "", "nobody fences in what runs elsewhere");
}

#[test]
fn an_approval_says_what_counts_and_whether_it_may_be_called() {
    let output = Output::new(false);
    let mut tool = approved("disabled", "stopped");
    let server = tool.server.clone().expect("a server");
    let text = approve::text_of(&tool, &server, output);
    assert!(text.starts_with("approved text/shout@1\n"), "{text}");
    assert!(text.ends_with("enable it with\n  wharf tools enable text/shout@1\n"), "{text}");
    tool.state = wharf_vocab::ToolState::Starting;
    let enabled = ToolServer { enabled: true, ..*server };
    assert!(approve::text_of(&tool, &enabled, output).ends_with("it is starting\n"));
}

#[test]
fn the_list_says_why_a_tool_cannot_be_called() {
    let mut tool = typed(example("unavailable", "added"));
    assert_eq!(about(&tool), "shouts");
    tool.state_reason = Some("not \u{1b}[2Japproved".to_owned());
    assert_eq!(about(&tool), "(not approved) shouts");
}

#[derive(Debug, clap::Parser)]
struct Typed {
    #[command(flatten)]
    args: approve::ToolsApproveArgs,
}

#[test]
fn an_approval_is_for_all_unless_permissions_are_named() {
    let request = |line: &str| {
        let words = ["approve", SHOUT].into_iter().chain(line.split_whitespace());
        let typed = Typed::try_parse_from(words).expect(line);
        typed.args.into_request(Some("00ff".to_owned()))
    };
    let all = request("");
    assert_eq!((all.all, all.permissions), (Some(true), None));
    assert_eq!(all.manifest_hash.as_deref(), Some("00ff"), "what was looked at");
    let some = request("--permission a:b --permission c:d --sandbox strict --memory 1Mi");
    assert_eq!(some.all, None);
    assert_eq!(some.permissions, Some(vec!["a:b".to_owned(), "c:d".to_owned()]));
    assert_eq!(some.sandbox, Some(SandboxLevel::Strict));
    assert_eq!(some.limits.and_then(|limits| limits.memory_bytes), Some(1 << 20));
}

/// A core that has one tool with a server of its own.
fn core(enabled: bool) -> impl FnMut(&Request) -> Reply + Send {
    move |request| {
        let mut tool = example("available", "running");
        tool["server"]["enabled"] = json!(enabled);
        match request.line.split('?').next() {
            Some("GET /v1/tools") => {
                Reply::Json(200, json!({"items": [tool], "next_cursor": null}))
            }
            Some("DELETE /v1/tools/text/shout@1") => Reply::Json(204, Value::Null),
            _ => Reply::Json(200, tool),
        }
    }
}

async fn removed(enabled: bool, words: &[&str]) -> (Result<Exit>, Vec<String>) {
    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        args: ToolsRemoveArgs,
    }
    let mut scripted = Scripted::new();
    scripted.start(core(enabled)).await;
    let typed = Typed::try_parse_from(["remove"].iter().chain(words)).expect("parses");
    let ended = remove(
        &typed.args,
        &Context { output: Output::new(false), locator: Locator::of_home(scripted.home()) },
    )
    .await;
    let asked = scripted.seen().into_iter().map(|request| request.line);
    (ended, asked.filter(|line| !line.starts_with("GET")).collect())
}

#[tokio::test]
async fn a_tool_that_is_enabled_is_disabled_before_it_is_removed() {
    let (ended, asked) = removed(false, &["shout@1"]).await;
    assert_eq!((ended, asked), (Ok(Exit::Done), vec!["DELETE /v1/tools/text/shout@1".to_owned()]));
    let (ended, asked) = removed(true, &["text/shout", "--yes"]).await;
    assert_eq!(ended, Ok(Exit::Done));
    assert_eq!(asked, ["POST /v1/tools/text/shout@1/disable", "DELETE /v1/tools/text/shout@1"]);
}

#[tokio::test]
async fn a_tool_is_found_by_a_part_of_its_id_and_what_is_unknown_is_left_to_the_core() {
    let mut scripted = Scripted::new();
    scripted.start(core(true)).await;
    let client = Client::new(Locator::of_home(scripted.home())).expect("a client");
    for part in [SHOUT, "text/", "shout@1", "text/shout"] {
        assert_eq!(find(&client, part).await.map(|id| id.to_string()), Ok(SHOUT.to_owned()));
    }
    let other = find(&client, "a/b").await.map(|id| id.to_string());
    assert_eq!(other, Ok("a/b".to_owned()));
    let none = find(&client, "telepathy").await.expect_err("refused");
    assert!(none.is(Code::ToolNotFound), "{none:?}");
}
