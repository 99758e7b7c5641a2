//! One connection.

use serde_json::{Value, json};
use wharf_protocol::run::server::{Limits, Profile, RunServer};
use wharf_protocol::{Incoming, Outgoing, Session as _};
use wharf_wire::run_v1::{ToolName, close, code};

use super::{Heard, ack, at, hears, hears_text};

const REQUEST: &str = r#"{"kind":"Request","control":{"run_id":"r1"},"inputs":{},"outputs":{}}"#;

fn session() -> RunServer {
    RunServer::new(at(0), &Limits::default(), Profile::Default)
}

#[track_caller]
fn closed(heard: &Heard, code: u16) {
    match heard {
        Heard::Close { code: with, .. } => assert_eq!(*with, code),
        other => panic!("not closed but {other:?}"),
    }
}

#[test]
fn t003_the_request_comes_within_ten_seconds() {
    let mut session = session();
    assert_eq!(session.deadline(), Some(10_000));
    session.tick(at(9_999));
    assert_eq!(session.poll_send(), None);
    session.tick(at(10_000));
    let Some(Outgoing::Close { code, .. }) = session.poll_send() else { panic!("not closed") };
    assert_eq!(code, close::POLICY);
    assert_eq!(hears_text(&mut session, at(10_001), REQUEST), Heard::Nothing);
    assert_eq!(session.deadline(), None);
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
        closed(&hears_text(&mut session, at(1), text), code);
        assert_eq!(ack(&mut session, at(1)), None, "{text}");
    }
    for (frame, code) in [
        (Incoming::Bytes(b"x"), close::UNSUPPORTED),
        (Incoming::TooLarge, close::TOO_LARGE),
        (Incoming::NotText, close::INVALID),
        (Incoming::NotAFrame, close::PROTOCOL),
    ] {
        closed(&hears(&mut session(), at(1), frame), code);
    }
    let limits = Limits { frame_bytes_max: 10, ..Limits::default() };
    let mut small = RunServer::new(at(0), &limits, Profile::Default);
    closed(&hears_text(&mut small, at(0), REQUEST), close::TOO_LARGE);
}

#[test]
fn t006_an_unfit_request_is_acknowledged_and_answered() {
    let mut session = session();
    let text = r#"{"kind":"Request","control":{"run_id":"r1"},"inputs":[]}"#;
    let Heard::Unfit(unfit) = hears_text(&mut session, at(1), text) else { panic!("not unfit") };
    assert_eq!((unfit.run_id.as_str(), unfit.code), ("r1", code::INPUTS));
    assert!(ack(&mut session, at(1)).is_some());
}

#[test]
fn t007_the_acknowledgment_is_given_once() {
    let mut session = session();
    assert_eq!(ack(&mut session, at(0)), None);
    assert!(matches!(hears_text(&mut session, at(1), REQUEST), Heard::Request(_)));
    session.ack(at(2));
    let Some(Outgoing::Text(text)) = session.poll_send() else { panic!("no acknowledgment") };
    let expect = json!({"kind": "Ack", "control": {"run_id": "r1"}});
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), expect);
    assert_eq!(ack(&mut session, at(3)), None);
}

