//! Calls that are answered on a stream (M21–M23, M25).

use serde_json::{Value, json};

use crate::client::{ALL, Answer, Client, Event, OF_06, OF_11, OF_26};
use crate::stage::Stage;

/// A call of `test/steps` that wants progress.
async fn steps(client: &Client, id: i64, of: u64) -> Answer {
    let mut meta = json!({"progressToken": "p"});
    if client.session.is_none() {
        meta["io.modelcontextprotocol/logLevel"] = "warning".into();
    }
    let params = json!({"name": "test__steps", "arguments": {"of": of}, "_meta": meta});
    client.request(id, "tools/call", params).await
}

/// A client that wants logs from warnings on.
async fn client(stage: &Stage, revision: &'static str) -> Client {
    let client = stage.client().speaking(revision).await;
    if revision != OF_26 {
        client.request(0, "logging/setLevel", json!({"level": "warning"})).await.result().await;
    }
    client
}

/// What is said, without what differs from one stream to another.
fn said(events: &[Event]) -> Vec<Value> {
    let messages = events.iter().map(|event| event.data.clone());
    messages.filter(|data| !data.is_null()).collect()
}

fn expected(id: i64, of: u64, from: u64) -> Vec<Value> {
    let mut all = Vec::new();
    for step in from..=of {
        all.push(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {
            "level": "warning", "logger": "test/steps", "data": format!("step {step}"),
        }}));
        all.push(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": "p", "progress": 100 / of * step, "total": 100,
            "message": format!("phase {step}"),
        }}));
    }
    all.push(json!({"jsonrpc": "2.0", "id": id}));
    all
}

/// Checks what was said; of the answer only what it answers.
fn check(said: &[Value], expected: &[Value]) {
    let mut said = said.to_vec();
    let last = said.last_mut().expect("an answer");
    assert!(last["result"]["structuredContent"]["steps"].is_u64(), "{last}");
    *last = json!({"jsonrpc": "2.0", "id": last["id"]});
    assert_eq!(said, expected);
}

#[tokio::test]
async fn m021_what_takes_longer_or_says_something_is_a_stream() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = client(&stage, revision).await;
        // Nothing is said, and the run takes longer.
        let answer = client.call(1, "wharf__sleep", json!({"ms": 400})).await;
        assert!(answer.is_stream(), "{revision}");
        assert_eq!(answer.header("x-accel-buffering"), Some("no"));
        let events = answer.rest().await;
        let primed = revision == OF_11;
        assert_eq!(events.len(), 1 + usize::from(primed), "{events:?}");
        let first = &events[0];
        assert_eq!(first.data.is_null(), primed);
        assert_eq!(first.retry.is_some(), primed);
        // Whoever can come back is told where to.
        assert_eq!(events.iter().all(|event| event.id.is_some()), revision != OF_26);
        let last = events.last().expect("one");
        assert_eq!(last.data["result"]["structuredContent"], json!({"slept_ms": 400}));

        // Something is said although it ends at once.
        stage.step(2);
        let answer = steps(&client, 2, 1).await;
        assert!(answer.is_stream());
        check(&said(&answer.rest().await), &expected(2, 1, 1));
    }
}

#[tokio::test]
async fn m022_m023_progress_and_logs_are_told_as_they_are_wanted() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = client(&stage, revision).await;
        stage.step(5);
        let answer = steps(&client, 3, 4).await;
        check(&said(&answer.rest().await), &expected(3, 4, 1));
        // Without a token there is no progress, and without a level a modern client has no logs.
        stage.step(3);
        let events = client.call(4, "test__steps", json!({"of": 2})).await;
        if revision == OF_26 {
            let done = events.response().await;
            assert_eq!(done["result"]["structuredContent"]["steps"], 2);
            continue;
        }
        let told = said(&events.rest().await);
        assert!(told.iter().all(|it| it["method"] != "notifications/progress"), "{told:?}");
        assert_eq!(told.len(), 3, "{told:?}");
    }
}

#[tokio::test]
async fn m022_a_call_that_is_silent_for_long_says_that_it_is_there() {
    let stage = Stage::start().await;
    let calls = ALL.map(async |revision| {
        let client = client(&stage, revision).await;
        let params = json!({
            "name": "wharf__sleep", "arguments": {"ms": 10_500}, "_meta": {"progressToken": 7},
        });
        said(&client.request(1, "tools/call", params).await.rest().await)
    });
    for told in futures::future::join_all(calls).await {
        assert_eq!(told[0]["params"], json!({"progressToken": 7, "progress": 0, "total": 100}));
        assert_eq!(told.last().expect("an answer")["id"], 1, "{told:?}");
    }
}

