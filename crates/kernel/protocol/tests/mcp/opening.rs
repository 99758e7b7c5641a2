//! How a connection begins: which era a server speaks, and the handshake.

use serde_json::{Value, json};
use wharf_protocol::mcp::{McpCallError, McpCallOptions, McpClientEvent, McpOpenError, McpStart};
use wharf_protocol::{Closed, Session as _};
use wharf_wire::mcp_v1::{McpError, McpRevision};

use crate::stage::{at, call_tool, client, client_events, says, sent_by_client};

fn result(id: i64, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: i64, code: i64, data: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "?", "data": data}})
}

fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version, "capabilities": {"tools": {}, "tasks": {"list": {}}},
        "serverInfo": {"name": "s", "version": "1"}, "instructions": "Mind the gap."
    })
}

fn ready(events: &[McpClientEvent]) -> McpRevision {
    match events {
        [McpClientEvent::Ready(peer)] => peer.revision,
        other => panic!("{other:?}"),
    }
}

fn failed(events: &[McpClientEvent]) -> McpOpenError {
    match events {
        [McpClientEvent::Failed(why)] => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn m050_a_server_that_discovers_is_modern() {
    let mut session = client(at(0), McpStart::Probe);
    let sent = sent_by_client(&mut session);
    assert_eq!(sent[0]["method"], "server/discover");
    let meta = &sent[0]["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "desk");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    let info = json!({"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}});
    let discovered = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2027-01-01"],
        "capabilities": {}, "ttlMs": 0, "cacheScope": "public", "_meta": info
    });
    says(&mut session, at(1), &result(0, &discovered));
    let events = client_events(&mut session);
    assert_eq!(ready(&events), McpRevision::V2026_07_28);
    let [McpClientEvent::Ready(peer)] = events.as_slice() else { panic!("ready") };
    assert_eq!(peer.info.as_ref().map(|info| info.name.as_str()), Some("s"));
    assert!(sent_by_client(&mut session).is_empty(), "no handshake follows");
}

