//! What comes with runs: gates, approvals that reach further, proposals, and files.

use serde_json::json;
use wharf_domain::run::{AttemptError, ChildrenAllowed};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Actor, Artifact, Audience, Delivery, Gate, Metered, Move};
use wharf_vocab::{AttemptId, Code, Digest, Direction, Executed, Fault, GrantId};

use crate::stage::{CANARY, run_key, said};

/// A gate that a person must open.
pub(crate) fn gate() -> Option<Gate> {
    let reason = "The tool asks for an approval of every run.".to_owned();
    Some(Gate { audience: Audience::Person, reason, remember: false, patience: None })
}

/// An approval of a child that holds for others, too.
pub(crate) fn allowed(tool: &str) -> ChildrenAllowed {
    ChildrenAllowed {
        tool: tool.parse().expect("a tool id"),
        tool_hash: Digest::of(&[tool.as_bytes()]),
        caller: "agent.acme".parse().expect("a grant id"),
        ask_id: "2aother".parse().expect("an ask id"),
        by: Actor::from(&GrantId::new("p").expect("valid")),
    }
}

/// What a provider says that wants an approval before it acts.
pub(crate) fn proposes(what: &str) -> AttemptError {
    let proposal = json!({ "title": format!("Send {what}"), "to": CANARY });
    let code = Code::ToolDirectiveRequired;
    let fault = Fault::new(code, said(code)).with("proposal", proposal);
    AttemptError::Failed(fault, Executed::Maybe)
}

/// A file that an attempt wrote where nobody looks, and that belongs to the world.
pub(crate) fn staged(attempt: &AttemptId) -> Delivery {
    let key = run_key();
    let to = WorldPath::parse(&format!("/{CANARY}/report.json")).expect("a path");
    let from = WorldPath::staged(&key.run, attempt, 0);
    Delivery {
        artifacts: vec![Artifact {
            world: key.world,
            path: to.clone(),
            bytes: 7,
            b3: None,
            media_type: to.media_type().to_owned(),
            run: Some(key.run),
            key: Some("report".to_owned()),
            direction: Direction::Out,
        }],
        moves: vec![Move { from, to }],
        metered: Metered { cpu_ms: Some(11), bytes_out: 7, ..Metered::default() },
        given: Some(Digest::of(&[b"given"])),
    }
}
