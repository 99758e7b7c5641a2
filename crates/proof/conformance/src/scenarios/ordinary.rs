//! A core as it should be, and an agent whose tools nobody knows: heartbeats, unknown messages,
//! calls of tools that do not exist, a goodbye.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;

use crate::Error;
use crate::findings::Findings;
use crate::launch::Setup;
use crate::session::{Session, fresh, message};

/// How long an agent may take to exit.
const EXIT_TIME_MAX: Duration = Duration::from_secs(5);
/// How many heartbeats are waited for.
const HEARTBEATS: usize = 4;

pub(super) async fn all(setup: &Setup) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let Some(mut session) = Session::open(setup, &mut findings).await? else {
        return Ok(findings);
    };
    // It went on after a welcome full of unknown fields.
    findings.pass(25);
    unknown_tools(&mut session, &mut findings).await;
    unusual_calls(&mut session, &mut findings).await;
    unknown_messages(&mut session, &mut findings).await;
    cancel_of_nothing(&mut session, &mut findings).await;
    heartbeats(&session, setup, &mut findings).await;
    goodbye(&mut session, setup, &mut findings).await;
    session.finish(&mut findings).await;
    Ok(findings)
}

fn code(result: Option<&Value>) -> &str {
    result.and_then(|result| result["payload"]["error"]["code"].as_str()).unwrap_or_default()
}

async fn unknown_tools(session: &mut Session, findings: &mut Findings) {
    let mut foreign = session.call_of_nothing();
    foreign["payload"]["tool_id"] = json!("dev.example.somebody-else/tool");
    for call in [session.call_of_nothing(), foreign] {
        let result = session.ask(call.clone()).await;
        findings.check(117, result.is_some(), "A call of an unknown tool got no result.");
        let refused = code(result.as_ref()) == "tool.not_found";
        findings.check(90, refused, "A call of an unknown tool did not end as tool.not_found.");
        again_after_its_end(session, call, findings).await;
    }
}

async fn again_after_its_end(session: &mut Session, mut call: Value, findings: &mut Findings) {
    // What belongs to the first time has arrived once a later call is answered.
    session.answers().await;
    let call_id = call["payload"]["call_id"].as_str().unwrap_or_default().to_owned();
    let before = session.link.transcript().results(&call_id);
    call["id"] = json!(fresh());
    session.link.send(call).await;
    let alive = session.answers().await;
    let mut seen = session.link.transcript();
    let kept = alive && seen.results(&call_id) == before;
    findings.check(92, kept, "A call sent again after its end was run again.");
    // What was run again is known for what it is and need not count as a second result as well.
    seen.keep_results(&call_id, before);
}

/// Calls in every form a core may give them.
async fn unusual_calls(session: &mut Session, findings: &mut Findings) {
    let mut wide = session.call_of_nothing();
    wide["request_id"] = json!("é € 😀");
    let echoed = session.ask(wide).await.is_some_and(|result| result["request_id"] == "é € 😀");
    findings.check(2, echoed, "Text beyond ASCII did not come back as it was sent.");

    let mut later = session.call_of_nothing();
    later["x_later"] = json!({ "unknown": true });
    later["payload"]["x_later"] = json!([1, 2, 3]);
    let taken = session.ask(later).await.is_some();
    findings.check(25, taken, "A call with unknown fields got no result.");

    let mut elsewhere = session.call_of_nothing();
    elsewhere["ts"] = json!("2020-02-29T23:59:59.123456+05:30");
    let taken = session.ask(elsewhere).await.is_some();
    findings.check(22, taken, "A call whose ts has an offset and a fraction got no result.");

    let slow = session.call_of_nothing();
    session.link.send_slowly(slow.clone()).await;
    let taken = session.result(&slow).await.is_some();
    findings.check(6, taken, "A call that came byte by byte got no result.");
    let together: Vec<Value> = (0..3).map(|_| session.call_of_nothing()).collect();
    session.link.send_together(together.clone()).await;
    for call in &together {
        let taken = session.result(call).await.is_some();
        findings.check(6, taken, "One of three calls that came at once got no result.");
    }

    let mut large = session.call_of_nothing();
    large["payload"]["x_later"] = json!("");
    let padding = FRAME_BYTES_MAX as usize - large.to_string().len();
    large["payload"]["x_later"] = json!("x".repeat(padding));
    let taken = session.ask(large).await.is_some();
    findings.check(8, taken, "A call of exactly 4 MiB got no result.");
}

