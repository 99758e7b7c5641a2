//! The events of a run: the same as REST streams.

use serde_json::{Value, json};

use crate::support::{OWNER, Stage, eventually};

/// The events of a run that is over, as REST sends them.
async fn by_rest(stage: &Stage, run: &str) -> Vec<(String, Value)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let addr = stage.addr();
    let head = format!(
        "GET /v1/runs/{run}/events HTTP/1.0\r\nhost: {addr}\r\nauthorization: Bearer {OWNER}\r\n\r\n"
    );
    let mut stream = tokio::net::TcpStream::connect(addr).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("sends");
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    tokio::time::timeout(crate::support::PATIENCE, read).await.expect("in time").expect("reads");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    let line = |message: &str, name: &str| {
        let found = message.lines().find_map(|line| line.strip_prefix(name));
        found.map(|rest| rest.trim().to_owned())
    };
    let event = |message: &str| {
        let data = serde_json::from_str(&line(message, "data:")?).expect("JSON");
        Some((line(message, "event:")?, data))
    };
    body.split("\n\n").filter_map(event).collect()
}

/// The events of a run behind a number, to the end.
async fn by_graphql(stage: &Stage, run: &str, after: Value) -> Vec<Value> {
    let mut socket = stage.socket(OWNER).await;
    let query = "subscription ($run: String!, $after: Int64) { runEvents(id: $run, after: $after) {
        seq at type data run { runId tool world status mode durability attempt costMicro createdAt
            startedAt endedAt outputs error { code message retryable } } } }";
    let payload = json!({"query": query, "variables": {"run": run, "after": after}});
    socket.say(json!({"type": "subscribe", "id": "e", "payload": payload})).await;
    let told = socket.rest("e").await;
    let event = |payload: Value| {
        assert!(payload.get("errors").is_none(), "{payload}");
        payload["data"]["runEvents"].clone()
    };
    told.into_iter().map(event).collect()
}

async fn answer_question(stage: &Stage, run: &str) {
    let asks = format!("{{ run(id: \"{run}\") {{ asks {{ askId }} }} }}");
    let ask = eventually(async || {
        let shown = stage.ask(&asks).await;
        shown.data()["run"]["asks"][0]["askId"].as_str().map(str::to_owned)
    })
    .await;
    let path = format!("/v1/questions/{ask}/answer");
    let answered = stage.call(OWNER, "POST", &path, Some(&json!({"value": "blue"}))).await;
    assert_eq!(answered.status, 204, "{answered:?}");
}

#[tokio::test]
async fn t045_events_are_those_of_rest_from_any_place() {
    let stage = Stage::start().await;
    let ask = stage.begin("wharf/ask", json!({})).await;
    answer_question(&stage, &ask).await;
    let runs = [
        stage.finished("wharf/count", json!({"n": 3, "delay_ms": 0})).await,
        stage.finished("wharf/fail", json!({"message": "no", "retryable": true})).await,
        stage.finished("wharf/sleep", json!({"ms": 0, "cost_micro": 12})).await,
        ask,
    ];
    let mut kinds = std::collections::BTreeSet::new();
    for run in &runs {
        let told = by_graphql(&stage, run, Value::Null).await;
        let rest = by_rest(&stage, run).await;
        assert_eq!(told.len(), rest.len(), "{told:?}");
        for (told, (name, data)) in told.iter().zip(&rest) {
            kinds.insert(name.clone());
            assert_eq!(&told["type"], name);
            assert_eq!(told["seq"], data["seq"].to_string());
            assert_eq!(told["at"], data["at"]);
            if name != "finished" {
                assert_eq!((&told["data"], &told["run"]), (data, &Value::Null));
                continue;
            }
            for field in ["seq", "at", "run_id", "status"] {
                assert_eq!(told["data"][field], data[field]);
            }
            let run = &told["run"];
            assert_eq!(run["costMicro"], data["cost_micro"].to_string());
            for (ours, theirs) in [
                ("runId", "run_id"),
                ("tool", "tool"),
                ("world", "world"),
                ("status", "status"),
                ("mode", "mode"),
                ("durability", "durability"),
                ("attempt", "attempt"),
                ("createdAt", "created_at"),
                ("startedAt", "started_at"),
                ("endedAt", "ended_at"),
                ("outputs", "outputs"),
            ] {
                assert_eq!(run[ours], data[theirs], "{ours}");
            }
            assert_eq!(run["error"]["code"], data["error"]["code"]);
        }
        // Whoever comes back behind any event gets exactly the rest.
        for (place, event) in told.iter().enumerate() {
            let rest = by_graphql(&stage, run, event["seq"].clone()).await;
            assert_eq!(rest, told[place + 1..]);
        }
    }
    for kind in
        ["queued", "started", "attempt", "text", "progress", "question", "decided", "finished"]
    {
        assert!(kinds.contains(kind), "{kind} was never told: {kinds:?}");
    }
}

#[tokio::test]
async fn t045_a_run_is_followed_while_it_goes_on() {
    let stage = Stage::start().await;
    let run = stage.begin("wharf/ask", json!({})).await;
    let mut socket = stage.socket(OWNER).await;
    socket.subscribe("1", &format!("subscription {{ runEvents(id: \"{run}\") {{ type }} }}")).await;
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|last| last != "question") {
        let message = socket.hear().await;
        kinds.push(message["payload"]["data"]["runEvents"]["type"].clone());
    }
    assert_eq!(kinds, ["queued", "started", "question"]);
    answer_question(&stage, &run).await;
    let rest: Vec<Value> = socket.rest("1").await;
    let rest: Vec<_> = rest.iter().map(|it| it["data"]["runEvents"]["type"].clone()).collect();
    assert_eq!(rest, ["decided", "finished"]);
}

#[tokio::test]
async fn t045_a_reader_that_stands_still_does_not_hold_a_run_up() {
    let stage = Stage::start().await;
    let run = stage.begin("wharf/count", json!({"n": 3_000, "delay_ms": 1})).await;
    let mut socket = stage.socket(OWNER).await;
    let query = format!("subscription {{ runEvents(id: \"{run}\") {{ seq type }} }}");
    for id in ["1", "2", "3"] {
        socket.subscribe(id, &query).await;
    }
    // Nothing is read from the socket until the run is over.
    eventually(async || {
        let shown = stage.ask(&format!("{{ run(id: \"{run}\") {{ status }} }}")).await;
        (shown.data()["run"]["status"] == "succeeded").then_some(())
    })
    .await;
    let mut last = std::collections::BTreeMap::new();
    let mut complete = 0;
    while complete < 3 {
        let message = socket.hear().await;
        let id = message["id"].as_str().expect("an id").to_owned();
        if message["type"] == "complete" {
            complete += 1;
            continue;
        }
        let event = &message["payload"]["data"]["runEvents"];
        let seq: u64 = event["seq"].as_str().and_then(|it| it.parse().ok()).expect("a number");
        let before = last.insert(id, (seq, event["type"].clone()));
        assert!(before.is_none_or(|(before, _)| before < seq), "in order and each once");
    }
    assert!(last.values().all(|(_, kind)| kind == "finished"), "{last:?}");
}
