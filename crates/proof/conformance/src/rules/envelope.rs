//! What holds for every message, whatever it says.

use std::collections::HashSet;

use serde_json::Value;

use super::is_text;
use crate::findings::Findings;
use crate::transcript::{Line, Transcript};

/// What stack traces of common languages look like.
const TRACES: &[&str] = &[
    "Traceback (most recent call last)",
    "stack backtrace:",
    "panicked at ",
    "goroutine 1 [",
    "\n    at ",
    "\n\tat ",
];

pub(super) fn judge(seen: &Transcript, token: &str, findings: &mut Findings) {
    let mut ids = HashSet::new();
    for (_, line) in seen.received() {
        // What bytes and frames broke is known already; the rest of them kept the rules.
        for number in [1, 3, 4, 12, 19, 26, 27, 32] {
            findings.pass(number);
        }
        let unused = line.message["id"].as_str().is_none_or(|id| ids.insert(id));
        findings.check(23, unused, "The agent used a message id twice.");
        let text = line.message.to_string();
        if line.kind() != "agent.hello" {
            let hidden = !text.contains(token);
            findings.check(52, hidden, "A message after the hello holds the session token.");
        }
        let escaped =
            |trace: &&&str| text.contains(&trace.replace('\n', "\\n").replace('\t', "\\t"));
        match TRACES.iter().find(escaped) {
            None => findings.pass(154),
            Some(_) => findings.fail(154, format!("An {} holds a stack trace.", line.kind())),
        }
        for error in [&line.message["error"], &line.message["payload"]["error"]] {
            judge_error(line, error, findings);
        }
    }
    judge_replies(seen, findings);
}

fn judge_error(line: &Line, error: &Value, findings: &mut Findings) {
    if error.is_null() {
        return;
    }
    let optional = |name: &str, fits: fn(&Value) -> bool| {
        error.get(name).is_none_or(|value| value.is_null() || fits(value))
    };
    let well_formed = is_text(&error["code"])
        && error["message"].is_string()
        && optional("details", Value::is_object)
        && optional("retryable", Value::is_boolean)
        && optional("where", Value::is_string);
    let why = format!("The error of an {} lacks a part or has one of the wrong form.", line.kind());
    findings.check(29, well_formed, why);
    let plain = error.get("debug").is_none();
    findings.check(30, plain, format!("The error of an {} has debug fields.", line.kind()));
}

/// Results, pongs and errors name the message they answer.
fn judge_replies(seen: &Transcript, findings: &mut Findings) {
    for (place, line) in seen.received() {
        let asked = |sent: &&Line| match line.kind() {
            "agent.tool.result" => {
                sent.kind() == "core.tool.call" && sent.call_id() == line.call_id()
            }
            "agent.pong" => sent.kind() == "core.ping",
            "agent.error" => true,
            _ => false,
        };
        let nameless = line.message.get("in_reply_to").is_none();
        if seen.garbled && nameless && line.kind() == "agent.error" {
            // It answers what could not be read, so there is no id to name.
            continue;
        }
        let before = &seen.lines[..place];
        let mut candidates = before.iter().filter(|sent| !sent.from_agent).filter(asked).peekable();
        if candidates.peek().is_none() {
            continue;
        }
        let named = candidates.any(|sent| sent.message["id"] == line.message["in_reply_to"]);
        let why = format!("The in_reply_to of an {} does not name what it answers.", line.kind());
        findings.check(37, named, why);
    }
}