async fn unknown_messages(session: &mut Session, findings: &mut Findings) {
    let mut question = message("core.wharf_conformance.question", json!({}));
    question["request_id"] = json!(fresh());
    session.link.send(question.clone()).await;
    let reply = session.reply_to(&question).await.unwrap_or_default();
    let refused = reply["error"]["code"] == "protocol.unknown_type";
    findings.check(148, refused, "An unknown request did not get the error protocol.unknown_type.");

    let notice = message("core.wharf_conformance.notice", json!({}));
    session.link.send(notice.clone()).await;
    let mut error = message("core.error", json!({}));
    error["request_id"] = json!(fresh());
    error["error"] = json!({ "code": "protocol.malformed", "message": "An error of the core." });
    session.link.send(error.clone()).await;
    let ping = message("core.ping", json!({}));
    session.link.send(ping.clone()).await;

    let alive = session.answers().await;
    let answered = |to: &Value| {
        let id = to["id"].as_str().unwrap_or_default();
        session.link.transcript().reply(id).is_some()
    };
    let ignored = alive && !answered(&notice);
    findings.check(149, ignored, "An unknown notice was answered or ended the connection.");
    findings.check(148, alive, "The connection did not survive an unknown request.");
    let quiet = alive && !answered(&error);
    findings.check(150, quiet, "An error was answered or ended the connection.");
    let pongs = session.link.transcript().of_kind("agent.pong").count();
    match pongs {
        0 => findings.not_applicable(147, "The agent does not answer pings, which it need not."),
        count => findings.check(147, count == 1, "One ping got several pongs."),
    }
}

async fn cancel_of_nothing(session: &mut Session, findings: &mut Findings) {
    let call_id = fresh();
    let cancel = message("core.tool.cancel", json!({ "call_id": call_id, "deadline_ms": 1000 }));
    session.link.send(cancel).await;
    let alive = session.answers().await;
    let seen = session.link.transcript();
    let accepted = seen.of_kind("agent.tool.cancel_ack").any(|line| {
        line.call_id() == Some(&call_id) && line.message["payload"]["accepted"] == true
    });
    let kept = alive && !accepted && seen.result(&call_id).is_none();
    findings.check(
        133,
        kept,
        "Canceling a call nobody made had a result, was accepted or ended it.",
    );
}

/// Whether heartbeats come at once and keep their distance.
async fn heartbeats(session: &Session, setup: &Setup, findings: &mut Findings) {
    let (interval, slack) = (setup.options.heartbeat, setup.options.slack);
    let late = interval.mul_f64(1.2) + slack;
    let patience = late * u32::try_from(HEARTBEATS).unwrap_or(u32::MAX);
    let enough = |seen: &crate::transcript::Transcript| {
        (seen.of_kind("agent.heartbeat").count() >= HEARTBEATS).then_some(())
    };
    session.link.wait(patience, enough).await;
    let seen = session.link.transcript();
    let welcomed = seen.lines.iter().find(|line| line.kind() == "core.welcome").map(|l| l.at);
    let times: Vec<_> = seen.of_kind("agent.heartbeat").map(|line| line.at).collect();
    let (Some(welcomed), Some(first)) = (welcomed, times.first()) else {
        findings.fail(139, "The agent sends no heartbeats.");
        return;
    };
    let in_time = first.duration_since(welcomed) <= interval + slack;
    findings.check(139, in_time, "The first heartbeat came later than one interval.");
    let gap = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).max();
    let steady = times.len() >= HEARTBEATS && gap.is_none_or(|gap| gap <= late);
    findings.check(139, steady, "Heartbeats come more than 20 % later than their interval.");
    // Delays even out over several beats, so that too many of them mean too short an interval.
    let span = times.last().map_or(Duration::ZERO, |last| last.duration_since(*first)) + slack;
    let most = span.as_secs_f64() / interval.mul_f64(0.8).as_secs_f64() + 1.0;
    let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
    let calm = f64::from(count) <= most.ceil();
    findings.check(139, calm, "Heartbeats come more than 20 % earlier than their interval.");
}

async fn goodbye(session: &mut Session, setup: &Setup, findings: &mut Findings) {
    let payload = json!({ "reason": "The check is over.", "x_later": 1 });
    session.link.send(message("core.goodbye", payload)).await;
    let ended = session.launch.exit(EXIT_TIME_MAX + setup.options.slack).await;
    findings.check(64, ended.is_some(), "The agent did not exit within 5 seconds of a goodbye.");
}
