//! Peers that ping without reading, and those that want something before they have greeted.

use futures::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use wharf_fuzz::flood_pings;
use wharf_graphql::GraphqlLimits;
use wharf_vocab::limits::{SOCKET_PINGS_FIRST_MAX, SOCKET_PINGS_MAX};

use crate::support::{OWNER, Stage};

#[tokio::test]
async fn a_flood_of_pings_ends_the_socket() {
    let stage = Stage::start().await;
    let (_, token) = stage.token(json!({"verbs": ["read"]})).await;
    for protocol in ["graphql-transport-ws", "graphql-ws"] {
        let mut socket = stage.connect(&token, protocol).await.expect("opens");
        socket.say(json!({"type": "connection_init"})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        let (answered, code) = flood_pings(&mut socket.stream).await;
        assert!(answered <= SOCKET_PINGS_MAX && code == 1008, "{answered} {code}");
    }
    let mut socket = stage.socket(&token).await;
    for _ in 0..2_000 {
        let ping = Message::Text(json!({"type": "ping"}).to_string().into());
        if socket.stream.send(ping).await.is_err() {
            break;
        }
    }
    let mut pongs = 0;
    while socket.next().await.is_ok_and(|said| said["type"] == "pong") {
        pongs += 1;
    }
    assert!(pongs <= SOCKET_PINGS_MAX, "{pongs}");
}

#[tokio::test]
async fn without_a_greeting_there_are_few_pongs_and_nothing_else() {
    let stage = Stage::start().await;
    for token in [OWNER, ""] {
        let mut socket = stage.connect(token, "graphql-transport-ws").await.expect("opens");
        let (answered, code) = flood_pings(&mut socket.stream).await;
        assert!(answered <= SOCKET_PINGS_FIRST_MAX && code == 1008, "{answered} {code}");
    }
    for early in [
        json!({"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}}),
        json!({"type": "complete", "id": "1"}),
        json!({"type": "pong"}),
    ] {
        let mut socket = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
        socket.say(early.clone()).await;
        let frame = socket.next().await.expect_err("closed").expect("a reason");
        assert_eq!(u16::from(frame.code), 1011, "{early}");
    }
    let mut socket = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
    socket.say(json!({"type": "ping"})).await;
    assert_eq!(socket.hear().await["type"], "pong", "a few pings are nobody's harm");
    socket.say(json!({"type": "connection_init"})).await;
    assert_eq!(socket.hear().await["type"], "connection_ack");
}

#[tokio::test]
async fn a_value_that_is_asked_for_under_many_names_makes_no_endless_answer() {
    let stage = Stage::start().await;
    let run = stage.finished("wharf/echo", json!({"text": "x".repeat(1_000_000)})).await;
    let query = |names: usize| {
        let names: String = (0..names).map(|n| format!(" n{n}: outputs")).collect();
        format!("{{ run(id: \"{run}\") {{{names} }} }}")
    };
    let answer = stage.ask(&query(20)).await;
    assert_eq!(answer.data()["run"]["n19"]["text"].as_str().map(str::len), Some(1_000_000));
    let refused = stage.ask(&query(40)).await;
    assert_eq!(refused.body["errors"][0]["extensions"]["code"], "request.too_large");
    let mut socket = stage.socket(OWNER).await;
    socket.subscribe("1", &query(40)).await;
    let refused = socket.hear().await;
    let code = &refused["payload"]["errors"][0]["extensions"]["code"];
    assert_eq!(code, "request.too_large");
}

#[tokio::test]
async fn large_answers_and_operations_on_sockets_have_a_bound_in_all() {
    let limits = GraphqlLimits {
        answers_bytes_max: 64 * 1024,
        operations_bytes_max: 256 * 1024,
        ..GraphqlLimits::default()
    };
    let stage = Stage::start_with(limits).await;
    let run = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let events = format!("subscription {{ runEvents(id: \"{run}\", after: 99) {{ type }} }}");
    let padded = |id: u32| {
        let payload = json!({"query": events, "extensions": {"pad": "x".repeat(100_000)}});
        json!({"type": "subscribe", "id": id.to_string(), "payload": payload})
    };
    let (mut one, mut two) = (stage.socket(OWNER).await, stage.socket(OWNER).await);
    one.say(padded(1)).await;
    one.say(json!({"type": "ping"})).await;
    assert_eq!(one.hear().await["type"], "pong");
    two.say(padded(1)).await;
    two.say(padded(2)).await;
    assert_eq!(two.closed().await, 1013, "the third of them has no room");
    // What is over makes room.
    one.say(padded(2)).await;
    one.say(json!({"type": "ping"})).await;
    assert_eq!(one.hear().await["type"], "pong");
    let large = stage.finished("wharf/echo", json!({"text": "x".repeat(100_000)})).await;
    one.subscribe("3", &format!("{{ run(id: \"{large}\") {{ outputs }} }}")).await;
    assert_eq!(one.closed().await, 1013, "the answer has no room");
}
