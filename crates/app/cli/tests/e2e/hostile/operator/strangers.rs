//! It takes a seat, or a question, that is somebody else's.

use serde_json::json;

use crate::hostile::peers::{RawSocket, Seat, Stage};
use crate::security_page::{Peer, tried};

#[test]
fn an_operator_sits_down_in_anothers_seat() {
    let stage = Stage::up();
    let (own, other) = (Seat::take(&stage.core, &stage.api), Seat::take(&stage.core, &stage.api));
    let path = format!("/v1/operators/{}/ws", other.sid);
    let refused = RawSocket::open(&stage.core, &path, "", &own.token).err();
    assert!(matches!(refused, Some(401 | 403)), "{refused:?}");
    let refused = format!("HTTP {}", refused.unwrap_or_default());
    tried(Peer::Operator, "sits down in another's seat", "a seat's token is its own", &refused);
}

#[test]
fn an_operator_lets_pass_what_it_was_never_asked() {
    let stage = Stage::up();
    let (mut seat, other) =
        (Seat::take(&stage.core, &stage.api), Seat::take(&stage.core, &stage.api));
    let task = json!({"agent": "wharf/echo", "input": {"text": "x"}, "detach": true,
        "operator": {"spawn_hook_id": other.sid}});
    let (status, run) = stage.api.ask("POST", "/v1/tasks", &task);
    assert_eq!(status, 202, "{run}");
    seat.socket.say(&json!({"type": "hook_ack", "req_id": "q-0000", "ok": true}));
    let refused = seat.socket.hear("error");
    let shown = stage.api.get(&format!("/v1/runs/{}", run["run_id"].as_str().expect("an id")));
    assert_eq!(shown["attempt"], 0, "{shown}");
    let code = refused["code"].as_str().unwrap_or_else(|| panic!("{refused}"));
    tried(Peer::Operator, "lets pass what it was never asked", "the seat's own desk", code);
}
