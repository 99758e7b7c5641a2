//! The client's end against servers that do not do what they should.

use serde_json::{Value, json};
use wharf_protocol::mcp::{
    McpAnswer, McpCallError, McpCallOptions, McpClientEvent, McpClientSession, McpStart,
};
use wharf_protocol::{Closed, Incoming, Session as _};
use wharf_wire::mcp_v1::{McpId, McpNotification, McpResultType};

use crate::stage::{at, call_tool, client, client_events, object, request, says, sent_by_client};

fn legacy() -> McpClientSession {
    let mut session = client(at(0), McpStart::Legacy);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"}});
    says(&mut session, at(0), &json!({"jsonrpc": "2.0", "id": 0, "result": hello}));
    sent_by_client(&mut session);
    client_events(&mut session);
    session
}

fn modern() -> McpClientSession {
    let mut session = client(at(0), McpStart::Modern);
    let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    says(&mut session, at(0), &json!({"jsonrpc": "2.0", "id": 0, "result": found}));
    sent_by_client(&mut session);
    client_events(&mut session);
    session
}

fn calls(session: &mut McpClientSession, method: &str, params: &Value) -> McpId {
    let options = McpCallOptions { timeout_ms: None, progress: true };
    session.call(at(0), &request(method, params), options).expect("made")
}

fn id_of(message: &Value) -> McpId {
    serde_json::from_value(message["id"].clone()).expect("an id")
}

fn answers(session: &mut McpClientSession) -> Vec<(McpId, McpAnswer)> {
    let answered = |event| match event {
        McpClientEvent::Answered { id, answer } => Some((id, answer)),
        _ => None,
    };
    client_events(session).into_iter().filter_map(answered).collect()
}

#[test]
fn m072_a_result_of_a_kind_that_the_request_has_not_is_a_violation() {
    let call = ("tools/call", json!({"name": "a"}));
    let read = ("resources/read", json!({"uri": "a:b"}));
    let list = ("tools/list", json!({}));
    for (asked, kind, fits) in [
        (&call, json!("complete"), true),
        (&call, json!("input_required"), true),
        (&call, json!("task"), true),
        (&call, json!("poem"), false),
        (&call, json!(7), false),
        (&read, json!("input_required"), true),
        (&read, json!("task"), false),
        (&list, json!("input_required"), false),
        (&list, json!("complete"), true),
    ] {
        let mut session = modern();
        let id = calls(&mut session, asked.0, &asked.1);
        let result = json!({"resultType": kind});
        says(&mut session, at(1), &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let answers = answers(&mut session);
        assert_eq!(answers.len(), 1);
        let is_result = matches!(answers[0].1, McpAnswer::Result { .. });
        assert_eq!(is_result, fits, "{} {kind}: {answers:?}", asked.0);
    }
    let mut session = legacy();
    let id = calls(&mut session, "tools/list", &json!({}));
    let odd = json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "poem"}});
    says(&mut session, at(1), &odd);
    let answers = answers(&mut session);
    let McpAnswer::Result { kind, .. } = &answers[0].1 else { panic!("{answers:?}") };
    assert_eq!(*kind, McpResultType::Complete, "legacy results have no kinds");
}

#[test]
fn m002_lying_ids_end_nothing_twice() {
    let mut session = legacy();
    let id = calls(&mut session, "tools/call", &json!({"name": "a"}));
    for unknown in [json!(99), json!("1"), json!(-1)] {
        says(&mut session, at(1), &json!({"jsonrpc": "2.0", "id": unknown, "result": {}}));
    }
    assert_eq!(session.counters().unknown_ids, 3);
    let answer = json!({"jsonrpc": "2.0", "id": 1.0, "result": {}});
    says(&mut session, at(1), &answer);
    says(&mut session, at(1), &answer);
    let answers = answers(&mut session);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, id);
    assert_eq!(session.counters().late, 1);
}

#[test]
fn m002_an_answer_that_cannot_be_read_ends_its_call() {
    let mut session = legacy();
    let id = calls(&mut session, "tools/call", &json!({"name": "a"}));
    let both =
        json!({"jsonrpc": "2.0", "id": id, "result": {}, "error": {"code": 1, "message": ""}});
    says(&mut session, at(1), &both);
    let answers = answers(&mut session);
    assert!(matches!(answers.as_slice(), [(_, McpAnswer::Violation(_))]), "{answers:?}");
}

