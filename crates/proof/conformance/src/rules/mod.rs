//! What holds in every session, judged by what was seen of it.
//!
//! One file per part of the protocol. A rule is silent where there is nothing to judge, so that
//! a requirement that never came up is shown as such.

mod calls;
mod envelope;
mod handshake;
mod health;
mod streams;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::findings::Findings;
use crate::transcript::Transcript;

/// Judges a session.
pub(crate) fn judge(seen: &Transcript, token: &str, findings: &mut Findings) {
    for (number, why) in &seen.faults {
        findings.fail(*number, why.clone());
    }
    envelope::judge(seen, token, findings);
    handshake::judge(seen, findings);
    if seen.lines.first().is_none_or(|line| line.kind() != "agent.hello") {
        // No session ever began, so nothing that follows belongs to one.
        return;
    }
    calls::judge(seen, findings);
    streams::judge(seen, findings);
    health::judge(seen, findings);
}

/// Whether a value is text with something in it.
fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}
