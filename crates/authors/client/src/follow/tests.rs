//! Events over broken connections, restarts and refusals.

use serde_json::json;
use wharf_vocab::Code;

use super::*;
use crate::scripted::{Reply, Scripted, ScriptedClient as _};

fn text(seq: u64) -> String {
    let data = json!({"seq": seq, "run_id": "r", "at": "2026-11-15T09:00:00.000Z", "channel": "stdout", "text": "x"});
    format!("id: {seq}\nevent: text\ndata: {data}\n\n")
}

fn finished(seq: u64) -> String {
    let data = json!({
        "seq": seq, "at": "2026-11-15T09:00:00.000Z", "run_id": "r", "tool": "wharf/count", "world": "default",
        "mode": "real", "durability": "journal", "status": "succeeded", "attempt": 1,
        "cost_micro": 0, "created_at": "2026-11-15T09:00:00.000Z", "new_field": 7,
    });
    format!("id: {seq}\nevent: finished\ndata: {data}\n\n")
}

/// Follows to the end; gives the numbers of the events and what was said about the connection.
async fn follow(scripted: &Scripted, after: u64) -> (Vec<u64>, Vec<&'static str>) {
    let mut follower = Follower::new(scripted.client(), "r", Some("w"), after);
    let (mut events, mut said) = (Vec::new(), Vec::new());
    loop {
        match follower.next().await.expect("an update") {
            Update::Event(event) => {
                events.push(event.data["seq"].as_u64().expect("a number"));
                if event.end().is_some() {
                    return (events, said);
                }
            }
            Update::Disconnected => said.push("lost"),
            Update::Reconnected => said.push("back"),
        }
    }
}

#[tokio::test]
async fn a_dropped_stream_goes_on_after_the_last_event() {
    let mut scripted = Scripted::new();
    let mut replies = vec![
        // The third event is cut in the middle and comes again as a whole.
        Reply::Events(format!("{}{}id: 3\nevent: text\ndata: {{\"seq", text(1), text(2))),
        Reply::Break,
        // A core may send events again that were seen; they are not shown twice.
        Reply::Events(format!("{}{}{}", text(2), text(3), finished(4))),
    ]
    .into_iter();
    scripted.start(move |_| replies.next().unwrap_or(Reply::Break)).await;
    let (events, _) = follow(&scripted, 0).await;
    assert_eq!(events, [1, 2, 3, 4]);
    let lines: Vec<_> = scripted.seen().into_iter().map(|request| request.line).collect();
    let ask = |after| format!("GET /v1/runs/r/events?world=w&after={after}");
    assert_eq!(lines, [ask(0), ask(2), ask(2)]);
}

#[tokio::test]
async fn a_restarted_core_is_found_at_its_new_address() {
    let mut scripted = Scripted::new();
    scripted.start(|_| Reply::Events(text(1))).await;
    let mut follower = Follower::new(scripted.client(), "r", None, 0);
    assert!(matches!(follower.next().await, Ok(Update::Event(_))));
    scripted.stop().await;
    assert!(matches!(follower.next().await, Ok(Update::Disconnected)));
    scripted.start(|_| Reply::Events(format!("{}{}", text(2), finished(3)))).await;
    assert!(matches!(follower.next().await, Ok(Update::Reconnected)));
    assert!(matches!(follower.next().await, Ok(Update::Event(_))));
    let Ok(Update::Event(end)) = follower.next().await else { panic!("no end") };
    let (run, raw) = end.end().expect("the end");
    assert_eq!(run.run_id, "r");
    assert_eq!((raw.get("seq"), raw.get("at")), (None, None));
    assert_eq!(raw["new_field"], 7, "what this version does not know is kept");
}

#[tokio::test]
async fn a_core_that_is_stopping_is_waited_for() {
    let mut scripted = Scripted::new();
    let mut first = true;
    scripted
        .start(move |_| {
            if std::mem::replace(&mut first, false) {
                let error = json!({"code": "core.stopping", "message": "bye", "retryable": true});
                Reply::Json(503, json!({"error": error}))
            } else {
                Reply::Events(finished(1))
            }
        })
        .await;
    assert_eq!(follow(&scripted, 0).await, (vec![1], vec!["lost", "back"]));
}

#[tokio::test]
async fn a_run_that_is_gone_ends_the_following() {
    let mut scripted = Scripted::new();
    let error = json!({"code": "run.not_found", "message": "no such run", "retryable": false});
    scripted.start(move |_| Reply::Json(404, json!({"error": error.clone()}))).await;
    let mut follower = Follower::new(scripted.client(), "r", None, 0);
    let error = follower.next().await.expect_err("gone");
    assert!(error.is(Code::RunNotFound));
    assert_eq!(error.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn a_core_that_stays_away_is_given_up() {
    let mut scripted = Scripted::new();
    scripted.start(|_| Reply::Break).await.stop().await;
    let mut follower = Follower::new(scripted.client(), "r", None, 0);
    assert!(matches!(follower.next().await, Ok(Update::Disconnected)));
    let error = follower.next().await.expect_err("given up");
    assert!(error.is(Code::CoreUnreachable));
    assert!(error.message().contains("wharf runs watch r"), "{}", error.message());
}

#[tokio::test]
async fn events_of_a_later_version_are_passed_on() {
    let mut scripted = Scripted::new();
    scripted
        .start(|_| {
            let unknown = "event: telepathy\ndata: {\"seq\":1}\n\n";
            Reply::Events(format!("{unknown}{}", finished(2)))
        })
        .await;
    assert_eq!(follow(&scripted, 0).await.0, [1, 2]);
    assert_eq!(follow(&scripted, 1).await.0, [2]);
}