#[test]
fn t013_silence_is_broken_before_ten_seconds_are_over() {
    let mut session = session();
    hears_text(&mut session, at(0), REQUEST);
    assert_eq!(session.deadline(), None, "nothing goes before the acknowledgment");
    ack(&mut session, at(1_000));
    session.tick(at(9_999));
    assert_eq!(session.poll_send(), None);
    let due = session.deadline().expect("a deadline");
    assert!(due <= 11_000);
    session.tick(at(due));
    let Some(Outgoing::Text(text)) = session.poll_send() else { panic!("no sign of life") };
    assert_eq!(text, r#"{"kind":"Event","control":{"run_id":"r1"},"data":{"phase":"checkpoint"}}"#);
    session.say(at(due + 500), vec!["{}".to_owned()]);
    assert_eq!(session.deadline(), Some(due + 9_500));
}

#[test]
fn t019_a_cancel_counts_for_the_run_of_the_connection_only() {
    let mut session = session();
    hears_text(&mut session, at(0), REQUEST);
    assert_eq!(hears_text(&mut session, at(1), r#"{"kind":"Cancel"}"#), Heard::Cancel);
    let own = r#"{"kind":"Cancel","control":{"run_id":"r1"}}"#;
    assert_eq!(hears_text(&mut session, at(1), own), Heard::Cancel);
    assert_eq!(hears_text(&mut session, at(1), r#"{"kind":"Hello"}"#), Heard::Nothing);
    let other = r#"{"kind":"Cancel","control":{"run_id":"r2"}}"#;
    closed(&hears_text(&mut session, at(1), other), close::PROTOCOL);
}

#[test]
fn t048_an_answer_to_a_step_counts_for_the_run_of_the_connection_only() {
    let mut session = session();
    hears_text(&mut session, at(0), REQUEST);
    let own =
        r#"{"kind":"Stepped","control":{"run_id":"r1"},"step":{"name":"a","n":2},"value":null}"#;
    let Heard::Stepped(stepped) = hears_text(&mut session, at(1), own) else { panic!("no answer") };
    assert_eq!((stepped.step.to_string().as_str(), &stepped.value), ("a#2", &Some(Value::Null)));
    let other = own.replace("r1", "r2");
    closed(&hears_text(&mut session, at(1), &other), close::PROTOCOL);
    for unfit in [r#"{"kind":"Stepped"}"#, r#"{"kind":"Stepped","step":{"name":"a","n":0}}"#] {
        let mut session = self::session();
        hears_text(&mut session, at(0), REQUEST);
        closed(&hears_text(&mut session, at(1), unfit), close::PROTOCOL);
    }
}

#[test]
fn t007_a_second_request_closes_the_connection() {
    let mut session = session();
    hears_text(&mut session, at(0), REQUEST);
    closed(&hears_text(&mut session, at(1), REQUEST), close::PROTOCOL);
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
        let heard = hears_text(&mut session, at(1), &asks(tool));
        (heard, ack(&mut session, at(1)))
    };
    for fits in [json!({"ref": "text/shout@1", "digest": "aa"}), json!({"ref": "text/shout@1"})] {
        let (heard, ack) = hears(&fits);
        assert!(matches!(heard, Heard::Request(_)), "{fits}");
        let Some(ack) = ack else { panic!("no ack") };
        assert_eq!(ack.tool.as_ref(), Some(&served), "{fits}");
    }
    for other in [
        json!({"ref": "bank/transfer@1", "digest": "aa"}),
        json!({"ref": "text/shout@2"}),
        json!({"ref": "text/shout@1", "digest": "bb"}),
    ] {
        let (Heard::Unfit(unfit), ack) = hears(&other) else { panic!("{other} is taken") };
        assert_eq!((unfit.code, unfit.run_id.as_str()), (code::WRONG_TOOL, "r1"), "{other}");
        assert!(matches!(ack, Some(ack) if ack.tool.is_none()), "{other}");
    }
    for garbage in [json!("text/shout@1"), json!({"digest": "aa"}), json!({"ref": 1}), json!({})] {
        let (Heard::Unfit(unfit), _) = hears(&garbage) else { panic!("{garbage} is taken") };
        assert_eq!(unfit.code, code::INPUTS, "{garbage}");
    }
    // Peers that know nothing of it are served, and hear nothing of it.
    let (heard, ack) = hears(&Value::Null);
    assert!(matches!(heard, Heard::Request(_)));
    assert!(matches!(ack, Some(ack) if ack.tool.is_none()));
    let mut nameless = session();
    let heard = hears_text(&mut nameless, at(1), &asks(&json!({"ref": "bank/transfer@1"})));
    assert!(matches!(heard, Heard::Request(_)), "a server that knows no name takes all");
}
