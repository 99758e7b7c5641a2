//! Event streams: whole, in order, from any point.

use serde_json::json;
use wharf_wire::rest_v1::Event;

use crate::support::Edge;
use crate::support::client::Message;

fn names(events: &[Message]) -> Vec<&str> {
    events.iter().map(|message| message.event.as_str()).collect()
}

#[tokio::test]
async fn a_run_is_told_from_beginning_to_end() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/count", json!({"n": 3, "delay_ms": 1})).await;
    let events = edge.events(&run, "").await.rest().await;
    assert_eq!(names(&events)[..2], ["queued", "started"]);
    let text: String = events.iter().filter_map(|message| message.data["text"].as_str()).collect();
    assert_eq!(text, "1\n2\n3\n");
    let last = events.last().expect("events");
    assert_eq!(last.event, "finished");
    assert_eq!(last.data["outputs"], json!({"n": 3, "sum": 6}));
    for message in &events {
        assert_eq!(message.data["seq"].as_u64(), message.id);
        assert_eq!(message.data["run_id"], run);
        assert!(message.data["at"].is_string());
        let told = Event::parse(&message.event, &message.data.to_string());
        assert!(told.expect("well-formed").is_some(), "{message:?}");
    }
    let ids: Vec<_> = events.iter().map(|message| message.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[tokio::test]
async fn a_stream_resumes_behind_any_number() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/count", json!({"n": 5, "delay_ms": 1})).await;
    let all = edge.events(&run, "").await.rest().await;
    let end = all.last().and_then(|message| message.id).expect("a number");
    for after in 0..=end + 2 {
        let expect: Vec<_> =
            all.iter().filter(|message| message.id > Some(after)).cloned().collect();
        let found = edge.events(&run, &format!("?after={after}")).await.rest().await;
        assert_eq!(found, expect, "?after={after}");
        let path = format!("/v1/runs/{run}/events?after=0");
        let call = edge.call("GET", &path).header("last-event-id", &after.to_string());
        if after >= end {
            // A browser stops to come back when it is told that there is nothing more.
            let over = call.send().await;
            assert_eq!((over.status, over.text().as_str()), (204, ""), "Last-Event-ID: {after}");
            continue;
        }
        assert_eq!(call.open_events().await.rest().await, expect, "Last-Event-ID: {after}");
    }
    let path = format!("/v1/runs/{run}/events");
    let wrong = edge.call("GET", &path).header("last-event-id", "x").send().await;
    wrong.refused(400, "request.invalid");
    edge.get("/v1/runs/none/events").await.refused(404, "run.not_found");
}

#[tokio::test]
async fn whoever_waits_behind_the_last_event_of_a_run_under_way_is_not_sent_away() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let mut first = edge.events(&run, "").await;
    let mut last = first.next().await.expect("an event");
    while last.event != "started" {
        last = first.next().await.expect("an event");
    }
    let path = format!("/v1/runs/{run}/events");
    let last = last.id.expect("a number").to_string();
    let again = edge.call("GET", &path).header("last-event-id", &last).open_events().await;
    edge.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    let told = again.rest().await;
    assert_eq!(told.last().expect("the end").event, "finished");
}

#[tokio::test]
async fn a_stream_that_is_cut_and_resumed_misses_nothing() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/count", json!({"n": 40, "delay_ms": 2})).await;
    let (mut told, mut last) = (Vec::new(), 0);
    loop {
        let mut reader = edge.events(&run, &format!("?after={last}")).await;
        // A few events, then the connection is lost.
        for _ in 0..7 {
            let Some(message) = reader.next().await else { break };
            last = message.id.expect("a number");
            told.push(message);
        }
        if told.last().is_some_and(|message| message.event == "finished") {
            break;
        }
    }
    let text: String = told.iter().filter_map(|message| message.data["text"].as_str()).collect();
    let expect: String = (1..=40).map(|n| format!("{n}\n")).collect();
    assert_eq!(text, expect);
    assert_eq!(told, edge.events(&run, "").await.rest().await);
}

#[tokio::test]
async fn retries_and_asks_are_told() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/fail", json!({"code": "tool.busy", "retryable": true})).await;
    let events = edge.events(&run, "").await.rest().await;
    let retries: Vec<_> = events.iter().filter(|message| message.event == "attempt").collect();
    assert_eq!(retries[0].data["attempt"], 2, "{events:?}");
    assert_eq!(retries[0].data["reason"], "tool.busy");
    assert_eq!(retries[0].data["executed"], "yes");
    // Whoever comes back right before the second attempt learns why there is one.
    let before = retries[0].id.expect("a number") - 1;
    let resumed = edge.events(&run, &format!("?after={before}")).await.rest().await;
    assert_eq!(&resumed[0], retries[0]);

    let run = edge.begin("wharf/approve-me", json!({})).await;
    let mut reader = edge.events(&run, "").await;
    let mut seen = Vec::new();
    while let Some(message) = reader.next().await {
        if message.event == "approval" {
            let inbox = edge.get("/v1/inbox").await.json();
            let ask = message.data["ask_id"].as_str().expect("an id").to_owned();
            assert_eq!(inbox["items"][0]["ask_id"], ask);
            assert_eq!(inbox["items"][0]["args_digest"], message.data["args_digest"]);
            let path = format!("/v1/approvals/{ask}/decide");
            assert_eq!(edge.post(&path, json!({"decision": "allow"})).await.status, 204);
        }
        seen.push(message);
    }
    assert_eq!(names(&seen), ["queued", "approval", "decided", "started", "finished"]);
    assert_eq!(seen[2].data["decision"], "allow");
    assert_eq!(seen[2].data["by"], "grant:owner");
}

#[tokio::test]
async fn a_quiet_stream_shows_that_it_is_alive() {
    let edge = Edge::start_with(|options| {
        options.limits.keep_alive = std::time::Duration::from_millis(20);
    })
    .await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let mut reader = edge.events(&run, "").await;
    let mut comments = 0;
    while comments < 3 {
        let message = reader.next().await.expect("the stream goes on");
        comments += u32::from(message.comment.is_some());
    }
    edge.call("POST", &format!("/v1/runs/{run}/cancel")).send().await;
    let events = reader.rest().await;
    assert_eq!(events.last().expect("an end").event, "finished");
}

#[tokio::test]
async fn many_readers_see_the_same() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/count", json!({"n": 50, "delay_ms": 1})).await;
    let readers = (0..40).map(|_| async { edge.events(&run, "").await.rest().await });
    let told = futures::future::join_all(readers).await;
    assert!(told.iter().all(|events| events == &told[0]));
    assert_eq!(told[0].last().expect("an end").event, "finished");
}
