//! T17 and T18: the same run over more than one connection.

use serde_json::{Value, json};

use super::{judged, rule};
use crate::findings::Findings;
use crate::run::frames::{request, run_id, with};
use crate::run::rules::how;
use crate::run::server::Server;
use crate::run::session::{End, Seen};

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let ask = request(&run, &server.options.inputs);
    let first = judged(server, &run, &ask, findings).await;
    if first.final_response().is_none() {
        return;
    }
    replayed(server, &run, &ask, &first, findings).await;
    resumed(server, &ask, &first, findings).await;
    conflict(server, &run, &ask, &first, findings).await;
    presigned_anew(server, findings).await;
    higher_attempt(server, &run, &ask, findings).await;
    two_watchers(server, findings).await;
    let count = numbered(&first).len();
    findings.pass_with(17, format!("{count} frames came again, with the same final Response."));
}

/// All that has a number.
fn numbered(seen: &Seen) -> Vec<&Value> {
    seen.messages().filter(|message| message["control"]["seq"].is_u64()).collect()
}

async fn replayed(server: &Server, run: &str, ask: &Value, first: &Seen, findings: &mut Findings) {
    let again = server.exchange(ask).await;
    if again.final_response() != first.final_response() {
        let wrong = format!("The same request again {} without the same final.", how(&again));
        findings.fail(17, wrong);
        return;
    }
    rule(server, run, ask, &again, findings);
    // Old frames may have been let go, but what comes again is what came before.
    let before = numbered(first);
    let same = numbered(&again).iter().all(|message| before.contains(message));
    findings.check(17, same, "The same request again gave frames that differ from the first.");
    findings.pass(17);
}

/// Only what comes after a number is sent.
async fn resumed(server: &Server, ask: &Value, first: &Seen, findings: &mut Findings) {
    let last = first.final_response().and_then(|last| last["control"]["seq"].as_u64());
    let Some(after) = last.and_then(|last| last.checked_sub(1)) else { return };
    let mut ask = ask.clone();
    ask["control"]["after"] = json!(after);
    let seen = server.exchange(&ask).await;
    let late = |message: &&Value| message["control"]["seq"].as_u64() > Some(after);
    let right = seen.final_response().is_some() && numbered(&seen).iter().all(late);
    let wrong = format!("With after {after} not exactly what comes behind it was sent.");
    findings.check(17, right, wrong);
}

/// Another request under the same run id is refused, and the first run is untouched.
async fn conflict(server: &Server, run: &str, ask: &Value, first: &Seen, findings: &mut Findings) {
    let other = request(run, &with(&server.options.inputs, "wharf_other", true));
    let seen = server.exchange(&other).await;
    let right = matches!(&seen.end, Some(End::Closed { code: 1008, reason })
        if reason.contains("conflict"));
    let wrong = format!("Another request under the same run id {}.", how(&seen));
    findings.check(17, right && seen.final_response().is_none(), wrong);
    let again = server.exchange(ask).await;
    let same = again.final_response() == first.final_response();
    findings.check(17, same, "A refused request changed the run it had the id of.");
}

/// A restarted core signs addresses anew; that is no other request.
async fn presigned_anew(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let signed = |signature: &str| {
        let link = format!("https://storage.invalid/a?signature={signature}");
        let mut ask = request(&run, &with(&server.options.inputs, "wharf_link", link));
        ask["control"]["refs"] = json!([]);
        ask
    };
    let first = server.exchange(&signed("1")).await;
    let again = server.exchange(&signed("2")).await;
    let right =
        first.final_response().is_some() && first.final_response() == again.final_response();
    let wrong = format!("The same request with an address signed anew {}.", how(&again));
    findings.check(17, right, wrong);
}

async fn higher_attempt(server: &Server, run: &str, ask: &Value, findings: &mut Findings) {
    let mut ask = ask.clone();
    ask["control"]["attempt"] = json!(2);
    let seen = server.exchange(&ask).await;
    if seen.final_response().is_some() {
        rule(server, run, &ask, &seen, findings);
    } else {
        findings.fail(17, format!("A second attempt got no final: it {}.", how(&seen)));
    }
}

/// T18: both see every frame.
async fn two_watchers(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let ask = request(&run, &server.options.inputs);
    let (one, two) = tokio::join!(server.exchange(&ask), server.exchange(&ask));
    let wrong = format!("Of two connections to one run one {}.", how(&two));
    let both = one.final_response().is_some() && two.final_response().is_some();
    findings.check(18, both, wrong);
    if both {
        let same = numbered(&one) == numbered(&two);
        findings.check(18, same, "Two connections to one run saw different frames.");
    }
}
