//! One connection.

use serde_json::{Value, json};
use wharf_protocol::run::server::{Due, Heard, Limits, Session};
use wharf_wire::run_v1::{Frame, ToolName, close, code, encode};

use super::at;

const REQUEST: &str = r#"{"kind":"Request","control":{"run_id":"r1"},"inputs":{},"outputs":{}}"#;

fn session() -> Session {
    Session::new(at(0), &Limits::default())
}

#[track_caller]
fn closed(heard: &Heard, code: u16) {
    match heard {
        Heard::Close(refusal) => assert_eq!(refusal.code, code),
        other => panic!("not closed but {other:?}"),
    }
}

#[test]
fn t003_the_request_comes_within_ten_seconds() {
    let mut session = session();
    assert_eq!(session.deadline_ms(), Some(10_000));
    assert_eq!(session.time(at(9_999)), Due::Nothing);
    let Due::Close(refusal) = session.time(at(10_000)) else { panic!("not closed") };
    assert_eq!(refusal.code, close::POLICY);
    assert_eq!(session.text(at(10_001), REQUEST), Heard::Nothing);
    assert_eq!(session.deadline_ms(), None);
}

#[test]
fn t005_every_wrong_first_frame_has_its_code() {
    for (text, code) in [
        ("nope", close::INVALID),
        ("[]", close::PROTOCOL),
        (r#"{"kind":"Cancel","control":{"run_id":"r1"}}"#, close::PROTOCOL),
        (r#"{"kind":"Request","control":{}}"#, close::POLICY),
        (r#"{"kind":"Request","control":{"run_id":""}}"#, close::POLICY),
    ] {
        let mut session = session();
        closed(&session.text(at(1), text), code);
        assert_eq!(session.ack(at(1)), None, "{text}");
    }
    closed(&session().binary(), close::UNSUPPORTED);
    closed(&session().too_large(), close::TOO_LARGE);
    closed(&session().garbled(), close::INVALID);
    closed(&session().broken(), close::PROTOCOL);
    let mut small = Session::new(at(0), &Limits { frame_bytes_max: 10, ..Limits::default() });
    closed(&small.text(at(0), REQUEST), close::TOO_LARGE);
}

#[test]
fn t006_an_unfit_request_is_acknowledged_and_answered() {
    let mut session = session();
    let text = r#"{"kind":"Request","control":{"run_id":"r1"},"inputs":[]}"#;
    let Heard::Unfit(unfit) = session.text(at(1), text) else { panic!("not unfit") };
    assert_eq!((unfit.run_id.as_str(), unfit.code), ("r1", code::INPUTS));
    assert!(session.ack(at(1)).is_some());
}

#[test]
fn t007_the_acknowledgment_is_given_once() {
    let mut session = session();
    assert_eq!(session.ack(at(0)), None);
    assert!(matches!(session.text(at(1), REQUEST), Heard::Request(_)));
    let ack = session.ack(at(2)).expect("an acknowledgment");
    let expect = json!({"kind": "Ack", "control": {"run_id": "r1"}});
    assert_eq!(serde_json::from_str::<serde_json::Value>(&encode(&ack)).expect("JSON"), expect);
    assert_eq!(session.ack(at(3)), None);
}

#[test]
fn t013_silence_is_broken_before_ten_seconds_are_over() {
    let mut session = session();
    session.text(at(0), REQUEST);
    assert_eq!(session.deadline_ms(), None, "nothing goes before the acknowledgment");
    session.ack(at(1_000));
    assert_eq!(session.time(at(9_999)), Due::Nothing);
    let due = session.deadline_ms().expect("a deadline");
    assert!(due <= 11_000);
    let Due::KeepAlive(frame) = session.time(at(due)) else { panic!("no sign of life") };
    let text = encode(&frame);
    assert_eq!(text, r#"{"kind":"Event","control":{"run_id":"r1"},"data":{"phase":"checkpoint"}}"#);
    session.sent(at(due + 500));
    assert_eq!(session.deadline_ms(), Some(due + 9_500));
}

#[test]
fn t019_a_cancel_counts_for_the_run_of_the_connection_only() {
    let mut session = session();
    session.text(at(0), REQUEST);
    assert_eq!(session.text(at(1), r#"{"kind":"Cancel"}"#), Heard::Cancel);
    let own = r#"{"kind":"Cancel","control":{"run_id":"r1"}}"#;
    assert_eq!(session.text(at(1), own), Heard::Cancel);
    assert_eq!(session.text(at(1), r#"{"kind":"Hello"}"#), Heard::Nothing);
    let other = r#"{"kind":"Cancel","control":{"run_id":"r2"}}"#;
    closed(&session.text(at(1), other), close::PROTOCOL);
}

#[test]
fn t007_a_second_request_closes_the_connection() {
    let mut session = session();
    session.text(at(0), REQUEST);
    closed(&session.text(at(1), REQUEST), close::PROTOCOL);
}

#[test]
fn a_request_for_another_tool_is_unfit_and_who_names_one_is_told_which_is_served() {
    let name = |reference: &str, digest: Option<&str>| ToolName {
        reference: reference.to_owned(),
        digest: digest.map(str::to_owned),
    };
    let served = name("text/shout@1", Some("aa"));
    let asks = |tool: &Value| {
        let control = json!({"run_id": "r1", "tool": tool});
        json!({"kind": "Request", "control": control, "inputs": {}}).to_string()
    };
    let hears = |tool: &Value| {
        let mut session = session().serving(Some(served.clone()));
        let heard = session.text(at(1), &asks(tool));
        (heard, session.ack(at(1)))
    };
    for fits in [json!({"ref": "text/shout@1", "digest": "aa"}), json!({"ref": "text/shout@1"})] {
        let (heard, ack) = hears(&fits);
        assert!(matches!(heard, Heard::Request(_)), "{fits}");
        let Some(Frame::Ack(ack)) = ack else { panic!("no ack") };
        assert_eq!(ack.tool.as_ref(), Some(&served), "{fits}");
    }
    for other in [
        json!({"ref": "bank/transfer@1", "digest": "aa"}),
        json!({"ref": "text/shout@2"}),
        json!({"ref": "text/shout@1", "digest": "bb"}),
    ] {
        let (Heard::Unfit(unfit), ack) = hears(&other) else { panic!("{other} is taken") };
        assert_eq!((unfit.code, unfit.run_id.as_str()), (code::WRONG_TOOL, "r1"), "{other}");
        assert!(matches!(ack, Some(Frame::Ack(ack)) if ack.tool.is_none()), "{other}");
    }
    for garbage in [json!("text/shout@1"), json!({"digest": "aa"}), json!({"ref": 1}), json!({})] {
        let (Heard::Unfit(unfit), _) = hears(&garbage) else { panic!("{garbage} is taken") };
        assert_eq!(unfit.code, code::INPUTS, "{garbage}");
    }
    // Peers that know nothing of it are served, and hear nothing of it.
    let (heard, ack) = hears(&Value::Null);
    assert!(matches!(heard, Heard::Request(_)));
    assert!(matches!(ack, Some(Frame::Ack(ack)) if ack.tool.is_none()));
    let mut nameless = session();
    let heard = nameless.text(at(1), &asks(&json!({"ref": "bank/transfer@1"})));
    assert!(matches!(heard, Heard::Request(_)), "a server that knows no name takes all");
}
