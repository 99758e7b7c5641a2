//! It sends control frames and never reads.

use std::time::Duration;

use serde_json::json;

use crate::hostile::peers::{RawSocket, Stage};
use crate::security_page::{Peer, tried};
use crate::support::TestHome;
use crate::tool_servers::Served;

/// More than systems keep for a connection, and less than a core may keep.
const KEPT_BYTES_MAX: u64 = 48 * 1024 * 1024;

/// Floods a socket with pings, which must end it.
#[track_caller]
fn flood(socket: &mut RawSocket) {
    let sent = socket.flood_pings(Duration::from_secs(30));
    assert!(sent < KEPT_BYTES_MAX, "{sent} bytes of pings were taken");
    assert!(socket.is_cut());
}

#[test]
fn a_client_pings_graphql_and_never_reads() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "read"]);
    let open = |token: &str| {
        RawSocket::open(&stage.core, "/graphql", "graphql-transport-ws", token)
            .unwrap_or_else(|status| panic!("not let in: {status}"))
    };
    flood(&mut open(&token));
    let mut greeted = open(&token);
    greeted.say(&json!({"type": "connection_init"}));
    greeted.hear("connection_ack");
    flood(&mut greeted);
    // A socket may also be opened without a token, to send one in its first message.
    flood(&mut open(""));
    let peak = stage.peak_mib();
    assert!(peak < 200, "the core took {peak} MiB");
    tried(Peer::Client, "pings GraphQL and never reads", "pings are counted", "cut off");
}

#[test]
fn a_client_pings_the_tool_protocol_and_never_reads() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "run"]);
    let path = "/v1/tool/ws?role=principal";
    let mut socket = RawSocket::open(&stage.core, path, "wharf.tool.v1", &token)
        .unwrap_or_else(|status| panic!("not let in: {status}"));
    flood(&mut socket);
    tried(Peer::Client, "pings the tool protocol and never reads", "pings are counted", "cut off");
}

#[test]
fn a_client_pings_a_tool_server_that_asks_for_no_token() {
    let home = TestHome::new();
    let served = Served::start(&home, &["--exec", "cat"]);
    let mut socket = RawSocket::open_at(served.address(), "/run", "theory.run.v1", "")
        .unwrap_or_else(|status| panic!("not let in: {status}"));
    // It goes on listening for a moment so that its peer hears why, and keeps nothing of it.
    socket.flood_pings(Duration::from_millis(200));
    assert_eq!(socket.pongs_until_the_end(), 8);
    tried(
        Peer::Client,
        "pings `wharf tool serve` before it asks for anything",
        "pings are counted, and few before a request",
        "closed",
    );
}
