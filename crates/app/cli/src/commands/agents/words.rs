//! What an agent asks for, in words for whoever decides about it.

use wharf_wire::rest_v1::{Agent, AgentHealth};

use crate::commands::Output;
use crate::commands::providers::words;
use crate::plain;

/// What an agent asks for, one line each; what was approved is marked once anything was.
pub(super) fn requests(agent: &Agent, output: Output) -> String {
    let decided = agent.permissions_approved.is_some();
    let permissions = words::permissions(&agent.permissions, decided, output);
    format!("{permissions}{}", words::wishes(&agent.wishes, decided, output))
}

/// How to approve it, for someone who has not.
pub(super) fn how_to_approve(agent: &Agent) -> String {
    let command = format!("wharf agents approve {}", plain::line(&agent.agent_id));
    words::how_to_approve(&command, " --all", &agent.permissions_requested)
}

/// The state, and why.
pub(super) fn state(agent: &Agent) -> String {
    words::state(agent.state.as_str(), agent.reason.as_deref())
}

/// What it says of itself.
pub(super) fn health(health: &AgentHealth) -> String {
    let mut said =
        vec![health.status.to_string(), format!("{} calls under way", health.inflight_calls)];
    said.extend(health.details.iter().map(|(name, value)| format!("{name} {value}")));
    plain::line(&said.join(", "))
}

#[cfg(test)]
fn asked(permission: &str, meaning: &str) -> wharf_wire::rest_v1::AgentPermission {
    wharf_wire::rest_v1::AgentPermission {
        permission: permission.into(),
        meaning: meaning.into(),
        approved: false,
        narrowed_to: Vec::new(),
    }
}

/// An agent for tests.
#[cfg(test)]
pub(super) fn example(state: &str) -> Agent {
    Agent {
        agent_id: "dev.wharf.hello".parse().expect("an id"),
        state: wharf_vocab::ProviderState::parse(state).expect("a state"),
        reason: None,
        pid: None,
        launch_id: None,
        last_heartbeat: None,
        health: None,
        sandbox: wharf_vocab::SandboxLevel::None,
        tools: vec!["dev.wharf.hello/hello_world".parse().expect("an id")],
        name: "Hello".into(),
        version: "0.1.0".into(),
        description: "says hello".into(),
        folder: "/agents/hello".into(),
        command: vec!["./hello".into(), "two words".into()],
        added_at: "2026-11-15T09:00:00.000Z".parse().expect("a time"),
        permissions_requested: vec!["network:egress:example.dev".into(), "env:read:LANG".into()],
        permissions_approved: None,
        permissions: vec![
            asked("network:egress:example.dev", "Connect to example.dev"),
            asked("env:read:LANG", "See the variable LANG"),
        ],
        wishes: Vec::new(),
        sandbox_wanted: None,
        sandbox_notes: Vec::new(),
        isolation: None,
        instances: 0,
        limits: wharf_wire::rest_v1::AgentLimits::default(),
        limits_kept: std::collections::BTreeMap::new(),
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

    fn terms(agent: &Agent) -> String {
        words::terms(agent.sandbox_wanted, agent.isolation, &agent.limits)
    }

    #[test]
    fn what_was_approved_is_marked() {
        let output = Output::new(false);
        let mut agent = example("approved");
        let asked = requests(&agent, output);
        assert!(asked.starts_with("it asks to\n  connect to example.dev"), "{asked}");
        assert!(!asked.contains("approved"), "{asked}");
        agent.permissions_approved = Some(vec!["env:read:LANG".into()]);
        agent.permissions[1].approved = true;
        let marked = requests(&agent, output);
        let verdicts: Vec<bool> =
            marked.lines().skip(1).map(|line| line.ends_with("not approved")).collect();
        assert_eq!(verdicts, [true, false], "{marked}");
        agent.permissions[0].narrowed_to = vec!["network:egress:example.dev:443".into()];
        assert!(requests(&agent, output).contains("only network:egress:example.dev:443"));
        agent.permissions.clear();
        assert_eq!(requests(&agent, output), "it asks for no permissions\n");
    }

    #[test]
    fn terms_are_told_once_there_are_any() {
        let mut agent = example("approved");
        assert_eq!(terms(&agent), "");
        agent.sandbox_wanted = Some(wharf_vocab::SandboxLevel::Strict);
        agent.isolation = Some(wharf_vocab::Isolation::Run);
        agent.limits.calls_max = Some(4);
        let expect = "it runs in the sandbox strict, one process for each run\n\
                      within 4 calls at once\n";
        assert_eq!(terms(&agent), expect);
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
        assert_eq!(words::command(&agent.command), "./hello 'two words' 'it'\\''s'");
        agent.permissions = vec![asked("a:\u{1b}[2Jb", "do \u{1b}[2Jit")];
        assert!(!requests(&agent, Output::new(false)).contains('\u{1b}'));
    }
}
