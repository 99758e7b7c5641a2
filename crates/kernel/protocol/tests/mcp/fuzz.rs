//! Hostile bytes: nothing panics, nothing hangs, nothing grows.
//!
//! The targets draw bytes and run for a bounded time as plain tests; a fuzzing engine can drive
//! them for longer. Spoilt messages against live sessions are tried in `proof/fuzz`.

use wharf_protocol::mcp::{McpDoor, McpLine, McpLines, McpStart};
use wharf_protocol::{Incoming, Session as _};
use wharf_wire::mcp_v1::McpMessage;

use crate::stage::{
    at, client, client_events, sent_by_client, sent_by_server, server, server_events,
};

const ITERATIONS: usize = 50_000;

#[test]
fn m002_bytes_as_lines() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        let mut decoder = McpLines::new(16);
        for piece in bytes.chunks(5) {
            decoder.push(piece);
            assert!(decoder.held() <= 16);
        }
        while let Some(line) = decoder.pop() {
            if let McpLine::Whole(line) = line {
                assert!((1..=16).contains(&line.len()) && !line.contains(&b'\n'));
            }
        }
    });
}

#[test]
fn m001_bytes_as_messages() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        if let Ok(message) = McpMessage::read(bytes) {
            let again = McpMessage::read(message.write().as_bytes()).expect("it was written");
            assert_eq!(again.write(), message.write());
        }
    });
}

#[test]
fn m002_bytes_at_both_ends() {
    bolero::check!().with_iterations(ITERATIONS / 10).for_each(|bytes: &[u8]| {
        let (mut client, mut server) = (client(at(0), McpStart::Probe), server(McpDoor::Both));
        client.receive(at(0), Incoming::Bytes(bytes));
        server.receive(at(0), Incoming::Bytes(bytes));
        sent_by_client(&mut client);
        sent_by_server(&mut server);
        client_events(&mut client);
        server_events(&mut server);
        assert_eq!(server.sends_waiting() + client.sends_waiting(), 0);
    });
}