#[test]
fn m050_any_other_answer_or_silence_is_legacy() {
    let plain = json!({});
    for answer in [
        Some(error(0, -32601, &plain)),
        Some(error(0, -32602, &plain)),
        Some(error(0, -32600, &plain)),
        Some(error(0, -32000, &plain)),
        Some(error(0, -32042, &plain)),
        Some(result(0, &json!({}))),
        Some(result(0, &json!({"supportedVersions": ["2025-11-25"], "capabilities": {}}))),
        Some(json!({"jsonrpc": "2.0", "id": 0, "result": 7})),
        None,
    ] {
        let mut session = client(at(0), McpStart::Probe);
        sent_by_client(&mut session);
        match &answer {
            Some(answer) => says(&mut session, at(1), answer),
            None => {
                assert_eq!(session.deadline(), Some(5_000));
                session.tick(at(4_999));
                assert!(sent_by_client(&mut session).is_empty());
                session.tick(at(5_000));
            }
        }
        let sent = sent_by_client(&mut session);
        assert_eq!(sent.len(), 1, "{answer:?}: {sent:?}");
        assert_eq!(sent[0]["method"], "initialize", "{answer:?}");
        assert_eq!(sent[0]["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(sent[0]["params"]["capabilities"].get("extensions"), None);
        says(&mut session, at(6_000), &result(1, &hello("2025-11-25")));
        assert_eq!(ready(&client_events(&mut session)), McpRevision::V2025_11_25);
        assert_eq!(sent_by_client(&mut session)[0]["method"], "notifications/initialized");
    }
}

#[test]
fn m050_a_late_discovery_changes_nothing() {
    let mut session = client(at(0), McpStart::Probe);
    session.tick(at(5_000));
    let modern = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    says(&mut session, at(5_001), &result(0, &modern));
    assert_eq!(session.counters().late, 1);
    says(&mut session, at(5_002), &result(1, &hello("2025-06-18")));
    assert_eq!(ready(&client_events(&mut session)), McpRevision::V2025_06_18);
}

#[test]
fn m050_a_slow_server_that_was_asked_to_be_modern_stays_so() {
    let mut session = client(at(0), McpStart::Probe);
    session.tick(at(5_000));
    sent_by_client(&mut session);
    let modern = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    says(&mut session, at(5_001), &result(0, &modern));
    let only = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    says(&mut session, at(5_002), &error(1, -32022, &only));
    assert_eq!(sent_by_client(&mut session)[0]["method"], "server/discover");
    says(&mut session, at(5_003), &result(2, &modern));
    assert_eq!(ready(&client_events(&mut session)), McpRevision::V2026_07_28);
    // One that answered before is not asked again.
    let mut session = client(at(0), McpStart::Probe);
    says(&mut session, at(1), &error(0, -32601, &json!({})));
    says(&mut session, at(2), &error(1, -32022, &only));
    assert!(matches!(failed(&client_events(&mut session)), McpOpenError::Refused(_)));
}

#[test]
fn m050_a_modern_error_without_a_version_to_share_ends_it() {
    for (code, data, expected) in [
        (-32020, json!({}), None),
        (-32021, json!({}), None),
        (-32022, json!({"supported": ["2099-01-01"]}), Some(McpOpenError::Version)),
        (-32022, json!({}), Some(McpOpenError::Version)),
    ] {
        let mut session = client(at(0), McpStart::Probe);
        says(&mut session, at(1), &error(0, code, &data));
        let why = failed(&client_events(&mut session));
        match expected {
            Some(expected) => assert_eq!(why, expected),
            None => assert!(matches!(why, McpOpenError::Refused(error) if error.code == code)),
        }
        assert!(session.is_closed());
    }
}

#[test]
fn m050_a_modern_version_that_a_modern_error_offers_is_taken_once() {
    let mut session = client(at(0), McpStart::Probe);
    sent_by_client(&mut session);
    let same = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
    says(&mut session, at(1), &error(0, -32022, &same));
    assert_eq!(sent_by_client(&mut session)[0]["method"], "server/discover");
    says(&mut session, at(2), &error(1, -32022, &same));
    assert_eq!(failed(&client_events(&mut session)), McpOpenError::Version);
}

#[test]
fn m050_a_legacy_version_that_a_modern_error_offers_is_taken() {
    let mut session = client(at(0), McpStart::Probe);
    sent_by_client(&mut session);
    let both = json!({"supported": ["2025-06-18", "2025-11-25"], "requested": "2026-07-28"});
    says(&mut session, at(1), &error(0, -32022, &both));
    let sent = sent_by_client(&mut session);
    assert_eq!(sent[0]["method"], "initialize", "what both speak is legacy");
    assert_eq!(sent[0]["params"]["protocolVersion"], "2025-11-25", "the newest of them");
}

#[test]
fn m050_a_server_that_ends_on_the_probe_is_tried_again_as_legacy() {
    let mut session = client(at(0), McpStart::Probe);
    session.end(at(1), Closed::ended());
    assert_eq!(failed(&client_events(&mut session)), McpOpenError::EndedOnProbe);
    let mut session = client(at(2), McpStart::Legacy);
    assert_eq!(sent_by_client(&mut session)[0]["method"], "initialize");
    session.end(at(3), Closed::ended());
    assert_eq!(failed(&client_events(&mut session)), McpOpenError::Ended);
}

#[test]
fn m050_over_http_a_status_decides() {
    let probe = || {
        let mut session = client(at(0), McpStart::Probe);
        sent_by_client(&mut session);
        session
    };
    for status in [400, 404, 405, 406, 415] {
        let mut session = probe();
        session.refused(at(1), &0.into(), status, None);
        assert_eq!(sent_by_client(&mut session)[0]["method"], "initialize", "{status}");
        session.refused(at(2), &1.into(), status, None);
        let expected = McpOpenError::HttpRefused(status);
        assert_eq!(failed(&client_events(&mut session)), expected);
    }
    let mut session = probe();
    session.refused(at(1), &0.into(), 503, None);
    assert_eq!(failed(&client_events(&mut session)), McpOpenError::HttpRefused(503));
    let mut session = probe();
    let error = McpError::new(-32020, "?");
    session.refused(at(1), &0.into(), 400, Some(error.clone()));
    assert_eq!(failed(&client_events(&mut session)), McpOpenError::Refused(error));
}

#[test]
fn m051_any_legacy_version_is_accepted_and_no_other() {
    for (version, accepted) in [
        ("2024-11-05", true),
        ("2025-03-26", true),
        ("2025-06-18", true),
        ("2025-11-25", true),
        ("2026-07-28", false),
        ("1900-01-01", false),
    ] {
        let mut session = client(at(0), McpStart::Legacy);
        says(&mut session, at(1), &result(0, &hello(version)));
        let events = client_events(&mut session);
        if !accepted {
            assert_eq!(failed(&events), McpOpenError::Version, "{version}");
            continue;
        }
        assert_eq!(ready(&events).as_str(), version);
        let [McpClientEvent::Ready(peer)] = events.as_slice() else { panic!("ready") };
        let has_tasks = peer.capabilities.tasks.is_some();
        assert_eq!(has_tasks, version == "2025-11-25", "what the revision has not is ignored");
    }
}

#[test]
fn m002_before_the_handshake_nothing_is_called_and_it_ends_in_time() {
    let mut session = client(at(0), McpStart::Legacy);
    let call = session.call(at(0), &call_tool("a"), McpCallOptions::default());
    assert_eq!(call, Err(McpCallError::NotReady));
    session.tick(at(60_000));
    assert_eq!(failed(&client_events(&mut session)), McpOpenError::Silent);
    let call = session.call(at(60_000), &call_tool("a"), McpCallOptions::default());
    assert_eq!(call, Err(McpCallError::Ended));
    for unfit in [json!({}), json!({"protocolVersion": 7})] {
        let mut session = client(at(0), McpStart::Legacy);
        says(&mut session, at(1), &result(0, &unfit));
        assert_eq!(failed(&client_events(&mut session)), McpOpenError::Unreadable);
    }
}
