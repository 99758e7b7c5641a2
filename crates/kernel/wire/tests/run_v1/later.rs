//! Frames behind the first.

use wharf_wire::run_v1::limits::FRAME_BYTES_MAX;
use wharf_wire::run_v1::{LaterFrame, close, decode_later};

#[track_caller]
fn check(text: &str, expect: Result<Option<&str>, u16>) {
    let read = match decode_later(text, FRAME_BYTES_MAX) {
        Ok(LaterFrame::Cancel(cancel)) => Ok(Some(cancel.control.run_id.unwrap_or_default())),
        Ok(LaterFrame::Stepped(stepped)) => Ok(Some(stepped.control.run_id.unwrap_or_default())),
        Ok(LaterFrame::Unknown) => Ok(None),
        Err(refusal) => Err(refusal.code),
    };
    assert_eq!(read, expect.map(|run_id| run_id.map(str::to_owned)), "{text}");
}

#[test]
fn t019_a_cancel_may_name_its_run() {
    check(r#"{"kind":"Cancel","control":{"run_id":"r1"}}"#, Ok(Some("r1")));
    check(r#"{"kind":"Cancel"}"#, Ok(Some("")));
    check(r#"{"kind":"Cancel","control":null}"#, Ok(Some("")));
    check(r#"{"kind":"Cancel","control":{"run_id":1}}"#, Ok(Some("1")));
    check(r#"{"kind":"Cancel","control":{"run_id":[]}}"#, Err(close::PROTOCOL));
}

#[test]
fn t048_an_answer_to_a_step_names_it_and_may_name_its_run() {
    let step = r#""step":{"name":"a","n":1}"#;
    check(&format!(r#"{{"kind":"Stepped","control":{{"run_id":"r1"}},{step}}}"#), Ok(Some("r1")));
    check(&format!(r#"{{"kind":"Stepped",{step},"error":"no"}}"#), Ok(Some("")));
    check(&format!(r#"{{"kind":"Stepped",{step},"outputs":[]}}"#), Err(close::PROTOCOL));
    check(
        &format!(r#"{{"kind":"Stepped","control":{{"run_id":[]}},{step}}}"#),
        Err(close::PROTOCOL),
    );
    check(r#"{"kind":"Stepped","step":{"name":"a"}}"#, Err(close::PROTOCOL));
    check(r#"{"kind":"Stepped"}"#, Err(close::PROTOCOL));
}

#[test]
fn unknown_kinds_are_ignored_and_a_second_request_is_not() {
    check(r#"{"kind":"Ping"}"#, Ok(None));
    check(r#"{"kind":"Request","control":{"run_id":"r2"}}"#, Err(close::PROTOCOL));
    check("{}", Err(close::PROTOCOL));
    check("[]", Err(close::PROTOCOL));
    check("x", Err(close::INVALID));
    assert_eq!(decode_later("{} ", 2).expect_err("too large").code, close::TOO_LARGE);
}
