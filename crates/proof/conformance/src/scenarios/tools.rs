//! An agent that offers the tools of the reference agents, or some of them: what can only be
//! seen when it is known what a tool does.

use std::time::Duration;

use serde_json::{Value, json};

use super::{tools_cancel, tools_invoke};
use crate::Error;
use crate::findings::Findings;
use crate::launch::Setup;
use crate::session::{Session, fresh};
use crate::transcript::Transcript;

/// More calls than an agent takes at once by default.
const FLOOD: usize = 300;
/// The most that a call may stream before a core ends it.
const STREAM_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Each tool with what cannot be checked without it.
const NEEDS: &[(&str, &[u16])] = &[
    ("hello_world", &[39]),
    ("stream_counter", &[105, 107, 109, 168]),
    ("sleep", &[17, 91, 94, 123, 130, 134, 137]),
    ("invalid_input", &[88]),
    ("large_output", &[113]),
    ("relay", &[159]),
];

pub(super) async fn all(setup: &Setup) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let Some(mut session) = Session::open(setup, &mut findings).await? else {
        return Ok(findings);
    };
    for (name, numbers) in NEEDS {
        if session.offers(name) {
            continue;
        }
        for number in *numbers {
            findings.not_applicable(*number, format!("The agent does not offer the tool {name}."));
        }
    }
    if session.offers("hello_world") {
        greetings(&mut session, &mut findings).await;
    }
    if session.offers("stream_counter") {
        counting(&mut session, &mut findings).await;
    }
    if session.offers("invalid_input") {
        wrong_input(&mut session, &mut findings).await;
    }
    if session.offers("large_output") {
        large_output(&mut session, &mut findings).await;
    }
    if session.offers("relay") {
        tools_invoke::all(&mut session, &mut findings).await;
    }
    if session.offers("sleep") {
        reverse_order(&mut session, &mut findings).await;
        repeated_in_flight(&mut session, &mut findings).await;
        heartbeats_while_busy(&mut session, setup, &mut findings).await;
        tools_cancel::all(&mut session, setup, &mut findings).await;
        flood(&mut session, &mut findings).await;
    }
    session.finish(&mut findings).await;
    Ok(findings)
}

fn succeeded(result: Option<&Value>) -> bool {
    result.is_some_and(|result| result["payload"]["status"] == "succeeded")
}

async fn greetings(session: &mut Session, findings: &mut Findings) {
    let call = session.call("hello_world", json!({ "name": "Zoë 世界 🚢" }));
    let result = session.ask(call).await.unwrap_or_default();
    let named = result["payload"]["output"].to_string().contains("Zoë 世界 🚢");
    findings.check(2, named, "A greeting does not hold the name as it was sent.");
    let mut outputs = Vec::new();
    for kind in ["human", "agent", "system"] {
        let mut call = session.call("hello_world", json!({ "name": "you" }));
        call["actor"] = json!({ "type": kind, "id": "somebody" });
        call["payload"]["caller"] = json!({ "type": kind, "id": "somebody" });
        outputs.push(session.ask(call).await.map(|result| result["payload"]["output"].clone()));
    }
    let same = outputs[0].is_some() && outputs.iter().all(|output| *output == outputs[0]);
    findings.check(39, same, "The outcome of a call changed with who made it.");
}

async fn counting(session: &mut Session, findings: &mut Findings) {
    let call = session.call("stream_counter", json!({ "n": 5, "delay_ms": 1 }));
    let result = session.ask(call.clone()).await;
    findings.check(117, succeeded(result.as_ref()), "stream_counter did not succeed.");
    let call_id = call["payload"]["call_id"].as_str();
    let seen = session.link.transcript();
    let chunks = seen.of_kind("agent.tool.stream").filter(|line| line.call_id() == call_id).count();
    findings.check(105, chunks >= 5, "stream_counter streamed less than it counted.");
}

async fn wrong_input(session: &mut Session, findings: &mut Findings) {
    for input in [json!({ "must_be": "text" }), json!({ "must_be": 1.5 }), json!({})] {
        let call = session.call("invalid_input", input);
        let result = session.ask(call).await.unwrap_or_default();
        let refused = result["payload"]["status"] == "failed"
            && result["payload"]["error"]["code"] == "tool.invalid_input";
        findings.check(88, refused, "Wrong input did not fail as tool.invalid_input.");
    }
    let call = session.call("invalid_input", json!({ "must_be": 7 }));
    let result = session.ask(call).await;
    findings.check(88, succeeded(result.as_ref()), "Right input did not succeed.");
}

