//! What guards runs: gates, approvals that reach further, and proposals.

use serde_json::json;
use wharf_domain::run::{AttemptError, ChildrenAllowed};
use wharf_domain::{Audience, Gate};
use wharf_vocab::{Code, Digest, Executed, Fault};

use crate::stage::{CANARY, said};

/// A gate that a person must open.
pub(crate) fn gate() -> Option<Gate> {
    let reason = "The tool asks for an approval of every run.".to_owned();
    Some(Gate { audience: Audience::Person, reason, remember: false })
}

/// An approval of a child that holds for others, too.
pub(crate) fn allowed(tool: &str) -> ChildrenAllowed {
    ChildrenAllowed {
        tool: tool.parse().expect("a tool id"),
        tool_hash: Digest::of(&[tool.as_bytes()]),
        caller: "agent.acme".parse().expect("a grant id"),
        ask_id: "2aother".parse().expect("an ask id"),
        by: "grant:p".to_owned(),
    }
}

/// What a provider says that wants an approval before it acts.
pub(crate) fn proposes(what: &str) -> AttemptError {
    let proposal = json!({ "title": format!("Send {what}"), "to": CANARY });
    let code = Code::ToolDirectiveRequired;
    let fault = Fault::new(code, said(code)).with("proposal", proposal);
    AttemptError::Failed(fault, Executed::Maybe)
}
