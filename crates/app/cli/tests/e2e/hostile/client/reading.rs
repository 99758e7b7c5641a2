//! It asks for much and reads nothing, and begins what it never ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::hostile::peers::{RawSocket, Stage};
use crate::security_page::{Peer, tried};
use crate::support::LONG;

/// A finished run with this much text in its inputs and in its outputs.
fn large_run(stage: &Stage, bytes: usize) -> String {
    let inputs = json!({"text": "x".repeat(bytes)});
    let run = stage.api.start(&json!({"tool": "wharf/echo", "inputs": inputs}));
    let id = run["run_id"].as_str().expect("an id").to_owned();
    stage.api.end_of("default", &id);
    id
}

#[test]
fn a_client_fetches_answers_and_never_reads_them() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "read"]);
    let run = large_run(&stage, 3_500_000);
    let host = stage.core.url().trim_start_matches("http://").to_owned();
    let head = format!(
        "GET /v1/runs/{run} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    // All ask before any looks, so that none is given up for its silence before the last has asked.
    let ask = |_| {
        let mut stream = TcpStream::connect(&host).expect("connects");
        stream.set_read_timeout(Some(LONG)).expect("set");
        stream.write_all(head.as_bytes()).expect("sends");
        stream
    };
    let mut unread: Vec<TcpStream> = (0..24).map(ask).collect();
    let is_refused = |stream: &mut TcpStream| {
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer begins");
        &status == b"HTTP/1.1 503"
    };
    let refused = unread.iter_mut().map(is_refused).filter(|it| *it).count();
    assert!(refused > 0, "all of them were kept");
    let (status, _) = stage.api.bytes(&format!("/v1/runs/{run}"));
    assert_eq!(status, 200, "others have room of their own");
    tried(
        Peer::Client,
        "fetches large answers and never reads them",
        "what waits is counted for each token",
        "HTTP 503",
    );
}

#[test]
fn a_client_asks_for_one_value_under_a_thousand_names() {
    let stage = Stage::up();
    let caller = stage.caller(&["--verb", "read"]);
    let run = large_run(&stage, 1_000_000);
    let names: String = (0..900).map(|n| format!(" n{n}: outputs")).collect();
    let query = format!("{{ run(id: \"{run}\") {{{names} }} }}");
    let (_, answer) = caller.ask("POST", "/graphql", &json!({"query": query}));
    let code = answer["errors"][0]["extensions"]["code"].as_str();
    let code = code.unwrap_or_else(|| panic!("it was answered"));
    tried(
        Peer::Client,
        "asks GraphQL for one value under a thousand names",
        "the bytes of an answer are counted as it is made",
        code,
    );
}

#[test]
fn a_client_begins_messages_and_never_ends_them() {
    let stage = Stage::up();
    let token = stage.token(&["--verb", "read"]);
    let length: u64 = 4 * 1024 * 1024;
    let mut frame = vec![0x82, 0x80 | 127];
    frame.extend(length.to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + 4 * 1024 * 1024 - 1, b'x');
    let before = stage.peak_mib();
    let mut sockets = Vec::new();
    for _ in 0..60 {
        let open = RawSocket::open(&stage.core, "/graphql", "graphql-transport-ws", &token);
        let mut socket = open.unwrap_or_else(|status| panic!("not let in: {status}"));
        socket.flood(&frame, Duration::from_millis(1));
        sockets.push(socket);
    }
    let (status, _) = stage.api.bytes("/healthz");
    assert_eq!(status, 200);
    // It was sent 240 MiB. What it has let go may not be given back to the system at once.
    let taken = stage.peak_mib().saturating_sub(before);
    assert!(taken < 180, "the core took {taken} MiB");
    tried(
        Peer::Client,
        "begins messages and never ends them",
        "what is not whole shares the memory of bodies",
        "nothing more is read",
    );
}
