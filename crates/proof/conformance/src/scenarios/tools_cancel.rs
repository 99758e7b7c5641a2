//! Canceling calls of a tool that sleeps: in time, twice, too late, and at the very moment.

use std::time::Duration;

use serde_json::{Value, json};

use crate::findings::Findings;
use crate::launch::Setup;
use crate::session::{Session, message};

/// How long a canceled call may go on.
const DEADLINE: Duration = Duration::from_secs(1);
/// How often completion and cancel race.
const RACES: u64 = 20;

pub(super) async fn all(session: &mut Session, setup: &Setup, findings: &mut Findings) {
    in_time_and_twice(session, setup, findings).await;
    too_late(session, findings).await;
    races(session, findings).await;
}

/// Sends a cancel for a call.
pub(super) async fn cancel(session: &mut Session, call: &Value) {
    let deadline_ms = u64::try_from(DEADLINE.as_millis()).unwrap_or(u64::MAX);
    let call_id = &call["payload"]["call_id"];
    let payload = json!({ "call_id": call_id, "reason": "A check.", "deadline_ms": deadline_ms });
    let mut cancel = message("core.tool.cancel", payload);
    cancel["request_id"] = call["request_id"].clone();
    session.link.send(cancel).await;
}

fn call_id(call: &Value) -> &str {
    call["payload"]["call_id"].as_str().unwrap_or_default()
}

async fn in_time_and_twice(session: &mut Session, setup: &Setup, findings: &mut Findings) {
    let call = session.call("sleep", json!({ "ms": 60_000 }));
    session.link.send(call.clone()).await;
    cancel(session, &call).await;
    cancel(session, &call).await;
    let result = session.result_within(&call, DEADLINE + setup.options.slack).await;
    let canceled = result.is_some_and(|result| result["payload"]["status"] == "canceled");
    findings.check(130, canceled, "A canceled sleep did not end as canceled within a second.");
    let alive = session.answers().await;
    let once = alive && session.link.transcript().results(call_id(&call)) == 1;
    findings.check(134, once, "A sleep that was canceled twice did not end exactly once.");
}

async fn too_late(session: &mut Session, findings: &mut Findings) {
    let call = session.call("sleep", json!({ "ms": 1 }));
    session.link.send(call.clone()).await;
    session.result(&call).await;
    cancel(session, &call).await;
    let alive = session.answers().await;
    let seen = session.link.transcript();
    let accepted = seen.of_kind("agent.tool.cancel_ack").any(|line| {
        line.call_id() == Some(call_id(&call)) && line.message["payload"]["accepted"] == true
    });
    let kept = alive && !accepted && seen.results(call_id(&call)) == 1;
    findings.check(133, kept, "Canceling a finished call had a result, was accepted or ended it.");
}

/// Short sleeps canceled around their end: each has one result, whichever it is.
async fn races(session: &mut Session, findings: &mut Findings) {
    let mut calls = Vec::new();
    for race in 0..RACES {
        let call = session.call("sleep", json!({ "ms": race % 5 }));
        session.link.send(call.clone()).await;
        tokio::time::sleep(Duration::from_micros(race * 300)).await;
        cancel(session, &call).await;
        calls.push(call);
    }
    for call in &calls {
        let ended = session.result(call).await.is_some();
        findings.check(117, ended, "A call that was canceled near its end got no result.");
    }
    let alive = session.answers().await;
    let seen = session.link.transcript();
    let once = alive && calls.iter().all(|call| seen.results(call_id(call)) == 1);
    findings.check(131, once, "A call that was canceled near its end did not end exactly once.");
}
