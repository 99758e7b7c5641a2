//! Connections come and go; the attempt goes on.

use serde_json::json;
use wharf_protocol::run::client::{Config, Ended, RunClient, RunClientEvent};
use wharf_protocol::{Incoming, Outgoing, Session as _};
use wharf_wire::run_v1::LogLevel;

use super::{Stage, end, log, request, success};

fn line(text: &str) -> RunClientEvent {
    RunClientEvent::Log { level: LogLevel::Info, text: text.to_owned() }
}

#[test]
fn t017_after_a_lost_connection_only_the_rest_is_asked_for_and_repeats_are_dropped() {
    let mut stage = Stage::open();
    assert_eq!(stage.say(&log(Some(1), "a")), [line("a")]);
    assert_eq!(stage.say(&log(Some(2), "b")), [line("b")]);
    assert!(stage.drop_connection().is_empty());
    assert!(stage.session.wants_connection());
    stage.session.connected(stage.now());
    let again = stage.messages();
    assert_eq!(again[0]["control"]["after"], 2);
    assert_eq!(
        (&again[0]["control"]["run_id"], &again[0]["control"]["attempt"]),
        (&json!("r1"), &json!(2))
    );
    assert_eq!(stage.say(&json!({"kind": "Ack"})), [RunClientEvent::Accepted { acked: true }]);
    for (seq, expected) in [(1, vec![]), (2, vec![]), (3, vec![line("c")]), (3, vec![])] {
        assert_eq!(stage.say(&log(Some(seq), "c")), expected, "{seq}");
    }
    let events = stage.say(&success(json!({"seq": 4, "cost_micro": 0}), &json!({})));
    assert!(matches!(end(&events), Ended::Succeeded { .. }));
}

#[test]
fn t017_a_hole_is_noticed() {
    let mut stage = Stage::open();
    assert_eq!(stage.say(&log(Some(3), "c")), [RunClientEvent::Gap { from: 1, to: 2 }, line("c")]);
    assert_eq!(stage.say(&log(Some(4), "d")), [line("d")]);
    assert_eq!(stage.say(&log(None, "e")), [line("e")]);
    let events = stage.say(&success(json!({"seq": 9, "cost_micro": 0}), &json!({})));
    assert_eq!(events[0], RunClientEvent::Gap { from: 5, to: 8 });
}

#[test]
fn t042_a_server_without_numbers_is_not_asked_twice() {
    let mut stage = Stage::open();
    assert_eq!(stage.say(&log(None, "a")).len(), 1);
    let events = stage.drop_connection();
    let Ended::Lost { cause, asked: true } = end(&events) else { panic!("{events:?}") };
    assert!(cause.contains("reset"), "{cause}");
    assert!(!stage.session.wants_connection());
}

#[test]
fn t042_a_number_in_the_acknowledgement_is_enough_to_attach_again() {
    let mut stage = Stage::new();
    stage.session.connected(stage.now());
    stage.sent();
    assert_eq!(
        stage.say(&json!({"kind": "Ack", "control": {"seq": 0}})),
        [RunClientEvent::Accepted { acked: true }]
    );
    assert!(stage.session.is_numbered());
    assert!(stage.drop_connection().is_empty());
    assert!(stage.session.wants_connection());
}

#[test]
fn t017_what_was_never_acknowledged_is_sent_as_before() {
    let mut stage = Stage::with(|config| config.numbered = true);
    stage.session.connected(stage.now());
    let first = stage.messages();
    assert!(stage.drop_connection().is_empty());
    stage.session.connected(stage.now());
    assert_eq!(stage.messages(), first);
}

#[test]
fn t017_an_attempt_from_before_is_taken_up_and_never_begun() {
    let mut stage = Stage { session: RunClient::resume(Config::default(), request()), ms: 0 };
    stage.session.connected(stage.now());
    assert_eq!(stage.messages()[0]["control"]["after"], 0);
    assert_eq!(stage.say(&json!({"kind": "Ack"})), [RunClientEvent::Accepted { acked: true }]);
    assert_eq!(stage.say(&log(Some(1), "a")), [line("a")]);
}

#[test]
fn t017_the_end_counts_whatever_its_number() {
    let mut stage = Stage::open();
    assert_eq!(stage.say(&log(Some(5), "x")).len(), 2);
    stage.drop_connection();
    stage.session.connected(stage.now());
    stage.say(&json!({"kind": "Ack"}));
    let events = stage.say(&success(json!({"seq": 2, "cost_micro": 0}), &json!({})));
    assert!(matches!(end(&events), Ended::Succeeded { .. }));
}

#[test]
fn t019_a_cancel_is_said_again_on_the_next_connection() {
    let mut stage = Stage::open();
    stage.say(&log(Some(1), "a"));
    stage.drop_connection();
    stage.session.cancel();
    assert!(stage.sent().is_empty());
    stage.session.connected(stage.now());
    let sent = stage.messages();
    assert_eq!((&sent[0]["kind"], &sent[1]["kind"]), (&json!("Request"), &json!("Cancel")));
}

#[test]
fn t042_a_silent_server_is_pinged_then_left_and_attached_to_again() {
    let mut stage = Stage::with(|config| config.silence_ms = 1_000).opened();
    stage.say(&log(Some(1), "a"));
    stage.pass(500);
    assert_eq!(stage.sent(), [Outgoing::Ping]);
    stage.session.receive(stage.now(), Incoming::Pong);
    stage.pass(499);
    assert!(stage.sent().is_empty());
    stage.pass(1);
    assert_eq!(stage.sent(), [Outgoing::Ping]);
    stage.pass(500);
    assert!(matches!(stage.sent()[..], [Outgoing::Close { .. }]));
    assert!(matches!(stage.events()[..], [RunClientEvent::Dropped(_)]));
    assert!(stage.session.wants_connection());
}

#[test]
fn t017_the_largest_number_is_a_number() {
    let mut stage = Stage::open();
    assert_eq!(stage.say(&log(Some(u64::MAX), "x")).len(), 2);
    let events = stage.say(&success(json!({"seq": u64::MAX, "cost_micro": 0}), &json!({})));
    assert!(matches!(end(&events), Ended::Succeeded { .. }));
}
