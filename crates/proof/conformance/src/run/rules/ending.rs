//! The end of a run: one final Response, its form, its cost, and the close.

use serde_json::Value;

use super::reports::names_the_run;
use super::{Asked, a_frame, how};
use crate::findings::Findings;
use crate::run::frames::{is_final, is_phase};
use crate::run::session::{End, Seen};

/// Exactly one, then at most a completed Event, then the close code 1000.
pub(super) fn one_final(seen: &Seen, asked: &Asked<'_>, findings: &mut Findings) {
    let messages: Vec<&Value> = seen.messages().collect();
    let Some(at) = messages.iter().position(|message| is_final(message)) else {
        let wrong = format!("A run had no final Response; the connection {}.", how(seen));
        findings.fail(10, wrong);
        return;
    };
    let after = &messages[at + 1..];
    if let Some(message) = after.iter().find(|message| !is_phase(message, "completed")) {
        findings.fail(10, format!("{} came after the final Response.", a_frame(message)));
    }
    findings.check(10, after.len() <= 1, "More than one frame came after the final Response.");
    let closed = matches!(seen.end, Some(End::Closed { code: 1000, .. }));
    let wrong = format!("After the final Response the connection {}, not with 1000.", how(seen));
    findings.check(10, closed, wrong);
    names_the_run(messages[at], asked, 10, findings);
}

/// Status, outputs, and an error exactly when it went wrong.
pub(super) fn form(last: &Value, asked: &Asked<'_>, findings: &mut Findings) {
    let status = last["control"]["status"].as_str();
    let known = matches!(status, Some("success" | "error"));
    let wrong = format!("A final Response has the status {}.", last["control"]["status"]);
    findings.check(10, known, wrong);
    let outputs = last["outputs"].is_object() || (!asked.full && last["outputs"].is_null());
    findings.check(10, outputs, "A final Response has no object of outputs.");
    let error = &last["error"];
    if status == Some("error") {
        let code = error["code"].as_str().is_some_and(|code| !code.is_empty());
        let told = code && error["message"].is_string();
        findings.check(10, told, "A final Response with an error has no error.code and message.");
    } else {
        findings.check(10, error.is_null(), "A final Response of a success carries an error.");
    }
}

/// A whole number of micro-dollars that fits into 64 bits.
pub(super) fn cost(last: &Value, findings: &mut Findings) {
    let cost = &last["control"]["cost_micro"];
    let whole = match cost.as_f64() {
        _ if cost.as_u64().is_some_and(|cost| i64::try_from(cost).is_ok()) => true,
        // Common formulas yield a float without a fraction.
        Some(float) if cost.is_f64() => {
            float >= 0.0 && float.fract() == 0.0 && float < 9_007_199_254_740_992.0
        }
        _ => false,
    };
    findings.check(11, whole, format!("A final Response has the cost_micro {cost}."));
}
