//! T13, T19 and T20: what shows only with a run that takes long.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wharf_vocab::Object;
use wharf_wire::run_v1::code;

use super::rule;
use crate::findings::Findings;
use crate::run::frames::{cancel, is_final, is_phase, kind, request, run_id};
use crate::run::rules::how;
use crate::run::server::Server;
use crate::run::session::{Seen, Session};

/// How long a run without its connection is watched for an end it should not have.
const GONE: Duration = Duration::from_millis(500);

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    let Some(inputs) = &server.options.slow_inputs else {
        for number in [13, 19, 20] {
            findings.not_applicable(number, "It needs a long run; give --slow-inputs.");
        }
        return;
    };
    canceled(server, inputs, findings).await;
    outlives(server, inputs, findings).await;
    superseded(server, inputs, findings).await;
    deadline(server, inputs, findings).await;
    silent(server, inputs, findings).await;
}

fn is_ack(message: &Value) -> bool {
    kind(message) == "Ack"
}

/// Begins a run and waits for its Ack.
async fn begin(server: &Server, ask: &Value) -> Option<Session> {
    let mut session = server.dial().await.ok()?;
    session.send(ask).await;
    session.read_until(server.options.reply, is_ack).await.then_some(session)
}

/// A Cancel frame ends a run as ERR_CANCELED, with a preempted Event before it.
async fn canceled(server: &Server, inputs: &Object, findings: &mut Findings) {
    let run = run_id();
    let ask = request(&run, inputs);
    let Some(mut session) = begin(server, &ask).await else { return };
    if session.seen().final_response().is_some() {
        findings.not_applicable(19, "The run of --slow-inputs ended at once.");
        return;
    }
    session.send(&cancel(&run)).await;
    session.read_to_end(server.options.canceled + server.options.slack).await;
    let seen = session.finish();
    let outcome = seen.ended_as();
    let wrong = format!("After a Cancel frame the run ended as {outcome}, not ERR_CANCELED.");
    if outcome != code::CANCELED {
        findings.fail(19, wrong);
        return;
    }
    let told = preempted_first(&seen);
    findings.check(19, told, "There was no preempted Event before the final of a canceled run.");
    rule(server, &run, &ask, &seen, findings);
}

fn preempted_first(seen: &Seen) -> bool {
    let told = seen.messages().position(|message| is_phase(message, "preempted"));
    told.is_some() && told < seen.messages().position(is_final)
}

/// A run goes on without its connection, and can be attached to again.
async fn outlives(server: &Server, inputs: &Object, findings: &mut Findings) {
    let run = run_id();
    let ask = request(&run, inputs);
    let Some(first) = begin(server, &ask).await else { return };
    drop(first);
    let Some(mut again) = begin(server, &ask).await else {
        findings.fail(19, "A run could not be attached to after its connection was gone.");
        return;
    };
    if again.read_until(GONE, is_final).await {
        let outcome = again.finish().ended_as();
        findings.fail(19, format!("A run whose connection was gone ended at once as {outcome}."));
        return;
    }
    again.send(&cancel(&run)).await;
    again.read_to_end(server.options.canceled + server.options.slack).await;
    let seen = again.finish();
    let right = seen.final_response().is_some();
    let wrong = format!("A run that was attached to again {} without a final.", how(&seen));
    findings.check(19, right, wrong);
}

/// A higher attempt cancels the one before it.
async fn superseded(server: &Server, inputs: &Object, findings: &mut Findings) {
    let run = run_id();
    let ask = request(&run, inputs);
    let Some(mut first) = begin(server, &ask).await else { return };
    let mut second = ask.clone();
    second["control"]["attempt"] = json!(2);
    let Some(mut later) = begin(server, &second).await else {
        findings.fail(17, "A second attempt got no Ack while the first was running.");
        return;
    };
    first.read_to_end(server.options.canceled + server.options.slack).await;
    let outcome = first.finish().ended_as();
    let right = outcome == code::CANCELED;
    findings.check(17, right, format!("A superseded attempt ended as {outcome}."));
    later.send(&cancel(&run)).await;
    later.read_to_end(server.options.canceled + server.options.slack).await;
}

async fn deadline(server: &Server, inputs: &Object, findings: &mut Findings) {
    let run = run_id();
    let mut ask = request(&run, inputs);
    ask["control"]["deadline_ms"] = json!(200);
    let Some(mut session) = begin(server, &ask).await else { return };
    session.read_to_end(server.options.canceled + server.options.slack).await;
    let ended = session.seen().final_response().is_some();
    if !ended {
        session.send(&cancel(&run)).await;
        session.read_to_end(server.options.canceled).await;
        findings.fail(20, "A run went on long after its deadline_ms.");
        return;
    }
    let outcome = session.finish().ended_as();
    let right = outcome == code::TIMEOUT;
    findings.check(20, right, format!("A run behind its deadline_ms ended as {outcome}."));
}

/// T13: something is said at least every ten seconds.
async fn silent(server: &Server, inputs: &Object, findings: &mut Findings) {
    if !server.options.slow {
        findings.not_applicable(13, "It takes many seconds; ask for it with --slow.");
        return;
    }
    let run = run_id();
    let Some(mut session) = begin(server, &request(&run, inputs)).await else { return };
    let bound = server.options.silence + server.options.slack * 2;
    let until = Instant::now() + bound * 2;
    let mut kept = true;
    while kept && Instant::now() < until {
        kept = session.next(bound).await.is_some();
    }
    let ended = session.seen().final_response().is_some();
    if ended {
        findings.not_applicable(13, "The run of --slow-inputs did not last long enough.");
    } else {
        let wrong = format!("Nothing came for {} s of a run.", bound.as_secs_f32());
        findings.check(13, kept, wrong);
        session.send(&cancel(&run)).await;
        session.read_to_end(server.options.canceled).await;
    }
}
