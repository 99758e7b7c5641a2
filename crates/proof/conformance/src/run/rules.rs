//! What must hold for every run that was asked for rightly and read to its end.

mod ending;
mod reports;
mod safe;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;

use super::frames::{is_final, is_partial, is_phase, kind};
use super::session::{End, Seen};
use crate::findings::Findings;

/// What a run was asked for, and how strictly it is judged.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// The run.
    pub(super) run_id: &'a str,
    /// What was sent, as text: what it contains is no secret of the server's.
    pub(super) sent: &'a str,
    /// Whether Wharf's additions are judged too.
    pub(super) full: bool,
    /// How long the Ack may take.
    pub(super) ack: Duration,
}

/// Judges a run.
pub(super) fn judge(seen: &Seen, asked: &Asked<'_>, findings: &mut Findings) {
    if let Some(End::Unopened(why)) = &seen.end {
        findings.fail(2, why);
        return;
    }
    strict_json(seen, findings);
    if !ack(seen, asked, findings) {
        return;
    }
    for message in seen.messages() {
        match kind(message) {
            "Log" => reports::log(message, asked, findings),
            "Event" => reports::event(message, asked, findings),
            _ => {}
        }
    }
    reports::partials(seen, asked, findings);
    ending::one_final(seen, asked, findings);
    for last in seen.messages().filter(|message| is_final(message)) {
        ending::form(last, asked, findings);
        ending::cost(last, findings);
        safe::error_text(last, asked.sent, findings);
    }
    if asked.full {
        numbers(seen, findings);
    }
}

fn strict_json(seen: &Seen, findings: &mut Findings) {
    for taken in &seen.frames {
        match &taken.value {
            Ok(_) => findings.pass(12),
            Err(why) => findings.fail(12, format!("A frame cannot be read. {why}")),
        }
    }
}

/// Whether the connection began as it must; what follows a wrong beginning is not judged.
fn ack(seen: &Seen, asked: &Asked<'_>, findings: &mut Findings) -> bool {
    let Some(first) = seen.frames.first() else {
        findings.fail(7, format!("A right request got no Ack; the connection {}.", how(seen)));
        return false;
    };
    let Ok(message) = &first.value else { return false };
    if kind(message) != "Ack" {
        findings.fail(7, format!("The first frame is {}, not an Ack.", an(kind(message))));
        return false;
    }
    let right = message["control"]["run_id"] == asked.run_id;
    findings.check(7, right, "The Ack does not name the run in control.run_id.");
    let bound = asked.ack.as_millis();
    let took = first.at.as_millis();
    let late = format!("The Ack took {took} ms, more than {bound} ms.");
    findings.check(7, took <= bound, late);
    let count = seen.messages().filter(|message| kind(message) == "Ack").count();
    findings.check(7, count == 1, format!("There were {count} Acks on one connection."));
    true
}

/// Numbers rise within an attempt. A request that was refused at once never became one, and a
/// sign of life belongs to the connection, not to the attempt.
fn numbers(seen: &Seen, findings: &mut Findings) {
    let refused = |message: &Value| is_final(message) && message["control"]["status"] == "error";
    if seen.messages().all(|message| kind(message) == "Ack" || refused(message)) {
        return;
    }
    let mut before = 0;
    for message in seen.messages() {
        if !matches!(kind(message), "Log" | "Event" | "Response") {
            continue;
        }
        let life = is_phase(message, "checkpoint") && message["data"]["progress"].is_null();
        match message["control"]["seq"].as_u64() {
            None if life => {}
            None => findings.fail(17, format!("{} has no control.seq.", a_frame(message))),
            Some(seq) if seq <= before => {
                findings.fail(17, format!("control.seq {seq} comes after {before}."));
            }
            Some(seq) => before = seq,
        }
    }
}

/// How a connection ended, to end a sentence with.
pub(super) fn how(seen: &Seen) -> String {
    match &seen.end {
        Some(End::Closed { code, reason }) if reason.is_empty() => {
            format!("was closed with {code}")
        }
        Some(End::Closed { code, reason }) => format!("was closed with {code} ({reason:?})"),
        Some(End::Dropped) => "was dropped without a close frame".to_owned(),
        Some(End::Endless) => "never stopped talking".to_owned(),
        Some(End::Unopened(_)) => "was not accepted".to_owned(),
        Some(End::Open) | None => "stayed open".to_owned(),
    }
}

fn a_frame(message: &Value) -> String {
    let name = match kind(message) {
        "Response" if is_partial(message) => "A partial Response".to_owned(),
        "Response" => "A final Response".to_owned(),
        other => an(other),
    };
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn an(kind: &str) -> String {
    let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    format!("{article} {kind}")
}
