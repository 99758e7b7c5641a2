//! Sessions over server-sent events and POST.

use std::time::Duration;

use serde_json::{Value, json};

use crate::reader::Events;
use crate::stage::{Stage, eventually};

fn echo(id: &str, n: u64) -> Value {
    json!({"id": id, "kind": "elicit", "type": "wharf/echo", "payload": {"n": n}})
}

#[tokio::test]
async fn k029_a_message_is_answered_and_then_its_event_comes() {
    let stage = Stage::start().await;
    let query = "role=principal&session=a-session-of-mine";
    let mut events = stage.events(query, "").await;
    assert_eq!(events.status, 200);
    assert!(events.head.to_lowercase().contains("content-type: text/event-stream"));
    let posted = stage.post(query, echo("1", 1)).await;
    assert_eq!(posted.status, 202, "{posted:?}");
    let (id, frame) = events.hear().await;
    assert_eq!(id, 1);
    let response = json!({"status": "accepted", "content": {"n": 1}});
    assert_eq!(frame, json!({"type": "response", "id": "1", "response": response}));
    let enveloped = json!({"type": "request", "payload": echo("2", 2)});
    assert_eq!(stage.post(query, enveloped).await.status, 202);
    let (id, frame) = events.hear().await;
    assert_eq!((id, &frame["id"]), (2, &json!("2")));
}

#[tokio::test]
async fn k029_what_cannot_be_is_refused() {
    let stage = Stage::start().await;
    for (query, status) in [("", 400), ("role=x", 400), ("role=principal&session=short", 400)] {
        assert_eq!(stage.events(query, "").await.status, status, "{query}");
        assert_eq!(stage.post(query, echo("1", 1)).await.status, status, "{query}");
    }
    let anonymous = Events::open(stage.addr(), "role=principal", "nobody", "").await;
    assert_eq!(anonymous.status, 401);
    let query = "role=principal";
    assert_eq!(stage.post(query, json!([1])).await.refused(), (400, "request.invalid"));
    assert_eq!(stage.post(query, Value::Null).await.refused(), (400, "request.invalid"));
    assert_eq!(stage.events(query, "x").await.status, 400);
    let gone = stage.events("role=principal&session=a-session-of-mine", "7").await;
    assert_eq!(gone.status, 410, "there is no such session to go on with");
}

#[tokio::test]
async fn k029_a_reader_goes_on_behind_the_last_event_it_saw() {
    let stage = Stage::start().await;
    let query = "role=principal";
    let mut events = stage.events(query, "").await;
    stage.post(query, echo("1", 1)).await;
    assert_eq!(events.hear().await.0, 1);
    drop(events);
    stage.post(query, echo("2", 2)).await;
    let mut again = stage.events(query, "1").await;
    let (id, frame) = again.hear().await;
    assert_eq!((id, &frame["id"]), (2, &json!("2")));
    stage.post(query, echo("3", 3)).await;
    assert_eq!(again.hear().await.0, 3);
    let mut by_query = stage.events("role=principal&after=2", "").await;
    assert_eq!(by_query.hear().await.0, 3);
    // A late joiner sees what is kept.
    let mut late = stage.events(query, "").await;
    for n in 1..=3 {
        assert_eq!(late.hear().await.0, n);
    }
    stage.post(query, echo("4", 4)).await;
    for reader in [&mut again, &mut by_query, &mut late] {
        assert_eq!(reader.hear().await.0, 4, "all readers get it");
    }
}

#[tokio::test]
async fn k029_whoever_was_away_too_long_is_told_what_is_missing() {
    let stage = Stage::with(|options| options.events_max = 2).await;
    let query = "role=principal";
    let mut events = stage.events(query, "").await;
    for n in 1..=4 {
        stage.post(query, echo(&n.to_string(), n)).await;
        assert_eq!(events.hear().await.0, n);
    }
    let of_another = stage.events(query, "50").await;
    assert_eq!(of_another.status, 410, "there was no such event");
    let mut back = stage.events(query, "1").await;
    let (_, gap) = back.hear().await;
    assert_eq!(gap, json!({"type": "gap", "from": 2, "to": 2}));
    assert_eq!(back.hear().await.0, 3);
    assert_eq!(back.hear().await.0, 4);
}

