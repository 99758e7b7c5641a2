//! Both ends against each other, and against peers that keep the rules in their own way.

use serde_json::{Value, json};
use wharf_vocab::{Code, Fault};
use wharf_wire::tool_v1::{Kind, Request};

use super::*;
use crate::{Closed, Incoming, Moment, Outgoing, Session as _};

const AT: Moment = Moment { ms: 0, at: wharf_vocab::Timestamp(0) };

impl ToolSession {
    fn hears(&mut self, text: &str) {
        self.receive(AT, Incoming::Text(text));
    }
}

fn request(id: &str) -> Request {
    let payload = json!({"accuracy": "high"});
    Request { id: id.to_owned(), kind: Kind::Elicit, method: "get-location".to_owned(), payload }
}

fn session() -> ToolSession {
    ToolSession::new(true, false, Limits::default())
}

fn frame(session: &mut ToolSession) -> Value {
    let Some(Outgoing::Text(frame)) = session.poll_send() else { panic!("no frame") };
    serde_json::from_str(&frame).expect("JSON")
}

/// Carries everything that waits from one end to the other.
fn carry(from: &mut ToolSession, to: &mut ToolSession) {
    while let Some(Outgoing::Text(frame)) = from.poll_send() {
        to.hears(&frame);
    }
}

#[test]
fn k023_frames_have_exactly_the_keys_of_the_protocol() {
    let mut principal = session();
    principal.call(request("r1")).expect("made");
    let inner = json!({"id": "r1", "kind": "elicit", "type": "get-location",
        "payload": {"accuracy": "high"}});
    assert_eq!(frame(&mut principal), json!({"type": "request", "payload": inner}));
    principal.cancel("r1");
    assert_eq!(frame(&mut principal), json!({"type": "cancel", "id": "r1"}));

    let mut bare = ToolSession::new(false, true, Limits::default());
    bare.call(request("r1")).expect("made");
    assert_eq!(frame(&mut bare), inner);
}

#[test]
fn k025_answers_come_out_of_order_and_each_call_gets_its_own() {
    let (mut principal, mut operative) = (session(), session());
    for id in ["a", "b", "c"] {
        principal.call(request(id)).expect("made");
    }
    carry(&mut principal, &mut operative);
    for id in ["c", "a", "b"] {
        operative.progress(id, json!(id));
        operative.answer(id, &ToolAnswer::Accepted(json!({"for": id})));
    }
    carry(&mut operative, &mut principal);
    for id in ["c", "a", "b"] {
        let expected = ToolEvent::Progress { id: id.to_owned(), data: json!(id) };
        assert_eq!(principal.poll_event(), Some(expected));
        let answer = ToolAnswer::Accepted(json!({"for": id}));
        let expected = ToolEvent::Answered { id: id.to_owned(), answer };
        assert_eq!(principal.poll_event(), Some(expected));
    }
    assert_eq!(principal.calls_waiting(), 0);
}

