//! T4: no mode means mock, and an unknown one never reaches the handler.

use serde_json::json;
use wharf_vocab::Object;

use super::judged;
use crate::findings::Findings;
use crate::run::frames::{request, run_id};
use crate::run::rules::how;
use crate::run::server::Server;
use crate::run::session::End;

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let explicit = request(&run, &Object::new());
    let mut without = explicit.clone();
    without["control"] = json!({ "run_id": run });
    let first = judged(server, &run, &without, findings).await;
    // The same run in mode mock is the same request, so it attaches; in another it would not.
    if server.is_full() && findings.kept(17) && first.outcome().is_some() {
        let again = server.exchange(&explicit).await;
        let wrong = format!("A run without a mode is not one of mode mock: it {}.", how(&again));
        findings.check(4, again.outcome() == first.outcome(), wrong);
    }
    for mode in [json!("dry"), json!("REAL"), json!(""), json!(1)] {
        let run = run_id();
        let mut ask = request(&run, &Object::new());
        ask["control"]["mode"] = mode.clone();
        let seen = server.exchange(&ask).await;
        let refused = match seen.outcome() {
            Some(outcome) => outcome != "success",
            None => matches!(seen.end, Some(End::Closed { code, .. }) if code != 1000),
        };
        let wrong = format!("A run of mode {mode} was not refused: it {}.", how(&seen));
        findings.check(4, refused, wrong);
        let started = format!("With the mode {mode} the handler had started.");
        findings.check(4, !seen.worked(), started);
    }
}
