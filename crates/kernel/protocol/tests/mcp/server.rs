//! The server's end against clients that do not do what they should.

use serde_json::{Value, json};
use wharf_protocol::mcp::{McpAnswer, McpCallOptions, McpDoor, McpServerEvent, McpServerSession};
use wharf_protocol::{Incoming, Session as _};
use wharf_wire::mcp_v1::{
    McpError, McpId, McpLog, McpLogLevel, McpMessage, McpNotification, McpRevision,
};

use crate::stage::{
    asks, at, capabilities, object, request, sent_by_server, server, server_events,
};

fn initialize(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "c", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn greeted(version: &str) -> McpServerSession {
    let mut session = server(McpDoor::Both);
    asks(&mut session, at(0), &initialize(version));
    assert_eq!(server_events(&mut session).len(), 1);
    assert!(session.answer(&0.into(), Ok(object(&json!({"protocolVersion": "wrong"})))));
    session
}

fn modern(id: i64, method: &str, more: &Value) -> Value {
    let mut params = more.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn plain(id: i64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[track_caller]
fn refused(session: &mut McpServerSession, message: &Value, code: i64) -> Value {
    asks(session, at(1), message);
    assert!(server_events(session).is_empty(), "{message}");
    let sent = sent_by_server(session);
    assert_eq!(sent.len(), 1, "{message}");
    assert_eq!(sent[0]["error"]["code"], code, "{message}");
    assert_eq!(sent[0].get("id"), message.get("id"), "errors echo the id");
    sent[0]["error"].clone()
}

#[test]
fn m009_before_the_handshake_there_is_only_ping() {
    let mut session = server(McpDoor::Both);
    refused(&mut session, &plain(1, "tools/list", &json!({})), -32600);
    refused(&mut session, &plain(2, "server/discover", &json!({})), -32600);
    asks(&mut session, at(1), &plain(3, "ping", &json!({})));
    assert_eq!(sent_by_server(&mut session)[0]["result"], json!({}));
    assert!(!session.notify(&McpNotification::ToolsChanged(Box::default())));
}

#[test]
fn m009_a_handshake_says_what_was_agreed_and_comes_once() {
    for (asked, agreed) in [
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("x", "2025-11-25"),
    ] {
        let mut session = greeted(asked);
        let welcome = sent_by_server(&mut session);
        assert_eq!(welcome[0]["result"]["protocolVersion"], agreed);
        assert_eq!(welcome[0]["result"].get("resultType"), None, "legacy results have no kind");
        assert_eq!(session.agreed().map(McpRevision::as_str), Some(agreed));
        refused(&mut session, &initialize(asked), -32600);
    }
    let mut session = server(McpDoor::Both);
    asks(&mut session, at(0), &initialize("2025-06-18"));
    assert!(session.answer(&0.into(), Err(McpError::params("no"))));
    assert_eq!(session.agreed(), None, "a refused handshake is none");
    sent_by_server(&mut session);
    server_events(&mut session);
    asks(&mut session, at(0), &initialize("2025-06-18"));
    assert_eq!(server_events(&mut session).len(), 1, "it may be tried again");
}

#[test]
fn m004_m010_a_client_that_shook_hands_elsewhere_goes_on() {
    let door = McpDoor::Resumed {
        revision: McpRevision::V2025_11_25,
        capabilities: Box::new(capabilities().into()),
    };
    let mut session = server(door);
    asks(&mut session, at(0), &plain(7, "tasks/list", &json!({})));
    let events = server_events(&mut session);
    let [McpServerEvent::Request { caller, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(caller.revision, McpRevision::V2025_11_25);
    assert!(caller.capabilities.elicits_forms());
    // The question was asked by a core that is gone; its id is all there is to know.
    asks(
        &mut session,
        at(0),
        &json!({"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "accept"}}),
    );
    let params = json!({"requestId": 4});
    let method = "notifications/cancelled";
    asks(&mut session, at(0), &json!({"jsonrpc": "2.0", "method": method, "params": params}));
    let events = server_events(&mut session);
    let [McpServerEvent::Answered { id: ask, .. }, McpServerEvent::Canceled { id, .. }] =
        events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!((ask, id), (&McpId::from("ask-1"), &McpId::from(4)));
    assert_eq!(session.counters().violations, 0);
}

#[test]
fn m007_a_modern_request_must_say_all_there_is_to_know() {
    let mut session = server(McpDoor::Both);
    let meta = |meta: Value| plain(1, "tools/list", &json!({"_meta": meta}));
    let version = "io.modelcontextprotocol/protocolVersion";
    let can = "io.modelcontextprotocol/clientCapabilities";
    for (message, code) in [
        (meta(json!({version: "2026-07-28"})), -32602),
        (meta(json!({version: "2026-07-28", can: []})), -32602),
        (meta(json!({version: 7, can: {}})), -32602),
        (meta(json!({version: "2026-07-28", can: {}, "progressToken": {}})), -32602),
        (
            meta(json!({version: "2026-07-28", can: {}, "io.modelcontextprotocol/logLevel": "x"})),
            -32602,
        ),
        (meta(json!({version: "1900-01-01", can: {}})), -32022),
        (meta(json!({version: "2025-11-25", can: {}})), -32022),
        (meta(json!({version: "2027-07-28"})), -32022),
        (
            modern(
                1,
                "initialize",
                &json!({"protocolVersion": "a", "capabilities": {}, "clientInfo": {"name": "", "version": ""}}),
            ),
            -32601,
        ),
        (modern(1, "ping", &json!({})), -32601),
        (modern(1, "tasks/result", &json!({"taskId": "t"})), -32601),
        (modern(1, "tasks/list", &json!({})), -32601),
        (modern(1, "resources/subscribe", &json!({"uri": "a:b"})), -32601),
        (modern(1, "roots/list", &json!({})), -32601),
        (modern(1, "tools/call", &json!({"name": 7})), -32602),
    ] {
        let error = refused(&mut session, &message, code);
        if code == -32022 {
            assert_eq!(error["data"]["supported"], json!(["2026-07-28"]));
        }
    }
    assert_eq!(session.served(), 0);
}

#[test]
fn m006_a_header_alone_makes_a_request_modern() {
    let mut session = server(McpDoor::Both);
    let message = plain(1, "tools/list", &json!({})).to_string();
    let message = McpMessage::read(message.as_bytes()).expect("a message");
    session.take(at(0), message, Some("2026-07-28"));
    let sent = sent_by_server(&mut session);
    assert_eq!(sent[0]["error"]["code"], -32602, "and then `_meta` is missing");
    let mut session = server(McpDoor::Modern);
    refused(&mut session, &initialize("2025-11-25"), -32602);
}

#[test]
fn m006_both_eras_are_served_at_once() {
    let mut session = greeted("2025-06-18");
    asks(&mut session, at(0), &modern(1, "tools/list", &json!({})));
    asks(&mut session, at(0), &plain(2, "tools/list", &json!({})));
    let revisions: Vec<McpRevision> = server_events(&mut session)
        .iter()
        .map(|event| match event {
            McpServerEvent::Request { caller, .. } => caller.revision,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(revisions, [McpRevision::V2026_07_28, McpRevision::V2025_06_18]);
    sent_by_server(&mut session);
    for id in [1, 2] {
        assert!(session.answer(&id.into(), Ok(object(&json!({"tools": []})))));
        assert!(!session.answer(&id.into(), Ok(object(&json!({})))), "only once");
    }
    let sent = sent_by_server(&mut session);
    assert_eq!(sent[0]["result"]["resultType"], "complete");
    let info = &sent[0]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "harbour");
    assert_eq!(sent[1]["result"], json!({"tools": []}));
}

#[test]
fn m023_logs_come_from_the_asked_level_on() {
    let log = |level| McpLog { level, logger: None, data: json!("x"), meta: None };
    let mut session = greeted("2025-06-18");
    asks(&mut session, at(0), &plain(1, "tools/call", &json!({"name": "a"})));
    assert!(session.log(&1.into(), log(McpLogLevel::Debug)));
    asks(&mut session, at(0), &plain(2, "logging/setLevel", &json!({"level": "error"})));
    assert!(!session.log(&1.into(), log(McpLogLevel::Warning)));
    assert!(session.log(&1.into(), log(McpLogLevel::Alert)));
    let meta = json!({"_meta": {"io.modelcontextprotocol/logLevel": "info"}, "name": "a"});
    asks(&mut session, at(0), &modern(3, "tools/call", &meta));
    assert!(session.log(&3.into(), log(McpLogLevel::Info)));
    assert!(!session.log(&3.into(), log(McpLogLevel::Debug)));
    asks(&mut session, at(0), &modern(4, "tools/call", &json!({"name": "a"})));
    assert!(!session.log(&4.into(), log(McpLogLevel::Emergency)), "it did not ask for any");
}

#[test]
fn m027_a_cancel_ends_a_request_and_no_response_follows() {
    let mut session = greeted("2025-11-25");
    sent_by_server(&mut session);
    asks(&mut session, at(0), &plain(1, "tools/call", &json!({"name": "a"})));
    server_events(&mut session);
    for unknown in [json!(9), json!("1"), json!(null)] {
        let params = json!({"requestId": unknown});
        let method = "notifications/cancelled";
        asks(&mut session, at(0), &json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    assert_eq!((server_events(&mut session).len(), session.counters().violations), (0, 0));
    let method = "notifications/cancelled";
    let params = json!({"requestId": 1, "reason": "r"});
    asks(&mut session, at(0), &json!({"jsonrpc": "2.0", "method": method, "params": params}));
    let events = server_events(&mut session);
    assert!(matches!(events.as_slice(), [McpServerEvent::Canceled { .. }]), "{events:?}");
    assert!(!session.answer(&1.into(), Ok(object(&json!({})))));
    assert!(!session.progress(&1.into(), 1.into(), None, None));
    assert!(sent_by_server(&mut session).is_empty());
}

#[test]
fn m030_a_question_has_the_id_of_its_owner_and_may_be_taken_back() {
    let mut session = greeted("2025-11-25");
    asks(&mut session, at(0), &plain(1, "tools/call", &json!({"name": "a"})));
    server_events(&mut session);
    while session.poll_message().is_some() {}
    let elicit = request("elicitation/create", &json!({"message": "?"}));
    let (ask, call) = (McpId::from("ask-7"), McpId::from(1));
    let options = McpCallOptions { timeout_ms: Some(1_000), progress: false };
    session.ask(at(0), ask.clone(), Some(&call), &elicit, options).expect("asked");
    assert!(session.ask(at(0), ask.clone(), None, &elicit, options).is_err(), "it is open");
    let sent = session.poll_message().expect("sent");
    assert_eq!(sent.of, Some(call), "on the call's stream");
    assert!(matches!(&sent.message, McpMessage::Request { id, .. } if *id == ask));
    assert!(session.take_back(&ask, "answered elsewhere"));
    let canceled = sent_by_server(&mut session);
    assert_eq!(canceled[0]["params"]["requestId"], "ask-7");
    asks(&mut session, at(1), &json!({"jsonrpc": "2.0", "id": "ask-7", "result": {}}));
    assert_eq!(session.counters().late, 1);
    let answer = McpAnswer::Canceled;
    assert_eq!(server_events(&mut session), [McpServerEvent::Answered { id: ask, answer }]);

    session.ask(at(0), "ask-8".into(), None, &elicit, options).expect("asked");
    assert_eq!(session.deadline(), Some(1_000));
    session.tick(at(1_000));
    let (id, answer) = ("ask-8".into(), McpAnswer::TimedOut);
    assert_eq!(server_events(&mut session), [McpServerEvent::Answered { id, answer }]);
}

#[test]
fn m072_what_cannot_be_read_is_answered_and_counted() {
    let mut session = greeted("2025-11-25");
    sent_by_server(&mut session);
    for (text, id, code) in [
        ("{", None, -32700),
        ("[]", None, -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":"x","params":7}"#, Some(5), -32600),
        (r#"{"id":5,"method":"x"}"#, Some(5), -32600),
    ] {
        session.receive(at(0), Incoming::Text(text));
        let sent = sent_by_server(&mut session);
        assert_eq!(sent[0]["error"]["code"], code, "{text}");
        assert_eq!(sent[0].get("id").and_then(Value::as_i64), id, "{text}");
    }
    assert_eq!(session.counters().violations, 4);
    for _ in 0..20 {
        session.receive(at(0), Incoming::Text("{"));
    }
    assert!(session.is_closed());
}

#[test]
fn m078_a_client_that_does_not_read_is_not_read() {
    let mut session = greeted("2025-11-25");
    let call = json!({"name": "a", "_meta": {"progressToken": 1}});
    asks(&mut session, at(0), &plain(1, "tools/call", &call));
    let mut pings = 0;
    while session.wants_input() {
        asks(&mut session, at(0), &plain(2, "ping", &json!({})));
        pings += 1;
    }
    assert_eq!((pings, session.sends_waiting()), (1_023, 1_024));
    assert!(!session.progress(&1.into(), 1.into(), None, None), "and told no progress");
    sent_by_server(&mut session);
    assert!(session.wants_input() && session.progress(&1.into(), 1.into(), None, None));
}

#[test]
fn m078_requests_are_bounded_and_an_id_is_served_once() {
    let mut session = greeted("2025-11-25");
    sent_by_server(&mut session);
    for id in 1..=256 {
        asks(&mut session, at(0), &plain(id, "tools/list", &json!({})));
    }
    server_events(&mut session);
    asks(&mut session, at(0), &plain(5, "tools/list", &json!({})));
    assert!(sent_by_server(&mut session).is_empty(), "the first one is not disturbed");
    assert_eq!(session.counters().violations, 1);
    refused(&mut session, &plain(900, "tools/list", &json!({})), -32603);
    assert!(session.answer(&5.into(), Ok(object(&json!({"a": "x".repeat(17_000_000)})))));
    assert_eq!(sent_by_server(&mut session)[0]["error"]["code"], -32603, "too large");
}
