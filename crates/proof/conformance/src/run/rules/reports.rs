//! Logs, events and partial outputs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Asked, a_frame};
use crate::findings::Findings;
use crate::run::frames::is_partial;
use crate::run::session::Seen;

/// Seconds since 1970 are below this for thousands of years; milliseconds are not.
const SECONDS_MAX: f64 = 1e11;

pub(super) fn log(message: &Value, asked: &Asked<'_>, findings: &mut Findings) {
    names_the_run(message, asked, 8, findings);
    let data = &message["data"];
    findings.check(8, data["msg"].is_string(), "A Log has no text in data.msg.");
    let level = match &data["level"] {
        Value::String(level) => ["debug", "info", "warn", "error"].contains(&level.as_str()),
        Value::Null => !asked.full,
        _ => false,
    };
    findings.check(8, level, format!("A Log has the level {}.", data["level"]));
    let time = match &data["timestamp"] {
        Value::Null => !asked.full,
        time => time.as_f64().is_some_and(|time| (0.0..SECONDS_MAX).contains(&time)),
    };
    let wrong = format!("A Log has the timestamp {}, not Unix seconds.", data["timestamp"]);
    findings.check(8, time, wrong);
}

pub(super) fn event(message: &Value, asked: &Asked<'_>, findings: &mut Findings) {
    names_the_run(message, asked, 8, findings);
    let data = &message["data"];
    let phases = ["started", "checkpoint", "completed", "preempted"];
    let known = data["phase"].as_str().is_some_and(|phase| phases.contains(&phase));
    findings.check(8, known, format!("An Event has the phase {}.", data["phase"]));
    let progress = match &data["progress"] {
        Value::Null => true,
        progress => progress.as_f64().is_some_and(|part| (0.0..=1.0).contains(&part)),
    };
    let wrong = format!("An Event has the progress {}, not 0 to 1.", data["progress"]);
    findings.check(8, progress, wrong);
}

/// A frame may leave the run out in the original protocol, but never name another.
pub(super) fn names_the_run(
    message: &Value,
    asked: &Asked<'_>,
    number: u16,
    findings: &mut Findings,
) {
    let right = match &message["control"]["run_id"] {
        Value::Null => !asked.full,
        named => named == asked.run_id,
    };
    let frame = a_frame(message);
    findings.check(number, right, format!("{frame} does not name the run in control.run_id."));
}

/// Partial outputs are objects, and each text has all of what came before it.
pub(super) fn partials(seen: &Seen, asked: &Asked<'_>, findings: &mut Findings) {
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for message in seen.messages().filter(|message| is_partial(message)) {
        names_the_run(message, asked, 9, findings);
        let Some(outputs) = message["outputs"].as_object() else {
            findings.fail(9, "A partial Response has no object of outputs.");
            continue;
        };
        let wrong = message["control"]["status"] == "error" || !message["error"].is_null();
        findings.check(9, !wrong, "A partial Response speaks of an error.");
        for (key, value) in outputs {
            if let Some(text) = value.as_str() {
                texts.entry(key).or_default().push(text);
            }
        }
    }
    let Some(last) = seen.final_response() else { return };
    for (key, parts) in texts {
        let whole = last["outputs"][key].as_str();
        let deltas = parts.len() > 1
            && parts.last().copied() != whole
            && whole == Some(parts.concat().as_str());
        let wrong = format!("The parts of {key:?} have only what is new, not what came before.");
        findings.check(9, !deltas, wrong);
    }
}
