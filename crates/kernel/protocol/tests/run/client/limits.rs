//! What a server can make a session take.

use serde_json::{Map, json};
use wharf_protocol::Outgoing;
use wharf_protocol::run::client::{Ended, RunClientEvent};
use wharf_wire::run_v1::close;

use super::{Stage, end, log, success};

#[test]
fn a_message_that_is_too_large_ends_the_attempt() {
    let mut stage = Stage::with(|config| config.message_bytes_max = 1_000).opened();
    let events = stage.say(&log(None, &"x".repeat(1_000)));
    assert!(matches!(end(&events), Ended::Broken { code: "ERR_LIMIT", .. }));
    assert_eq!(stage.sent(), [Outgoing::Close { code: close::TOO_LARGE, reason: String::new() }]);
}

#[test]
fn too_many_outputs_end_the_attempt() {
    let many: Map<_, _> = (0..4).map(|n| (format!("k{n}"), json!(n))).collect();
    for frame in [
        json!({"kind": "Response", "control": {"final": false}, "outputs": many}),
        success(json!({"cost_micro": 0}), &json!(many)),
    ] {
        let mut stage = Stage::with(|config| config.outputs_max = 3).opened();
        let events = stage.say(&frame);
        assert!(matches!(end(&events), Ended::Broken { code: "ERR_LIMIT", .. }));
    }
}

#[test]
fn a_long_line_is_cut_at_a_character() {
    let mut stage = Stage::with(|config| config.line_bytes_max = 5).opened();
    let events = stage.say(&log(None, "äöü"));
    assert!(matches!(&events[..], [RunClientEvent::Log { text, .. }] if text == "äö"));
}

#[test]
fn lines_that_come_too_fast_are_left_out_and_counted() {
    let mut stage = Stage::with(|config| config.lines_per_second_max = 10).opened();
    let taken: usize = (0..100).map(|_| stage.say(&log(None, "x")).len()).sum();
    assert_eq!(taken, 10);
    let events = stage.say(&success(json!({"cost_micro": 0}), &json!({})));
    assert!(matches!(&events[0], RunClientEvent::Log { text, .. } if text.starts_with("90 lines")));
    assert!(matches!(end(&events), Ended::Succeeded { .. }));
}

#[test]
fn a_session_sends_one_thing_at_a_time_however_long_it_waits() {
    let mut stage = Stage::open();
    for _ in 0..50 {
        stage.pass(1);
    }
    assert!(stage.sent().is_empty());
    stage.pass(7_500);
    stage.pass(1);
    assert_eq!(stage.sent(), [Outgoing::Ping]);
}
