//! The headers of modern requests over HTTP.

use serde_json::{Value, json};
use wharf_vocab::Object;
use wharf_wire::mcp_v1::code;
use wharf_wire::mcp_v1::headers::{
    McpMirrorError, McpMirrored, check, decode, encode, mirrors, name_of, write,
};

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

#[test]
fn m007_values_are_written_so_that_every_reader_sees_the_same() {
    for (value, header) in [
        ("us-west1", "us-west1"),
        ("a b\tc", "a b\tc"),
        ("", ""),
        ("Grüße", "=?base64?R3LDvMOfZQ==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("one\ntwo", "=?base64?b25lCnR3bw==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?open", "=?base64?open"),
    ] {
        assert_eq!(encode(value), header, "{value}");
        assert_eq!(decode(header).as_deref(), Some(value), "{header}");
    }
    for bad in ["=?base64?***?=", "=?base64?/w==?=", "caf\u{e9}", "a\u{0}b", "a\r\nb"] {
        assert_eq!(decode(bad), None, "{bad}");
    }
    assert_eq!(decode("=?BASE64?YQ==?=").as_deref(), Some("=?BASE64?YQ==?="), "case matters");
}

fn schema() -> Object {
    object(&json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "deep": {"type": "object", "properties": {
                "on": {"type": "boolean", "x-mcp-header": "On"}
            }},
            "query": {"type": "string", "default": {"x-mcp-header": "no schema"}}
        }
    }))
}

#[test]
fn m053_annotations_are_found_and_judged() {
    let found = mirrors(&schema()).expect("good");
    let found: Vec<_> = found.iter().map(|it| (it.header.as_str(), it.path.join("."))).collect();
    let expected =
        [("mcp-param-n", "n"), ("mcp-param-on", "deep.on"), ("mcp-param-region", "region")];
    assert_eq!(found, expected.map(|(header, path)| (header, path.to_owned())));
    let property = |property: Value| object(&json!({"properties": {"a": property}}));
    for (schema, error) in [
        (property(json!({"type": "string", "x-mcp-header": ""})), McpMirrorError::Name),
        (property(json!({"type": "string", "x-mcp-header": "a b"})), McpMirrorError::Name),
        (property(json!({"type": "string", "x-mcp-header": 7})), McpMirrorError::Name),
        (property(json!({"type": "number", "x-mcp-header": "A"})), McpMirrorError::Type),
        (property(json!({"type": "object", "x-mcp-header": "A"})), McpMirrorError::Type),
        (
            property(json!({"items": {"type": "string", "x-mcp-header": "A"}})),
            McpMirrorError::Place,
        ),
        (property(json!({"anyOf": [{"x-mcp-header": "A"}]})), McpMirrorError::Place),
        (object(&json!({"$defs": {"a": {"x-mcp-header": "A"}}})), McpMirrorError::Place),
        (object(&json!({"type": "string", "x-mcp-header": "A"})), McpMirrorError::Place),
        (
            object(&json!({"properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"}
            }})),
            McpMirrorError::Twice,
        ),
    ] {
        assert_eq!(mirrors(&schema), Err(error), "{schema:?}");
    }
}

#[test]
fn m007_headers_and_body_must_say_the_same() {
    let mirrors = mirrors(&schema()).expect("good");
    let params = object(&json!({
        "name": "größe",
        "arguments": {"region": "eu", "n": 42, "deep": {"on": true}, "query": "x"}
    }));
    let body = McpMirrored {
        version: "2026-07-28",
        method: "tools/call",
        params: Some(&params),
        mirrors: &mirrors,
    };
    let written = write(body);
    let as_sent: Vec<(&str, &str)> =
        written.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(as_sent.len(), 6);
    assert_eq!(check(&as_sent, body), Ok(()), "{as_sent:?}");

    let with = |name: &str, value: Option<&'static str>| {
        let mut headers: Vec<(&str, &str)> = as_sent.clone();
        headers.retain(|(header, _)| *header != name);
        let name = as_sent.iter().map(|(it, _)| *it).find(|it| *it == name).unwrap_or("x-more");
        headers.extend(value.map(|value| (name, value)));
        check(&headers, body).map_err(|error| (error.code, error.message))
    };
    assert_eq!(with("mcp-param-n", Some("42.0")), Ok(()), "numbers are compared as numbers");
    for (name, value, wrong) in [
        ("mcp-protocol-version", None, "is missing"),
        ("mcp-protocol-version", Some("2025-11-25"), "differs from the body"),
        ("mcp-method", None, "is missing"),
        ("mcp-method", Some("Tools/call"), "differs from the body"),
        ("mcp-name", None, "is missing"),
        ("mcp-name", Some("other"), "differs from the body"),
        ("mcp-name", Some("=?base64?***?="), "differs from the body"),
        ("mcp-param-region", None, "differs from the body"),
        ("mcp-param-region", Some("us"), "differs from the body"),
        ("mcp-param-n", Some("43"), "differs from the body"),
        ("mcp-param-n", Some("x"), "differs from the body"),
        ("mcp-param-on", Some("True"), "differs from the body"),
    ] {
        let expected = (code::HEADER_MISMATCH, format!("The header `{name}` {wrong}."));
        assert_eq!(with(name, value), Err(expected), "{value:?}");
    }
    let mut twice = as_sent.clone();
    twice.push(("MCP-Method", "tools/call"));
    let error = check(&twice, body).expect_err("twice");
    assert_eq!(error.message, "The header `mcp-method` stands there twice.");
}

#[test]
fn m007_absent_and_null_properties_have_no_header() {
    let mirrors = mirrors(&schema()).expect("good");
    let params = object(&json!({"name": "a", "arguments": {"region": null}}));
    let (version, method) = ("2026-07-28", "tools/call");
    let body = McpMirrored { version, method, params: Some(&params), mirrors: &mirrors };
    assert_eq!(write(body).len(), 3);
    let mut headers =
        vec![("Mcp-Protocol-Version", version), ("Mcp-Method", method), ("Mcp-Name", "a")];
    assert_eq!(check(&headers, body), Ok(()));
    headers.push(("mcp-param-region", "eu"));
    assert!(check(&headers, body).is_err(), "a header without a value in the body");
}

#[test]
fn m007_names_come_from_where_the_method_has_them() {
    let params = object(&json!({"name": "n", "uri": "u", "taskId": "t"}));
    for (method, name) in [
        ("tools/call", Some("n")),
        ("prompts/get", Some("n")),
        ("resources/read", Some("u")),
        ("tasks/get", Some("t")),
        ("tasks/update", Some("t")),
        ("tools/list", None),
        ("server/discover", None),
    ] {
        assert_eq!(name_of(method, Some(&params)), name, "{method}");
    }
}
