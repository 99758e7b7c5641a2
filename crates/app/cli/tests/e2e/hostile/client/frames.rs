//! It says what is no message.

use std::time::Duration;

use crate::hostile::peers::{RawSocket, Stage};
use crate::security_page::{Peer, tried};

#[test]
fn a_client_sends_bytes_that_are_no_frames() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "read"]);
    let open = || RawSocket::open(&stage.core, "/graphql", "graphql-transport-ws", &token);
    let mut socket = open().unwrap_or_else(|status| panic!("not let in: {status}"));
    socket.flood(&[0xff; 4096], Duration::from_millis(50));
    assert!(socket.is_cut());
    tried(Peer::Client, "sends bytes that are no frames", "the reader of frames", "cut off");
}

#[test]
fn a_client_speaks_to_graphql_before_its_greeting() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "read"]);
    let open = || RawSocket::open(&stage.core, "/graphql", "graphql-transport-ws", &token);
    let mut socket = open().unwrap_or_else(|status| panic!("not let in: {status}"));
    let query = serde_json::json!({"type": "subscribe", "id": "1",
        "payload": {"query": "{ tools { items { id } } }"}});
    socket.say(&query);
    assert!(socket.closed().is_some(), "it is told why");
    tried(Peer::Client, "asks GraphQL before its greeting", "the order of messages", "closed");
}
