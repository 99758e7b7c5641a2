//! What an agent asks for, in words for whoever decides about it.

use wharf_wire::rest_v1::Agent;

use crate::output::Output;
use crate::plain;
use crate::table::Table;

/// A permission in plain words. One that nobody knows is shown as it stands.
pub(super) fn permission(text: &str) -> String {
    let mut parts = text.splitn(3, ':');
    let (domain, action) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let object = parts.next().filter(|object| !object.is_empty());
    let named = |what: &str, everything: &str| match object {
        None | Some("*" | "**") => everything.to_owned(),
        Some(object) => format!("{what} {object}"),
    };
    match (domain, action) {
        ("filesystem", "read") => named("read files in", "read all files"),
        ("filesystem", "write") => named("change files in", "change all files"),
        ("network", "egress") => named("connect to", "connect to any host"),
        ("database", "rw") => named("read and change the database", "read and change databases"),
        ("event", "publish") => named("send events", "send any event"),
        ("event", "subscribe") => named("receive events", "receive all events"),
        ("tool", "invoke") => match object.and_then(|object| object.strip_prefix("*/")) {
            Some(tool) => format!("run the tool {tool} of any provider"),
            None => named("run the tool", "run any tool"),
        },
        ("env", "read") => named("see the environment variable", "see your environment variables"),
        ("process", _) => named("start the program", "start other programs"),
        _ => format!("do what it calls {text}"),
    }
}

/// What an agent asks for, one line each; what was approved is marked once anything was.
pub(super) fn requests(agent: &Agent, output: Output) -> String {
    if agent.permissions_requested.is_empty() {
        return "it asks for no permissions\n".to_owned();
    }
    let mut table = Table::bare(output);
    for asked in &agent.permissions_requested {
        let words = format!("  {}", permission(asked));
        match &agent.permissions_approved {
            None => table.row([&words, asked]),
            Some(approved) => {
                let verdict = if approved.contains(asked) { "approved" } else { "not approved" };
                table.row([&words, asked, verdict]);
            }
        }
    }
    format!("it asks to\n{}", table.text())
}

/// How to approve it, for someone who has not.
pub(super) fn how_to_approve(agent: &Agent) -> String {
    let id = plain::line(&agent.agent_id);
    let mut text = format!("approve it with\n  wharf agents approve {id} --all\n");
    if let [first, _, ..] = agent.permissions_requested.as_slice() {
        let first = plain::line(first);
        text.push_str(&format!(
            "or only a part of it\n  wharf agents approve {id} --permission '{first}'\n"
        ));
    }
    text
}

/// The state, and why.
pub(super) fn state(agent: &Agent) -> String {
    let state = plain::line(&agent.state);
    match &agent.reason {
        Some(reason) => format!("{state}: {}", plain::cut(reason, 300)),
        None => state,
    }
}

/// What is started, as one would type it.
pub(super) fn command(agent: &Agent) -> String {
    let quoted = |word: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@=,".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", plain::line(word).replace('\'', "'\\''")),
        }
    };
    agent.command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// An agent for tests.
#[cfg(test)]
pub(super) fn example(state: &str) -> Agent {
    Agent {
        agent_id: "dev.wharf.hello".into(),
        state: state.into(),
        reason: None,
        pid: None,
        launch_id: None,
        last_heartbeat: None,
        sandbox: "none".into(),
        tools: vec!["dev.wharf.hello/hello_world".into()],
        name: "Hello".into(),
        version: "0.1.0".into(),
        description: "says hello".into(),
        folder: "/agents/hello".into(),
        command: vec!["./hello".into(), "two words".into()],
        added_at: "2026-11-15T09:00:00.000Z".into(),
        permissions_requested: vec!["network:egress:example.dev".into(), "env:read:LANG".into()],
        permissions_approved: None,
        permissions: Vec::new(),
        sandbox_wanted: None,
        sandbox_notes: Vec::new(),
        isolation: None,
        instances: 0,
        limits: wharf_wire::rest_v1::AgentLimits::default(),
        manifest_hash: String::new(),
        pinned_files: std::collections::BTreeMap::new(),
        drift: Vec::new(),
        quarantined: Vec::new(),
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_said_in_plain_words() {
        for (text, expect) in [
            ("filesystem:read:/srv/data/**", "read files in /srv/data/**"),
            ("filesystem:write:**", "change all files"),
            ("network:egress:api.example.dev:443", "connect to api.example.dev:443"),
            ("network:egress:*", "connect to any host"),
            ("tool:invoke:dev.example.echo/say", "run the tool dev.example.echo/say"),
            ("tool:invoke:*/say", "run the tool say of any provider"),
            ("tool:invoke:*", "run any tool"),
            ("env:read:LANG", "see the environment variable LANG"),
            ("process:spawn", "start other programs"),
            ("event:publish:a.b", "send events a.b"),
            ("mission:lead:mars", "do what it calls mission:lead:mars"),
            ("odd", "do what it calls odd"),
        ] {
            assert_eq!(permission(text), expect, "{text}");
        }
    }

    #[test]
    fn what_was_approved_is_marked() {
        let output = Output::new(false);
        let mut agent = example("approved");
        let asked = requests(&agent, output);
        assert!(asked.starts_with("it asks to\n  connect to example.dev"), "{asked}");
        assert!(!asked.contains("approved"), "{asked}");
        agent.permissions_approved = Some(vec!["env:read:LANG".into()]);
        let marked = requests(&agent, output);
        let verdicts: Vec<bool> =
            marked.lines().skip(1).map(|line| line.ends_with("not approved")).collect();
        assert_eq!(verdicts, [true, false], "{marked}");
        agent.permissions_requested.clear();
        assert_eq!(requests(&agent, output), "it asks for no permissions\n");
    }

    #[test]
    fn the_way_to_an_approval_can_be_typed() {
        let mut agent = example("added");
        let text = how_to_approve(&agent);
        assert!(text.contains("wharf agents approve dev.wharf.hello --all\n"));
        assert!(text.contains("--permission 'network:egress:example.dev'\n"));
        agent.permissions_requested.truncate(1);
        assert!(!how_to_approve(&agent).contains("--permission"));
    }

    #[test]
    fn nothing_of_an_agents_own_words_reaches_the_terminal_raw() {
        let mut agent = example("crashed");
        agent.reason = Some("\u{1b}[31mboom\nagain".into());
        assert_eq!(state(&agent), "crashed: boom again");
        agent.command.push("it's\u{1b}[2J".into());
        assert_eq!(command(&agent), "./hello 'two words' 'it'\\''s'");
        agent.permissions_requested = vec!["a:\u{1b}[2Jb".into()];
        assert!(!requests(&agent, Output::new(false)).contains('\u{1b}'));
    }
}
