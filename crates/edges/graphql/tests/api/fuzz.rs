//! Spoilt messages on a socket after its greeting: nothing panics, every message is answered or
//! ends the socket, and the API goes on.

use serde_json::json;
use wharf_fuzz::{Fuzz, Met, Stock, Tally};

use crate::support::{OWNER, PATIENCE, Socket, Stage};

const TOOLS: &str = "{ tool(id: \"wharf/echo\") { name } }";

/// A message on the wire takes that much longer than one to a session.
const FEWER: u64 = 100;
/// Messages on one socket before another is opened, so that operations do not pile up.
const MESSAGES_MAX: u64 = 100;

fn stock(run: &str) -> Stock {
    let events = format!("subscription {{ runEvents(id: \"{run}\") {{ type }} }}");
    let subscribe = |id: &str, query: &str| {
        json!({"type": "subscribe", "id": id, "payload": {"query": query,
            "variables": {"a": 1}, "operationName": null, "extensions": {}}})
    };
    let trees = vec![
        subscribe("1", TOOLS),
        subscribe("2", &events),
        subscribe("3", "query Q($a: String!) { tool(id: $a) { name } }"),
        subscribe("1", "{ runs(first: 3) { edges { node { runId status } } } }"),
        json!({"type": "complete", "id": "2"}),
        json!({"type": "ping", "payload": {"n": 1}}),
        json!({"type": "pong"}),
        json!({"type": "connection_init", "payload": {}}),
    ];
    Stock::new(trees, &["1", "2", "3", "subscribe", "complete", "ping"])
}

async fn greet(stage: &Stage) -> Socket {
    let mut socket = stage.connect(OWNER, "graphql-transport-ws").await.expect("opens");
    socket.say(json!({"type": "connection_init", "payload": {}})).await;
    assert_eq!(socket.hear().await["type"], "connection_ack");
    socket
}

/// Says something, and asks something after it; whatever comes until that is answered is its echo.
async fn meet(socket: &mut Socket, text: &str, number: u64) -> Met {
    let id = format!("after-{number}");
    let after = json!({"type": "subscribe", "id": id, "payload": {"query": "{ __typename }"}});
    let mut met = Met::Taken;
    if socket.try_say(text).await.is_err() || socket.try_say(&after.to_string()).await.is_err() {
        return Met::Cut;
    }
    loop {
        let told = tokio::time::timeout(PATIENCE, socket.next()).await;
        let told = told.unwrap_or_else(|_| panic!("neither an answer nor an end to {text}"));
        match told {
            Ok(told) if told["id"] == id && told["type"] == "complete" => return met,
            Ok(told) => {
                let errors = &told["payload"]["errors"];
                if told["type"] == "error" || errors.is_array() {
                    met = Met::Refused;
                }
            }
            Err(_) => return Met::Cut,
        }
    }
}

#[tokio::test]
async fn t045_fuzz_graphql() {
    let stage = Stage::start().await;
    let run = stage.finished("wharf/echo", json!({})).await;
    let (fuzz, stock) = (Fuzz::slow("graphql", FEWER), stock(&run));
    let (mut dice, mut tally) = (fuzz.dice(), Tally::new(&fuzz));
    let mut socket = greet(&stage).await;
    for number in 0..fuzz.frames() {
        let frame = stock.spoil(&mut dice);
        let met = meet(&mut socket, &String::from_utf8_lossy(&frame), number).await;
        tally.count(met);
        if met == Met::Cut || number % MESSAGES_MAX == 0 {
            socket = greet(&stage).await;
        }
    }
    tally.tell();
    socket.subscribe("last", TOOLS).await;
    assert_eq!(socket.hear().await["payload"]["data"]["tool"]["name"], "echo", "it goes on");
}
