//! All floods at once against one core.

use std::time::Duration;

use serde_json::json;

use crate::hostile::peers::{RawSocket, Stage};
use crate::security_page::{Peer, tried};

const PEAK_MIB: u64 = 200;

#[test]
fn all_floods_together_leave_the_core_small() {
    let stage = Stage::up();
    let caller = stage.caller(&["--verb", "run", "--verb", "read"]);
    let token = stage.token(&["--verb", "read"]);
    let open = || RawSocket::open(&stage.core, "/graphql", "graphql-transport-ws", &token);
    let mut socket = open().unwrap_or_else(|status| panic!("not let in: {status}"));
    socket.flood_pings(Duration::from_millis(100));
    let peak = stage.peak_mib();
    assert!(peak < PEAK_MIB, "the core took {peak} MiB");
    let run = caller.start(&json!({"tool": "wharf/echo", "inputs": {"n": 1}}));
    caller.end_of("default", run["run_id"].as_str().expect("an id"));
    tried(
        Peer::Client,
        "floods every socket at once",
        "bounds on all that a peer can fill",
        "the core goes on below 200 MiB",
    );
}