#[test]
fn m065_progress_only_rises_and_belongs_to_a_call() {
    let mut session = legacy();
    let id = calls(&mut session, "tools/call", &json!({"name": "a"}));
    let sent = sent_by_client(&mut session);
    assert_eq!(sent[0]["params"]["_meta"]["progressToken"], json!(id));
    let mut told = 0;
    for (token, progress, counts) in [
        (json!(id), json!(1), true),
        (json!(id), json!(1), false),
        (json!(id), json!(0.5), false),
        (json!(id), json!(1.5), true),
        (json!("else"), json!(9), false),
    ] {
        let params = json!({"progressToken": token, "progress": progress});
        let method = "notifications/progress";
        says(&mut session, at(1), &json!({"jsonrpc": "2.0", "method": method, "params": params}));
        told += usize::from(counts);
    }
    let progress = client_events(&mut session);
    assert_eq!(progress.len(), told, "{progress:?}");
}

#[test]
fn m067_m068_only_what_was_declared_is_asked() {
    let mut session = legacy();
    let ask = |id: &str, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    says(&mut session, at(1), &ask("a", "roots/list", json!({})));
    says(&mut session, at(1), &ask("b", "elicitation/create", json!({"message": "?"})));
    says(&mut session, at(1), &ask("b", "elicitation/create", json!({"message": "twice"})));
    says(&mut session, at(1), &ask("c", "tasks/get", json!({"taskId": "t"})));
    says(&mut session, at(1), &ask("d", "tools/list", json!({})));
    says(&mut session, at(1), &ask("e", "elicitation/create", json!({"message": 7})));
    says(&mut session, at(1), &ask("f", "ping", json!({})));
    assert_eq!(session.asks_waiting(), 2);
    let errors: Vec<(String, i64)> = sent_by_client(&mut session)
        .iter()
        .map(|sent| (sent["id"].to_string(), sent["error"]["code"].as_i64().unwrap_or(0)))
        .collect();
    let expected = [("\"c\"", -32601), ("\"d\"", -32601), ("\"e\"", -32602), ("\"f\"", 0)];
    assert_eq!(errors, expected.map(|(id, code)| (id.to_owned(), code)));
    let canceled = json!({"requestId": "b", "reason": "elsewhere"});
    let method = "notifications/cancelled";
    says(&mut session, at(1), &json!({"jsonrpc": "2.0", "method": method, "params": canceled}));
    assert!(!session.answer(&"b".into(), Ok(object(&json!({})))), "it was taken back");
    assert!(session.answer(&"a".into(), Ok(object(&json!({"roots": []})))));
}

#[test]
fn m002_a_modern_server_may_not_ask() {
    let mut session = modern();
    says(&mut session, at(1), &json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
    assert!(client_events(&mut session).is_empty());
    assert!(sent_by_client(&mut session).is_empty(), "nor is it answered");
    assert_eq!(session.counters().violations, 1);
    assert!(!session.notify(&McpNotification::RootsChanged(Box::default())));
}

#[test]
fn m002_what_the_revision_has_not_is_not_asked() {
    let options = McpCallOptions::default();
    for (mut session, method, params) in [
        (legacy(), "server/discover", json!({})),
        (legacy(), "subscriptions/listen", json!({"notifications": {}})),
        (legacy(), "tasks/update", json!({"taskId": "t", "inputResponses": {}})),
        (modern(), "ping", json!({})),
        (modern(), "logging/setLevel", json!({"level": "info"})),
        (modern(), "resources/subscribe", json!({"uri": "a:b"})),
        (modern(), "tasks/result", json!({"taskId": "t"})),
    ] {
        let call = session.call(at(0), &request(method, &params), options);
        assert_eq!(call, Err(McpCallError::NotSpoken), "{method}");
    }
}

#[test]
fn m078_calls_are_bounded_in_number_and_size() {
    let mut session = legacy();
    for _ in 0..64 {
        calls(&mut session, "tools/list", &json!({}));
    }
    let call = session.call(at(0), &call_tool("a"), McpCallOptions::default());
    assert_eq!(call, Err(McpCallError::Full));
    let mut session = legacy();
    let big =
        request("tools/call", &json!({"name": "a", "arguments": {"a": "x".repeat(5_000_000)}}));
    let call = session.call(at(0), &big, McpCallOptions::default());
    assert_eq!(call, Err(McpCallError::TooLarge));
    assert_eq!(session.calls_waiting(), 0);
}

#[test]
fn m078_twenty_violations_a_minute_are_borne_and_no_more() {
    let wrong = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
    let mut session = legacy();
    for n in 0..60 {
        says(&mut session, at(n * 4_000), &wrong);
    }
    assert!(!session.is_closed(), "fifteen a minute");
    let mut session = legacy();
    for n in 0..20 {
        says(&mut session, at(n), &wrong);
    }
    assert!(!session.is_closed());
    says(&mut session, at(21), &wrong);
    assert!(session.is_closed());
}

#[test]
fn m045_a_hundred_lines_that_are_no_message_end_it() {
    let mut session = legacy();
    let id = calls(&mut session, "tools/list", &json!({}));
    for _ in 0..99 {
        session.receive(at(1), Incoming::Bytes(b"Server listening on stdio\n"));
    }
    assert!(!session.is_closed());
    let strays = client_events(&mut session);
    assert_eq!(strays.len(), 99);
    assert_eq!(strays[0], McpClientEvent::Stray("Server listening on stdio".to_owned()));
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}}).to_string() + "\n";
    session.receive(at(1), Incoming::Bytes(answer.as_bytes()));
    assert_eq!(answers(&mut session).len(), 1, "until then it works");
    session.receive(at(1), Incoming::Bytes(b"one more\n"));
    assert!(session.is_closed());
}