/// Far more than fits is asked for: what comes is less, and says so.
async fn large_output(session: &mut Session, findings: &mut Findings) {
    let call = session.call("large_output", json!({ "bytes": 64 * 1024 * 1024 }));
    let result = session.ask(call.clone()).await;
    let call_id = call["payload"]["call_id"].as_str();
    let seen = session.link.transcript();
    let chunks: Vec<String> = seen
        .of_kind("agent.tool.stream")
        .filter(|line| line.call_id() == call_id)
        .map(|line| line.message["payload"]["data"].to_string())
        .collect();
    let bounded = chunks.iter().map(String::len).sum::<usize>() <= STREAM_BYTES_MAX;
    findings.check(113, result.is_some() && bounded, "A large output has no end or no bound.");
    let payload = result.map(|result| result["payload"].to_string()).unwrap_or_default();
    let said = [Some(&payload), chunks.last()];
    let marks = ["truncat", "\"path\"", "\"reference\"", "\"ref\"", "output_too_large"];
    let marked = said.into_iter().flatten().any(|text| marks.iter().any(|m| text.contains(m)));
    findings.check(113, marked, "A large output does not say that it was cut or where it is.");
}

/// The call that was made first ends last.
async fn reverse_order(session: &mut Session, findings: &mut Findings) {
    let long = session.call("sleep", json!({ "ms": 400 }));
    let short = session.call("sleep", json!({ "ms": 1 }));
    session.link.send(long.clone()).await;
    session.link.send(short.clone()).await;
    for call in [&short, &long] {
        let result = session.result(call).await;
        let own = succeeded(result.as_ref())
            && result.is_some_and(|result| result["request_id"] == call["request_id"]);
        findings.check(17, own, "Of two calls at once one got no result of its own.");
    }
}

async fn repeated_in_flight(session: &mut Session, findings: &mut Findings) {
    let call = session.call("sleep", json!({ "ms": 300 }));
    let mut again = call.clone();
    again["id"] = json!(fresh());
    session.link.send(call.clone()).await;
    session.link.send(again.clone()).await;
    let reply = session.reply_to(&again).await.unwrap_or_default();
    let refused = reply["type"] != "agent.tool.result" && reply["error"]["code"].is_string();
    findings.check(91, refused, "A call sent twice was not answered by an error the second time.");
    let result = session.result(&call).await;
    session.answers().await;
    let call_id = call["payload"]["call_id"].as_str().unwrap_or_default();
    let mut seen = session.link.transcript();
    let once = succeeded(result.as_ref()) && seen.results(call_id) == 1;
    findings.check(91, once, "A call sent twice did not end exactly once.");
    seen.keep_results(call_id, 1);
}

/// A tool that blocks stops no heartbeat, and the heartbeat counts it.
async fn heartbeats_while_busy(session: &mut Session, setup: &Setup, findings: &mut Findings) {
    let interval = setup.options.heartbeat;
    let within = interval.mul_f64(2.4) + setup.options.slack;
    let call = session.call("sleep", json!({ "ms": 60_000 }));
    session.link.send(call.clone()).await;
    // An answered call behind it shows that the sleep has begun.
    session.answers().await;
    let before = session.link.transcript().of_kind("agent.heartbeat").count();
    // The first one may have been counted before the call came, and be sent only now.
    let next = |seen: &Transcript| {
        let counts: Vec<_> = seen
            .of_kind("agent.heartbeat")
            .skip(before)
            .map(|beat| beat.message["payload"]["inflight_calls"].as_u64())
            .collect();
        (counts.contains(&Some(1)) || counts.len() >= 2).then_some(counts)
    };
    let counts = session.link.wait(within, next).await;
    findings.check(139, counts.is_some(), "Heartbeats did not keep coming while a tool was busy.");
    if let Some(counts) = counts {
        let counted = counts.contains(&Some(1));
        findings.check(140, counted, "Heartbeats do not count the one call that is open.");
    }
    tools_cancel::cancel(session, &call).await;
    let ended = session.result(&call).await.is_some();
    findings.check(117, ended, "A canceled call got no result.");
}

/// More calls at once than are allowed: each ends, one way or the other, and the agent lives.
async fn flood(session: &mut Session, findings: &mut Findings) {
    let calls: Vec<Value> =
        (0..FLOOD).map(|_| session.call("sleep", json!({ "ms": 200 }))).collect();
    session.link.send_together(calls.clone()).await;
    let patience = session.reply + Duration::from_secs(10);
    let mut kept = true;
    for call in &calls {
        let result = session.result_within(call, patience).await.unwrap_or_default();
        let busy = result["payload"]["error"]["code"] == "tool.busy";
        kept &= busy || succeeded(Some(&result));
        if !kept {
            break;
        }
    }
    let alive = session.answers().await;
    findings.check(94, kept && alive, "Of many calls at once not each succeeded or was tool.busy.");
}
