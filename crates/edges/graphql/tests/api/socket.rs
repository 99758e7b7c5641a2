//! WebSockets: both protocols, bounds, and peers that misbehave or go away.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use wharf_graphql::GraphqlLimits;
use wharf_vocab::{RunId, RunKey, WorldId};

use crate::support::{OWNER, PATIENCE, Stage, eventually};

const TOOLS: &str = "{ tool(id: \"wharf/echo\") { name } }";

#[tokio::test]
async fn t045_both_protocols_are_spoken() {
    let stage = Stage::start().await;
    let run = stage.finished("wharf/echo", json!({})).await;
    let events = format!("subscription {{ runEvents(id: \"{run}\") {{ type }} }}");
    for (protocol, begin, next) in
        [("graphql-transport-ws", "subscribe", "next"), ("graphql-ws", "start", "data")]
    {
        let mut socket = stage.connect(OWNER, protocol).await.expect("opens");
        assert_eq!(socket.protocol, protocol);
        socket.say(json!({"type": "connection_init", "payload": {}})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        socket.say(json!({"type": begin, "id": "1", "payload": {"query": events}})).await;
        let told = socket.rest("1").await;
        assert_eq!(told.last().expect("events")["data"]["runEvents"]["type"], "finished");
        socket.say(json!({"type": begin, "id": "2", "payload": {"query": TOOLS}})).await;
        let answer = socket.hear().await;
        assert_eq!((&answer["type"], &answer["id"]), (&json!(next), &json!("2")));
        assert_eq!(answer["payload"]["data"]["tool"]["name"], "echo");
    }
}

#[tokio::test]
async fn t045_browsers_send_their_token_as_a_subprotocol() {
    let stage = Stage::start().await;
    let bearer = format!("wharf.bearer.{OWNER}");
    for (offer, echoed) in [
        (format!("wharf.v1, {bearer}"), "wharf.v1"),
        (format!("graphql-transport-ws, wharf.v1, {bearer}"), "graphql-transport-ws"),
    ] {
        let mut socket = stage.connect("", &offer).await.expect("opens");
        assert_eq!(socket.protocol, echoed);
        socket.say(json!({"type": "connection_init"})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        socket.subscribe("1", TOOLS).await;
        assert_eq!(socket.hear().await["payload"]["data"]["tool"]["name"], "echo");
    }
    for (token, offer, status) in [
        ("", "wharf.v1, wharf.bearer.wrong", 401),
        ("wrong", "graphql-transport-ws", 401),
        (OWNER, "mqtt", 400),
    ] {
        assert_eq!(stage.connect(token, offer).await.err(), Some(status), "{offer}");
    }
}

#[tokio::test]
async fn t045_a_token_may_come_with_the_greeting() {
    let stage = Stage::start().await;
    let (id, token) = stage.token(json!({"verbs": ["read"]})).await;
    for (token, payload) in [
        (OWNER, json!({"Authorization": format!("Bearer {OWNER}")})),
        (&token, json!({"token": token})),
    ] {
        for protocol in ["graphql-transport-ws", "graphql-ws"] {
            let mut socket = stage.connect("", protocol).await.expect("opens");
            socket.say(json!({"type": "connection_init", "payload": payload})).await;
            assert_eq!(socket.hear().await["type"], "connection_ack", "{token}");
            let begin = if protocol == "graphql-ws" { "start" } else { "subscribe" };
            socket.say(json!({"type": begin, "id": "1", "payload": {"query": TOOLS}})).await;
            assert_eq!(socket.hear().await["payload"]["data"]["tool"]["name"], "echo");
        }
    }
    // Rights are those of the token, and end with it.
    let mut socket = stage.connect("", "graphql-transport-ws").await.expect("opens");
    socket.say(json!({"type": "connection_init", "payload": {"token": token}})).await;
    assert_eq!(socket.hear().await["type"], "connection_ack");
    socket.subscribe("1", "mutation { createWorld(id: \"x\") { createdAt } }").await;
    let refused = socket.hear().await;
    assert_eq!(refused["payload"]["errors"][0]["extensions"]["code"], "permission.denied");
    stage.revoke(&id).await;
    assert_eq!(socket.closed().await, 4401);
}

#[tokio::test]
async fn r170_operations_of_a_socket_are_parts_of_the_traces_that_they_name() {
    let stage = Stage::start().await;
    let trace = |caller: &str| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{caller}-01");
    let create = "mutation { createRun(input: {tool: \"wharf/echo\", inputs: {}}) { runId } }";
    for protocol in ["graphql-transport-ws", "graphql-ws"] {
        let opened = trace("00f067aa0ba902b7");
        let headers = [("traceparent", opened.as_str()), ("tracestate", "vendor=a1")];
        let mut socket = stage.connect_with(OWNER, protocol, &headers).await.expect("opens");
        socket.say(json!({"type": "connection_init"})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        let begin = if protocol == "graphql-ws" { "start" } else { "subscribe" };
        let own = trace("00f067aa0ba902b8");
        for (id, extensions, parent, state) in [
            ("1", json!({}), &opened, Some("vendor=a1")),
            ("2", json!({"traceparent": own, "tracestate": "b=2"}), &own, Some("b=2")),
            ("3", json!({"traceparent": own}), &own, None),
            ("4", json!({"traceparent": 7}), &opened, Some("vendor=a1")),
        ] {
            let payload = json!({"query": create, "extensions": extensions});
            socket.say(json!({"type": begin, "id": id, "payload": payload})).await;
            let said = socket.rest(id).await;
            let run = said[0]["data"]["createRun"]["runId"].as_str().expect("an id");
            let key = RunKey {
                world: WorldId::new("default").expect("valid"),
                run: RunId::new(run).expect("an id"),
            };
            let run = stage.handle.runs().get(&key).await.expect("known");
            assert_eq!(run.spec.traceparent.as_deref(), Some(parent.as_str()), "{protocol} {id}");
            assert_eq!(run.spec.tracestate.as_deref(), state, "{protocol} {id}");
        }
    }
}

#[tokio::test]
async fn t045_whoever_does_not_say_who_it_is_is_sent_away() {
    let limits = GraphqlLimits {
        socket_init: Duration::from_millis(50),
        strangers_max: 2,
        ..GraphqlLimits::default()
    };
    let stage = Stage::start_with(limits).await;
    for greeting in [
        json!({"type": "connection_init"}),
        json!({"type": "connection_init", "payload": {"token": "wrong-c4nary"}}),
        json!({"type": "subscribe", "id": "1", "payload": {"query": TOOLS}}),
    ] {
        let mut socket = stage.connect("", "graphql-transport-ws").await.expect("opens");
        socket.say(greeting).await;
        let frame = socket.next().await.expect_err("closed").expect("a reason");
        assert_eq!(u16::from(frame.code), 4401, "{frame:?}");
        assert!(!frame.reason.contains("c4nary"), "{frame:?}");
    }
    let mut mute = stage.connect("", "graphql-transport-ws").await.expect("opens");
    assert_eq!(mute.closed().await, 4408);
}

#[tokio::test]
async fn t045_strangers_cannot_take_all_sockets() {
    let limits = GraphqlLimits {
        socket_init: Duration::from_secs(600),
        strangers_max: 2,
        ..GraphqlLimits::default()
    };
    let stage = Stage::start_with(limits).await;
    let mut strangers = Vec::new();
    for _ in 0..2 {
        strangers.push(stage.connect("", "graphql-transport-ws").await.expect("opens"));
    }
    assert_eq!(stage.connect("", "graphql-transport-ws").await.err(), Some(503));
    stage.socket(OWNER).await;
    // One that says who it is makes room for the next.
    let mut known = strangers.pop().expect("a socket");
    known.say(json!({"type": "connection_init", "payload": {"token": OWNER}})).await;
    assert_eq!(known.hear().await["type"], "connection_ack");
    eventually(async || stage.connect("", "graphql-transport-ws").await.ok()).await;
}

#[tokio::test]
async fn t045_operations_of_one_socket_are_bounded() {
    let limits = GraphqlLimits { socket_operations_max: 3, ..GraphqlLimits::default() };
    let stage = Stage::start_with(limits).await;
    let run = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let events = format!("subscription {{ runEvents(id: \"{run}\", after: 99) {{ type }} }}");
    let mut socket = stage.socket(OWNER).await;
    for id in ["1", "2", "3"] {
        socket.subscribe(id, &events).await;
    }
    // A flood beyond the bound is answered one by one, and the socket lives on.
    for id in 4..200 {
        socket.subscribe(&id.to_string(), &events).await;
    }
    for _ in 4..200 {
        let refused = socket.hear().await;
        assert_eq!(refused["payload"]["errors"][0]["extensions"]["code"], "core.busy", "{refused}");
        assert_eq!(socket.hear().await["type"], "complete");
    }
    socket.say(json!({"type": "complete", "id": "2"})).await;
    assert_eq!(socket.hear().await, json!({"type": "complete", "id": "2"}));
    socket.subscribe("new", TOOLS).await;
    assert_eq!(socket.hear().await["payload"]["data"]["tool"]["name"], "echo");
}

#[tokio::test]
async fn t045_a_message_that_cannot_be_read_ends_only_its_socket() {
    let stage = Stage::start().await;
    let mut other = stage.socket(OWNER).await;
    let deep = format!("{{\"type\":\"ping\",\"payload\":{}{}}}", "[".repeat(70), "]".repeat(70));
    let long = json!({"type": "subscribe", "id": "x".repeat(200), "payload": {"query": TOOLS}});
    for text in ["c4nary", "{\"type\":\"c4nary\"}", "[]", &deep, &long.to_string()] {
        let mut socket = stage.socket(OWNER).await;
        socket.say_text(text.to_owned()).await;
        let frame = socket.next().await.expect_err("closed").expect("a reason");
        assert_eq!(u16::from(frame.code), 1002, "{text}");
        assert!(!frame.reason.contains("c4nary"), "{frame:?}");
    }
    let mut early = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
    early.subscribe("1", TOOLS).await;
    assert_eq!(early.closed().await, 1011, "nothing goes before connection_init");
    other.subscribe("1", TOOLS).await;
    assert_eq!(other.hear().await["payload"]["data"]["tool"]["name"], "echo");
}

/// Limits under which a socket is closed for no reason but the one a test names.
fn patient() -> GraphqlLimits {
    let long = Duration::from_secs(600);
    GraphqlLimits {
        recheck: Duration::from_millis(20),
        socket_init: long,
        socket_idle: long,
        socket_ping: long,
        ..GraphqlLimits::default()
    }
}

const SOON: Duration = Duration::from_millis(100);

#[tokio::test]
async fn t045_a_socket_that_does_not_greet_is_closed() {
    let stage = Stage::start_with(GraphqlLimits { socket_init: SOON, ..patient() }).await;
    let mut mute = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
    assert_eq!(mute.closed().await, 4408);
}

#[tokio::test]
async fn t045_a_socket_that_asks_for_nothing_is_closed_and_one_in_use_stays() {
    let stage = Stage::start_with(GraphqlLimits { socket_idle: SOON, ..patient() }).await;
    let run = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let events = format!("subscription {{ runEvents(id: \"{run}\") {{ type }} }}");
    let open = json!({"type": "subscribe", "id": "1", "payload": {"query": events}});
    // On a busy machine a socket may be closed before it has asked; then another one is opened.
    let mut used = eventually(async || {
        let mut socket = stage.connect(OWNER, "graphql-transport-ws").await.ok()?;
        for message in [&json!({"type": "connection_init"}), &open] {
            socket.stream.send(Message::Text(message.to_string().into())).await.ok()?;
        }
        (socket.next().await.ok()?["type"] == "connection_ack").then_some(())?;
        (socket.next().await.ok()?["type"] == "next").then_some(socket)
    })
    .await;
    let mut idle = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
    assert_eq!(idle.closed().await, 4408, "nothing was asked for");
    used.say(json!({"type": "ping"})).await;
    while used.hear().await["type"] != "pong" {}
}

#[tokio::test]
async fn t045_a_peer_that_answers_pings_stays_and_one_that_does_not_is_gone() {
    let stage = Stage::start_with(GraphqlLimits { socket_ping: SOON, ..patient() }).await;
    let mut gone = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
    // One whose answers did not count would be closed before the fourth ping. On a busy machine
    // answers may come too late; then another one is opened.
    eventually(async || {
        let mut here = stage.connect(OWNER, "graphql-transport-ws").await.ok()?;
        for _ in 0..6 {
            // A ping is answered by the library when it is read.
            let read = tokio::time::timeout(PATIENCE, here.stream.next()).await.expect("in time");
            matches!(read, Some(Ok(Message::Ping(_)))).then_some(())?;
        }
        Some(())
    })
    .await;
    // What is not read from cannot answer. It may be too late to hear why it was closed.
    assert!(matches!(gone.closed().await, 0 | 4408));
}

#[tokio::test]
async fn t045_a_peer_that_goes_away_leaves_nothing_behind() {
    let stage =
        Stage::start_with(GraphqlLimits { sockets_max: 1, ..GraphqlLimits::default() }).await;
    let run = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let events = format!("subscription {{ runEvents(id: \"{run}\") {{ type }} }}");
    for orderly in [true, false] {
        let mut socket =
            eventually(async || stage.connect(OWNER, "graphql-transport-ws").await.ok()).await;
        socket.say(json!({"type": "connection_init"})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        socket.subscribe("1", &events).await;
        socket.hear().await;
        assert_eq!(stage.connect(OWNER, "graphql-transport-ws").await.err(), Some(503));
        if orderly {
            socket.stream.send(Message::Close(None)).await.expect("says goodbye");
        }
    }
    // Its place is free again.
    eventually(async || stage.connect(OWNER, "graphql-transport-ws").await.ok()).await;
}

#[tokio::test]
async fn t045_sockets_end_when_the_core_stops() {
    let stage = Stage::start().await;
    let run = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let mut socket = stage.socket(OWNER).await;
    let events = format!("subscription {{ runEvents(id: \"{run}\", after: 99) {{ type }} }}");
    socket.subscribe("1", &events).await;
    let stop = stage.server.stop(Duration::from_secs(5));
    let (code, _) = tokio::join!(socket.closed(), stop);
    assert_eq!(code, 1001);
}