#[test]
fn m069_an_idle_legacy_server_is_pinged_and_three_misses_are_told() {
    let mut session = legacy();
    assert_eq!(session.deadline(), Some(30_000));
    session.tick(at(30_000));
    let ping = sent_by_client(&mut session);
    assert_eq!(ping[0]["method"], "ping");
    says(&mut session, at(30_010), &json!({"jsonrpc": "2.0", "id": ping[0]["id"], "result": {}}));
    assert!(client_events(&mut session).is_empty(), "its own calls are no events");
    let mut now = 30_010;
    let mut pings = 0;
    while client_events(&mut session).is_empty() {
        now = session.deadline().expect("more is to come").max(now);
        session.tick(at(now));
        pings += sent_by_client(&mut session).len();
        assert!(now < 300_000, "it never told");
    }
    assert!((3..=4).contains(&pings), "{pings}");
    assert!(now >= 30_010 + 4 * 30_000, "{now}");
    let mut session = legacy();
    calls(&mut session, "tools/call", &json!({"name": "a"}));
    assert_eq!(session.deadline(), None, "one that is at work is left alone");
    let mut session = modern();
    assert_eq!(session.deadline(), None);
    session.tick(at(1_000_000));
    assert!(sent_by_client(&mut session).is_empty(), "modern servers have no ping");
}

#[test]
fn m069_a_server_that_cannot_be_reached_is_not_asked_again_at_once() {
    let mut session = legacy();
    let mut now = 0;
    let mut pings = 0;
    while client_events(&mut session).is_empty() {
        now = session.deadline().expect("more is to come");
        session.tick(at(now));
        for ping in sent_by_client(&mut session) {
            pings += 1;
            session.lost(at(now), &id_of(&ping));
        }
        assert!(pings <= 3, "{pings} by {now}");
    }
    assert_eq!((pings, now), (3, 90_000), "three misses are told");
    let mut session = legacy();
    session.tick(at(30_000));
    let ping = sent_by_client(&mut session);
    session.refused(at(30_000), &id_of(&ping[0]), 405, None);
    assert_eq!(session.deadline(), Some(60_000), "one that says no is there");
    session.tick(at(60_000));
    session.end(at(60_001), Closed::Broken("gone".to_owned()));
    assert!(client_events(&mut session).is_empty());
}

#[test]
fn m064_over_http_the_stream_of_a_call_may_break_or_be_refused() {
    let mut session = modern();
    let lost = calls(&mut session, "tools/call", &json!({"name": "a"}));
    let refused = calls(&mut session, "tools/call", &json!({"name": "a"}));
    session.lost(at(1), &lost);
    session.lost(at(1), &lost);
    session.refused(at(1), &refused, 500, None);
    let expected = [(lost, McpAnswer::Lost), (refused, McpAnswer::Refused(500))];
    assert_eq!(answers(&mut session), expected);
}

#[test]
fn m041_a_subscription_tells_nothing_before_it_was_acknowledged() {
    let mut session = modern();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let id = calls(&mut session, "subscriptions/listen", &listen);
    let told = |method: &str, id: &McpId| {
        let params =
            json!({"notifications": {}, "_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    says(&mut session, at(1), &told("notifications/tools/list_changed", &id));
    assert!(client_events(&mut session).is_empty());
    says(&mut session, at(1), &told("notifications/subscriptions/acknowledged", &id));
    says(&mut session, at(1), &told("notifications/tools/list_changed", &id));
    says(&mut session, at(1), &told("notifications/tools/list_changed", &77.into()));
    assert_eq!(client_events(&mut session).len(), 2);
    let method = "notifications/cancelled";
    let canceled = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": id}});
    says(&mut session, at(1), &canceled);
    assert_eq!(answers(&mut session), [(id, McpAnswer::Canceled)], "the server ended it");
}