#[tokio::test]
async fn k029_a_session_belongs_to_its_token() {
    let stage = Stage::start().await;
    let rights = json!({"verbs": ["run", "read"], "tools": ["*"]});
    let (other, _) = stage.token(rights).await;
    let query = "role=principal&session=a-session-of-mine";
    let mut own = stage.events(query, "").await;
    let mut theirs = Events::open(stage.addr(), query, &other, "").await;
    stage.post(query, echo("1", 1)).await;
    own.hear().await;
    let posted = stage.call_as(&other, &format!("POST /v1/tool/sse?{query}"), &echo("2", 2)).await;
    assert_eq!(posted.status, 202);
    assert_eq!(theirs.hear().await.1["id"], "2", "only its own");
}

#[tokio::test]
async fn k029_a_session_that_nobody_reads_ends_like_a_connection() {
    let stage = Stage::with(|options| options.unread = Duration::from_millis(100)).await;
    let query = "role=principal";
    let events = stage.events(query, "").await;
    let sleep =
        json!({"id": "1", "kind": "elicit", "type": "wharf/sleep", "payload": {"ms": 60_000}});
    stage.post(query, sleep).await;
    let run = eventually(async || {
        let runs = stage.runs_of("wharf/sleep").await;
        runs.first().and_then(|run| run["run_id"].as_str().map(str::to_owned))
    })
    .await;
    drop(events);
    stage.until(&run, "canceled").await;
    eventually(async || {
        let gone = stage.events(query, "1").await;
        (gone.status == 410).then_some(())
    })
    .await;
}

#[tokio::test]
async fn k032_an_operative_serves_over_events_and_posts() {
    let stage = Stage::start().await;
    let query = "role=operative&provider=browser&tools=look&protocol=wharf.tool.v1";
    let mut events = stage.events(query, "").await;
    assert_eq!(events.hear().await.1["tools"], json!(["browser/look"]));
    let run = stage.run("browser/look", json!({"n": 1})).await;
    let (number, request) = events.hear().await;
    let id = request["id"].as_str().expect("an id").to_owned();
    let bare = json!({"id": id, "kind": "elicit", "type": "look", "payload": {"n": 1}});
    assert_eq!(request, bare, "requests are bare");
    // The page is loaded again and sees what is still to be answered.
    drop(events);
    let mut events = stage.events(query, "").await;
    events.hear().await;
    assert_eq!(events.hear().await, (number, bare));
    let progress = json!({"type": "progress", "id": id, "data": {"status": "looking"}});
    assert_eq!(stage.post(query, progress).await.status, 202);
    let response = json!({"status": "accepted", "content": {"seen": true}});
    let answer = json!({"type": "response", "id": id, "response": response});
    assert_eq!(stage.post(query, answer).await.status, 202);
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"seen": true}));
    // What is answered is not shown to a page that comes now.
    let mut late = stage.events(query, "").await;
    late.hear().await;
    stage.run("browser/look", json!({"n": 2})).await;
    assert_eq!(late.hear().await.1["payload"], json!({"n": 2}));
}

#[tokio::test]
async fn k029_a_core_that_stops_ends_the_events() {
    let stage = Stage::start().await;
    let mut events = stage.events("role=principal", "").await;
    stage.post("role=principal", echo("1", 1)).await;
    events.hear().await;
    stage.edge.drain().await;
    let (_, closed) = events.hear().await;
    assert_eq!((&closed["type"], &closed["code"]), (&json!("closed"), &json!(1012)));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn k032_a_revoked_token_ends_its_session() {
    let stage = Stage::start().await;
    let rights = json!({"verbs": ["run", "read"], "tools": ["*"]});
    let (token, id) = stage.token(rights).await;
    let mut events = Events::open(stage.addr(), "role=principal", &token, "").await;
    assert_eq!(events.status, 200);
    stage.call(&format!("DELETE /v1/tokens/{id}"), &Value::Null).await;
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn k029_a_client_that_leaves_for_good_ends_its_session_at_once() {
    let stage = Stage::start().await;
    let farewell = json!({"type": "closed", "code": 1000, "reason": "closed"});
    let query = "role=operative&provider=browser&tools=a";
    assert_eq!(stage.post(query, farewell.clone()).await.status, 202, "there is nothing to leave");
    let mut events = stage.events(query, "").await;
    events.hear().await;
    let mut other = stage.events(query, "").await;
    other.hear().await;
    assert_eq!(stage.post(query, farewell.clone()).await.status, 202);
    drop(other);
    stage.tool("browser/a", "available").await;
    eventually(async || {
        stage.post(query, farewell.clone()).await;
        let listed = stage.call("GET /v1/operatives", &Value::Null).await;
        (listed.body["items"][0]["connected"] == false).then_some(())
    })
    .await;
    let (_, closed) = events.hear().await;
    assert_eq!((&closed["type"], &closed["code"]), (&json!("closed"), &json!(1000)));
}
