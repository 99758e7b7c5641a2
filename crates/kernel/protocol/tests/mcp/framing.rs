//! Lines: however bytes are cut, and however long they are.

use serde_json::json;
use wharf_protocol::mcp::{
    McpAnswer, McpCallOptions, McpClientConfig, McpClientEvent, McpClientSession, McpLimits,
    McpLine, McpLines, McpStart,
};
use wharf_protocol::{Incoming, Session as _};
use wharf_wire::mcp_v1::McpRequest;

use crate::stage::{at, call_tool, capabilities, client_events, says, who};

fn lines(bytes_max: usize, bytes: &[u8], cut: usize) -> Vec<McpLine> {
    let mut decoder = McpLines::new(bytes_max);
    for piece in bytes.chunks(cut) {
        decoder.push(piece);
        assert!(decoder.held() <= bytes_max);
    }
    std::iter::from_fn(|| decoder.pop()).collect()
}

#[test]
fn m045_lines_are_the_same_however_they_are_cut() {
    let whole = |text: &str| McpLine::Whole(text.as_bytes().to_vec());
    let bytes = "{\"a\":1}\n\n  \r\n{\"b\":\"\u{2028}ü\"}\r\nnot whole".as_bytes();
    for cut in 1..=bytes.len() {
        let expected = [whole("{\"a\":1}"), whole("{\"b\":\"\u{2028}ü\"}")];
        assert_eq!(lines(100, bytes, cut), expected, "{cut}");
    }
}

#[test]
fn m078_a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
    let long = json!({"jsonrpc": "2.0", "id": 3, "result": {"a": "x".repeat(200)}}).to_string();
    let bytes = format!("{long}\n{{}}\n");
    for cut in [1, 7, 100, 1_000] {
        let expected =
            [McpLine::TooLong { answers: Some(3.into()) }, McpLine::Whole(b"{}".to_vec())];
        assert_eq!(lines(100, bytes.as_bytes(), cut), expected, "{cut}");
    }
}

#[test]
fn m078_an_answer_that_is_too_large_fails_its_call_and_the_connection_lives() {
    let limits = McpLimits { read_bytes_max: 1_000, ..McpLimits::OF_CLIENT };
    let config = McpClientConfig { limits, ..McpClientConfig::new(who("c"), capabilities()) };
    let mut session = McpClientSession::new(at(0), config, McpStart::Modern);
    let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    says(&mut session, at(0), &json!({"jsonrpc": "2.0", "id": 0, "result": found}));
    let id = session.call(at(0), &call_tool("a"), McpCallOptions::default()).expect("made");
    client_events(&mut session);
    let result = json!({"content": [{"type": "text", "text": "x".repeat(5_000)}]});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string() + "\n";
    for piece in answer.as_bytes().chunks(64) {
        session.receive(at(1), Incoming::Bytes(piece));
    }
    let events = client_events(&mut session);
    let [McpClientEvent::Answered { answer: McpAnswer::Violation(_), .. }] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert!(!session.is_closed());
    session.call(at(1), &call_tool("a"), McpCallOptions::default()).expect("it goes on");
}

#[test]
fn m078_an_answer_that_is_too_deep_fails_its_call_unless_that_lists_tools() {
    let config = McpClientConfig::new(who("c"), capabilities());
    let mut session = McpClientSession::new(at(0), config, McpStart::Modern);
    let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    says(&mut session, at(0), &json!({"jsonrpc": "2.0", "id": 0, "result": found}));
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "not": inner }));
    let list = McpRequest::ToolsList(Box::default());
    let mut ends = |request: &McpRequest, result: serde_json::Value| {
        let id = session.call(at(0), request, McpCallOptions::default()).expect("made");
        client_events(&mut session);
        says(&mut session, at(1), &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let events = client_events(&mut session);
        assert!(!session.is_closed());
        match events.as_slice() {
            [McpClientEvent::Answered { answer, .. }] => answer.clone(),
            other => panic!("{other:?}"),
        }
    };
    let tools = |levels| json!({"tools": [{"name": "a", "inputSchema": deep(levels)}]});
    assert!(matches!(ends(&list, tools(100)), McpAnswer::Result { .. }));
    assert!(
        matches!(ends(&list, tools(200)), McpAnswer::Violation(_)),
        "it does not wait for ever"
    );
    let result = json!({"content": [], "structuredContent": deep(100)});
    assert!(matches!(ends(&call_tool("a"), result), McpAnswer::Violation(_)));
}
