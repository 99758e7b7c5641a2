//! Hostile input: envelopes that are none, and why.

use wharf_wire::mcp_v1::{McpId, McpMessage, McpUnreadable, McpUnreadableKind, code, limits};

fn unreadable(text: &str) -> McpUnreadable {
    McpMessage::read(text.as_bytes()).expect_err(text)
}

#[track_caller]
fn refused(text: &str, why: &str, id: Option<McpId>, is_answer: bool) {
    let refused = unreadable(text);
    assert_eq!(refused.to_error().message, why, "{text}");
    assert_eq!(refused.to_error().code, code::INVALID_REQUEST, "{text}");
    assert_eq!((refused.id, refused.is_answer), (id, is_answer), "{text}");
}

#[test]
fn m001_a_batch_is_refused() {
    for batch in ["[]", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#] {
        refused(batch, "Batches are not supported.", None, false);
    }
}

#[test]
fn m001_what_is_no_message_is_refused_with_the_reason() {
    let id = |id: i64| Some(McpId::from(id));
    for (text, why, of, is_answer) in [
        ("1", "A message is a JSON object.", None, false),
        (r#""x""#, "A message is a JSON object.", None, false),
        ("{}", "The message does not say that it is JSON-RPC 2.0.", None, false),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            "The message does not say that it is JSON-RPC 2.0.",
            id(1),
            false,
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, "The message has no method.", id(1), false),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            "The id is neither a text nor a whole number.",
            None,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
            "The id is neither a text nor a whole number.",
            None,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
            "The answer has both a result and an error.",
            id(1),
            true,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":7}"#, "The result is no JSON object.", id(1), true),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "The answer has no id.", None, true),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "The answer has no id.", None, true),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}"#,
            "The error has no code or no message.",
            id(1),
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":"c4nary"}"#,
            "The error has no code or no message.",
            id(1),
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            "The message is both a request and an answer.",
            id(1),
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            "The method is no text of bounded length.",
            id(1),
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            "The parameters are no JSON object.",
            id(1),
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            "A key of the message stands twice.",
            None,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":{"b":1,"\u0062":2}}}"#,
            "A key of the message stands twice.",
            None,
            false,
        ),
    ] {
        refused(text, why, of, is_answer);
    }
}

#[test]
fn m001_m078_depth_is_bounded_before_anything_is_built() {
    let nested = |depth: usize| {
        let inner = "[".repeat(depth) + &"]".repeat(depth);
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":{inner}}}}}"#)
    };
    assert!(McpMessage::read(nested(limits::NESTING_MAX - 2).as_bytes()).is_ok());
    for deep in [nested(limits::NESTING_MAX - 1), "[".repeat(1_000_000)] {
        assert_eq!(unreadable(&deep).kind, McpUnreadableKind::NoJson);
    }
    let brackets =
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":"{}"}}}}"#, "[{\\\"".repeat(99));
    assert!(McpMessage::read(brackets.as_bytes()).is_ok(), "texts do not count");
}

#[test]
fn m001_what_is_no_json_is_told_so() {
    for text in ["", "{", "{}{}", "nul", "\u{feff}{}", "{\"jsonrpc\":\"2.0\",}", "\0"] {
        assert_eq!(unreadable(text).kind, McpUnreadableKind::NoJson, "{text}");
        assert_eq!(unreadable(text).to_error().code, code::PARSE);
    }
    assert!(McpMessage::read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err());
}

#[test]
fn m001_an_id_is_written_as_it_is_meant() {
    let text = r#"{"jsonrpc":"2.0","id":1.0,"method":"ping","params":null,"extra":1}"#;
    let read = McpMessage::read(text.as_bytes()).expect("a message");
    assert_eq!(read.write(), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}"#;
    let read = McpMessage::read(text.as_bytes()).expect("a message");
    assert_eq!(read.write(), r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"x"}}"#);
}
