//! What servers send, read generously.

use serde_json::json;
use wharf_wire::run_v1::{FromServer, LogLevel, Phase, Status, code, decode_from_server};

#[track_caller]
fn read(text: &str) -> FromServer {
    decode_from_server(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn t008_a_log_needs_no_more_than_its_line() {
    let FromServer::Log(log) = read(r#"{"kind":"Log","data":{"msg":"x"}}"#) else { panic!("log") };
    assert_eq!(
        (log.control.run_id, log.data.level, log.data.timestamp),
        (None, LogLevel::Info, None)
    );
    for (text, level) in [
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("warn", LogLevel::Warn),
        ("warning", LogLevel::Warn),
        ("error", LogLevel::Error),
        ("fatal", LogLevel::Info),
    ] {
        let frame = json!({"kind": "Log", "data": {"msg": "x", "level": text, "timestamp": "now"}});
        let FromServer::Log(log) = read(&frame.to_string()) else { panic!("log") };
        assert_eq!((log.data.level, log.data.timestamp), (level, None), "{text}");
    }
    let FromServer::Log(log) = read(r#"{"kind":"Log","data":{"msg":{"a":1}}}"#) else { panic!("") };
    assert_eq!(log.data.msg, r#"{"a":1}"#);
}

#[test]
fn t008_unknown_kinds_and_fields_are_ignored() {
    assert_eq!(read(r#"{"kind":"Frame","content":{"text":"x"}}"#), FromServer::Unknown);
    assert_eq!(read(r#"{"kind":"Token","content":{"text":7}}"#), FromServer::Unknown);
    for phase in ["".to_owned(), "x".repeat(65), "a\u{7}b".to_owned()] {
        let frame = json!({"kind": "Event", "data": {"phase": phase}});
        assert_eq!(read(&frame.to_string()), FromServer::Unknown, "{phase:?}");
    }
    let plain = read(r#"{"kind":"Event","control":{"run_id":"r"},"data":{"phase":"started"}}"#);
    let grown = read(
        r#"{"kind":"Event","control":{"run_id":"r","x":1},"data":{"phase":"started","y":[]},"content":{}}"#,
    );
    assert_eq!(plain, grown);
    let FromServer::Event(event) = plain else { panic!("event") };
    assert_eq!(event.data.phase, Phase::Started);
}

#[test]
fn t010_a_response_keeps_what_has_to_be_judged() {
    let FromServer::Response(response) = read(
        r#"{"kind":"Response","control":{"final":true,"status":"done","cost_micro":-1.5},"outputs":null}"#,
    ) else {
        panic!("response")
    };
    assert!(response.control.is_final && response.outputs.is_empty());
    assert_eq!(response.control.status, None);
    assert_eq!(response.control.cost_micro, Some(json!(-1.5)));
    let FromServer::Response(response) =
        read(r#"{"kind":"Response","control":{"status":"error","final":true},"error":{}}"#)
    else {
        panic!("response")
    };
    assert_eq!(response.control.status, Some(Status::Error));
    assert_eq!(response.error.expect("kept").code, code::UNKNOWN);
}

#[test]
fn t011_any_message_may_say_what_the_run_has_cost() {
    for frame in [
        r#"{"kind":"Ack","control":{"cost_micro":7}}"#,
        r#"{"kind":"Log","control":{"cost_micro":7},"data":{"msg":"x"}}"#,
        r#"{"kind":"Event","control":{"cost_micro":7},"data":{"phase":"checkpoint"}}"#,
        r#"{"kind":"Token","control":{"cost_micro":7},"content":{"text":"x"}}"#,
        r#"{"kind":"Response","control":{"cost_micro":7,"final":false},"outputs":{}}"#,
    ] {
        assert_eq!(read(frame).cost_micro(), Some(&json!(7)), "{frame}");
    }
    assert_eq!(read(r#"{"kind":"Log","control":{"cost_micro":null}}"#).cost_micro(), None);
}

#[test]
fn t010_a_reported_error_is_never_a_success() {
    for frame in [
        r#"{"kind":"Response","control":{"final":true,"status":"success"},"error":{"code":"E"}}"#,
        r#"{"kind":"Response","control":{"final":true},"error":{"code":"E"}}"#,
        r#"{"status":"error","run_id":"r","meta":{},"error":{"code":"E"}}"#,
        r#"{"status":"success","outputs":{},"error":{"code":"E"}}"#,
    ] {
        let FromServer::Response(response) = read(frame) else { panic!("{frame}") };
        assert_eq!(response.control.status, Some(Status::Error), "{frame}");
        assert_eq!(response.error.expect("kept").code, "E", "{frame}");
        assert!(response.control.is_final, "{frame}");
    }
}

#[test]
fn t030_only_whole_confirmations_count() {
    let FromServer::Response(response) = read(
        r#"{"kind":"Response","control":{"final":true,"written":{"a":{"bytes":1,"b3":"x"},"b":{"bytes":-1,"b3":"x"},"c":1}}}"#,
    ) else {
        panic!("response")
    };
    assert_eq!(response.control.written.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn what_cannot_be_read_is_said() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"kind":7}"#,
        r#"{"kind":"Ack","control":[]}"#,
        r#"{"kind":"Ack","control":{"run_id":[7]}}"#,
        r#"{"status":"error"}"#,
        r#"{"outputs":{},"meta":{}}"#,
        r#"{"kind":"Log","data":[]}"#,
        r#"{"kind":"Response","outputs":[]}"#,
        r#"{"kind":"Response","control":{"final":"yes"}}"#,
        r#"{"kind":"Response","error":7}"#,
    ] {
        let why = decode_from_server(text).expect_err(text);
        assert!(!why.to_string().is_empty());
    }
}