#[test]
fn k025_answers_that_nobody_waits_for_are_counted_and_ignored() {
    let mut principal = session();
    principal.call(request("a")).expect("made");
    assert_eq!(principal.call(request("a")), Err(CallError::Duplicate));
    let response = |id: &str| {
        json!({"type": "response", "id": id, "response": {"status": "declined"}}).to_string()
    };
    for id in ["a", "a", "never"] {
        principal.hears(&response(id));
    }
    principal.hears(r#"{"type":"progress","id":"a","data":1}"#);
    let answered = ToolEvent::Answered { id: "a".to_owned(), answer: ToolAnswer::Declined };
    assert_eq!(principal.poll_event(), Some(answered));
    assert_eq!(principal.poll_event(), None);
    let counted = principal.counters();
    assert_eq!((counted.duplicate_responses, counted.unknown_ids), (1, 2));
}

#[test]
fn k026_the_end_of_a_connection_ends_every_call_once() {
    let mut principal = session();
    principal.call(request("a")).expect("made");
    principal.end(AT, Closed::ended());
    principal.end(AT, Closed::ended());
    let lost = ToolEvent::Answered { id: "a".to_owned(), answer: ToolAnswer::Lost };
    assert_eq!(principal.poll_event(), Some(lost));
    assert_eq!(principal.poll_event(), None);
    assert_eq!(principal.call(request("b")), Err(CallError::Ended));
    let fault = ToolAnswer::Lost.into_output().expect_err("no output");
    assert!(fault.is(Code::TransportLost));
}

#[test]
fn k026_a_late_cancel_is_harmless() {
    let (mut principal, mut operative) = (session(), session());
    principal.call(request("a")).expect("made");
    carry(&mut principal, &mut operative);
    operative.answer("a", &ToolAnswer::Accepted(json!(1)));
    principal.cancel("a");
    carry(&mut principal, &mut operative);
    carry(&mut operative, &mut principal);
    assert!(matches!(operative.poll_event(), Some(ToolEvent::Request(_))));
    assert_eq!(operative.poll_event(), None);
    assert_eq!(principal.poll_event(), None);
    assert!(!operative.answer("a", &ToolAnswer::Declined), "one answer is enough");
}

#[test]
fn k028_only_peers_that_know_it_are_sent_the_marker() {
    let fault = Fault::new(Code::ToolFailed, "No satellite.");
    for (marked, expected) in [(false, Value::Null), (true, json!("tool.failed"))] {
        let mut operative = ToolSession::new(marked, false, Limits::default());
        operative.hears(r#"{"id":"a","kind":"elicit","type":"t"}"#);
        operative.answer("a", &ToolAnswer::Failed(fault.clone()));
        let sent = frame(&mut operative);
        assert_eq!(sent["response"]["content"], "No satellite.");
        assert_eq!(sent["response"]["fault"]["code"], expected);
        let keys = sent["response"].as_object().expect("an object").len();
        assert_eq!(keys, if marked { 3 } else { 2 });
    }
}

#[test]
fn k027_what_cannot_be_read_is_counted_and_answered_when_it_has_an_id() {
    let mut operative = session();
    for junk in ["", "[]", "{", r#"{"id":"x"}"#, r#"{"type":"request"}"#] {
        operative.hears(junk);
    }
    assert_eq!(operative.poll_send(), None);
    operative.hears(r#"{"type":"request","payload":{"id":"a","kind":"shout","type":"t"}}"#);
    assert_eq!(frame(&mut operative)["response"]["status"], "other");
    assert_eq!(operative.counters().unreadable, 6);
    operative.hears(r#"{"type":"greeting"}"#);
    assert_eq!(operative.counters().unknown_types, 1);
    assert_eq!(operative.poll_event(), None);
}

#[test]
fn k024_a_status_that_nobody_knows_ends_the_call_all_the_same() {
    let mut principal = session();
    principal.call(request("a")).expect("made");
    principal.hears(r#"{"type":"response","id":"a","response":{"status":"maybe"}}"#);
    let Some(ToolEvent::Answered { answer: ToolAnswer::Failed(fault), .. }) =
        principal.poll_event()
    else {
        panic!("the caller would wait for ever");
    };
    assert!(fault.is(Code::ToolProtocolViolation));
}

#[test]
fn k030_what_a_peer_can_make_the_session_keep_is_bounded() {
    let limits = Limits { served_max: 2, calls_max: 1, ..Limits::default() };
    let mut operative = ToolSession::new(true, false, limits);
    for id in ["a", "b", "c"] {
        operative.hears(&format!(r#"{{"id":"{id}","kind":"elicit","type":"t"}}"#));
    }
    assert_eq!(operative.served(), 2);
    assert_eq!(frame(&mut operative)["response"]["fault"]["code"], "tool.busy");
    operative.call(request("x")).expect("the first");
    assert_eq!(operative.call(request("y")), Err(CallError::Full));
}

#[test]
fn k028_a_failure_with_too_many_facts_comes_without_them() {
    for (bytes, kept) in [(1_000, true), (100_000, false)] {
        let (mut principal, mut operative) = (session(), session());
        principal.call(request("a")).expect("made");
        carry(&mut principal, &mut operative);
        let fault = Fault::new(Code::ToolFailed, "No.").with("why", "x".repeat(bytes));
        operative.answer("a", &ToolAnswer::Failed(fault));
        carry(&mut operative, &mut principal);
        match principal.poll_event() {
            Some(ToolEvent::Answered { answer: ToolAnswer::Failed(fault), .. }) => {
                assert_eq!((fault.message.as_str(), !fault.details.is_empty()), ("No.", kept));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn k036_what_a_call_costs_is_told_as_it_grows_and_with_the_response() {
    let (mut principal, mut operative) = (session(), session());
    principal.call(request("a")).expect("made");
    carry(&mut principal, &mut operative);
    assert!(operative.cost("a", 500));
    assert!(!operative.cost("a", 500), "nothing new");
    assert!(!operative.cost("a", 200), "what was spent stays spent");
    operative.progress("a", json!(1));
    assert!(operative.cost("a", 900));
    operative.answer("a", &ToolAnswer::Declined);
    carry(&mut operative, &mut principal);
    let cost = |so_far_micro| Some(ToolEvent::Cost { id: "a".to_owned(), so_far_micro });
    assert_eq!(principal.poll_event(), cost(500));
    assert!(matches!(principal.poll_event(), Some(ToolEvent::Progress { .. })));
    assert_eq!(principal.poll_event(), cost(900));
    assert_eq!(principal.poll_event(), cost(900), "the response says it once more");
    assert!(matches!(principal.poll_event(), Some(ToolEvent::Answered { .. })));
    assert_eq!(principal.poll_event(), None);
}

#[test]
fn k036_a_plain_peer_neither_sees_a_cost_nor_is_believed_one() {
    let mut operative = ToolSession::new(false, false, Limits::default());
    operative.hears(r#"{"id":"a","kind":"elicit","type":"t"}"#);
    assert!(!operative.cost("a", 500));
    operative.progress("a", json!(1));
    operative.answer("a", &ToolAnswer::Accepted(json!(2)));
    assert_eq!(frame(&mut operative), json!({"type": "progress", "id": "a", "data": 1}));
    let response = json!({"status": "accepted", "content": 2});
    let expected = json!({"type": "response", "id": "a", "response": response});
    assert_eq!(frame(&mut operative), expected);
    assert_eq!(operative.poll_send(), None);

    let mut principal = ToolSession::new(false, false, Limits::default());
    principal.call(request("a")).expect("made");
    principal.hears(r#"{"type":"progress","id":"a","data":1,"cost_micro":7}"#);
    assert!(matches!(principal.poll_event(), Some(ToolEvent::Progress { .. })));
    assert_eq!(principal.poll_event(), None);
}

#[test]
fn k036_a_cost_counts_also_when_the_call_is_over() {
    let (mut principal, mut operative) = (session(), session());
    for id in ["answered", "canceled"] {
        principal.call(request(id)).expect("made");
    }
    carry(&mut principal, &mut operative);
    operative.answer("answered", &ToolAnswer::Declined);
    principal.cancel("canceled");
    carry(&mut principal, &mut operative);
    for id in ["answered", "canceled", "never"] {
        operative.cost(id, 30);
    }
    carry(&mut operative, &mut principal);
    assert!(matches!(principal.poll_event(), Some(ToolEvent::Answered { .. })));
    for id in ["answered", "canceled"] {
        let cost = ToolEvent::Cost { id: id.to_owned(), so_far_micro: 30 };
        assert_eq!(principal.poll_event(), Some(cost));
    }
    assert_eq!(principal.poll_event(), None);
    assert_eq!(principal.counters().unknown_ids, 1, "a call that never was");
}

#[test]
fn k036_an_orderly_end_and_an_answer_that_is_too_large_keep_the_cost() {
    let limits = Limits { frame_bytes_max: 400, ..Limits::default() };
    let mut operative = ToolSession::new(true, false, limits);
    for id in ["large", "going"] {
        operative.hears(&format!(r#"{{"id":"{id}","kind":"elicit","type":"t"}}"#));
        operative.cost(id, 40);
        let told = json!({"type": "progress", "id": id, "cost_micro": 40});
        assert_eq!(frame(&mut operative), told);
    }
    operative.answer("large", &ToolAnswer::Accepted(json!("x".repeat(500))));
    operative.answer_all(&ToolAnswer::Cancelled);
    for (id, status) in [("large", "other"), ("going", "cancelled")] {
        let sent = frame(&mut operative);
        assert_eq!((&sent["id"], &sent["cost_micro"]), (&json!(id), &json!(40)), "{sent}");
        assert_eq!(sent["response"]["status"], status);
    }
}