#[tokio::test]
async fn m023_text_and_values_are_logs_too() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_06).await;
    let answer = client.call(1, "wharf__count", json!({"n": 2, "delay_ms": 1})).await;
    let told = said(&answer.rest().await);
    let texts: Vec<&Value> = told.iter().map(|it| &it["params"]["data"]["text"]).collect();
    assert_eq!(texts[..2], [&json!("1\n"), &json!("2\n")], "{told:?}");
    assert_eq!(told[0]["params"]["level"], "info");
    assert_eq!(told[0]["params"]["logger"], "wharf/count");
}

#[tokio::test]
async fn m025_a_legacy_stream_goes_on_from_every_event() {
    let stage = Stage::start().await;
    for revision in [OF_06, OF_11] {
        let client = client(&stage, revision).await;
        stage.step(5);
        let whole = steps(&client, 5, 4).await.rest().await;
        check(&said(&whole), &expected(5, 4, 1));
        for (at, event) in whole.iter().enumerate() {
            let id = event.id.as_deref().expect("an id");
            let resumed = client.get(Some(id)).await;
            assert_eq!(resumed.status, 200);
            let resumed = said(&resumed.rest().await);
            // The answer is told again to whoever comes back to it.
            let rest = said(&whole[(at + 1).min(whole.len() - 1)..]);
            assert_eq!(resumed, rest, "{revision} behind event {at}");
        }
    }
}

#[tokio::test]
async fn m025_a_disconnect_of_a_legacy_client_changes_nothing() {
    let stage = Stage::start().await;
    for (at, revision) in [OF_06, OF_11].into_iter().enumerate() {
        let client = client(&stage, revision).await;
        stage.step(1);
        let mut answer = steps(&client, 6, 2).await;
        let mut last = None;
        loop {
            let event = answer.next().await.expect("an event");
            last = event.id.or(last);
            if event.data["method"] == "notifications/progress" {
                break;
            }
        }
        drop(answer);
        // Two others hear of it as well, one of whom comes back before there is more.
        let early = client.get(last.as_deref()).await;
        let runs = stage.runs().await;
        assert!(runs.len() == at + 1 && !runs[0].is_over() && runs[0].cancel.is_none());
        stage.step(2);
        let late = client.get(last.as_deref()).await;
        for resumed in [early, late] {
            check(&said(&resumed.rest().await), &expected(6, 2, 2));
        }
    }
}

#[tokio::test]
async fn m025_a_stream_goes_on_after_a_restart_of_the_core() {
    let stage = Stage::start().await;
    let mut lost = Vec::new();
    for revision in [OF_06, OF_11] {
        let client = client(&stage, revision).await;
        stage.step(3);
        let whole = steps(&client, 7, 2).await.rest().await;
        lost.push((client, whole));
    }
    let stage = stage.killed().await;
    for (client, whole) in lost {
        let client = client.moved(stage.addr());
        // The level of logs was in memory only.
        client.request(0, "logging/setLevel", json!({"level": "warning"})).await.result().await;
        for (at, event) in whole.iter().enumerate() {
            let resumed = client.get(event.id.as_deref()).await;
            let rest = said(&whole[(at + 1).min(whole.len() - 1)..]);
            assert_eq!(said(&resumed.rest().await), rest, "behind event {at}");
        }
    }
}

#[tokio::test]
async fn m025_an_event_that_there_is_not_is_an_error_and_never_an_empty_stream() {
    let stage = Stage::start().await;
    let other = stage.token(json!({"verbs": ["read", "run"]})).await;
    for revision in [OF_06, OF_11] {
        let client = client(&stage, revision).await;
        let events = client.call(1, "wharf__sleep", json!({"ms": 300})).await.rest().await;
        let id = events.last().expect("one").id.clone().expect("an id");
        let mut forged = id.clone().into_bytes();
        let middle = forged.len() / 2;
        forged[middle] = if forged[middle] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("text");
        let session = client.session.clone().expect("a session");
        for bad in [forged.as_str(), "x", "1", &session] {
            client.get(Some(bad)).await.refused(400, -32602).await;
        }
        // Another grant's event means nothing to this one.
        let stranger = stage.client().bearing(&other).speaking(revision).await;
        stranger.get(Some(&id)).await.refused(400, -32602).await;
        // Nor does that of a run that is gone.
        for run in stage.runs().await {
            let purged =
                stage.handle.purges().purge(&wharf_domain::Caller::owner(), &run.key).await;
            purged.expect("purged");
        }
        client.get(Some(&id)).await.refused(400, -32602).await;
    }
}
