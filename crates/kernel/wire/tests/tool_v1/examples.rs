//! The example files: every message, enveloped and bare, is written byte for byte as it was read;
//! and the frames of the original protocol are written as its peers know them.

use std::path::Path;

use serde_json::{Value, json};
use wharf_wire::tool_v1::{Kind, Offer, Response, ToolMessage, method};

fn examples(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tool_v1").join(folder);
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("readable");
            examples.push((name, text.trim_end().to_owned()));
        }
    }
    examples.sort();
    examples
}

fn read(name: &str, text: &str) -> ToolMessage {
    ToolMessage::read(text).unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

/// What kind of message it is.
fn kind(message: &ToolMessage) -> &'static str {
    match message {
        ToolMessage::Request(_) => "request",
        ToolMessage::Child { .. } => "child",
        ToolMessage::Progress { .. } => "progress",
        ToolMessage::Response { .. } => "response",
        ToolMessage::Cancel { .. } => "cancel",
        ToolMessage::Offer(_) => "offer",
        ToolMessage::Offered(_) => "offered",
        ToolMessage::Unknown => "unknown",
    }
}

#[test]
fn k023_examples_are_written_as_they_were_read() {
    let examples = examples("");
    let mut kinds: Vec<&str> = Vec::new();
    for (name, text) in &examples {
        let message = read(name, text);
        let is_bare = !text.starts_with(r#"{"type":"#);
        assert_eq!(is_bare, name.ends_with(".bare"), "{name}");
        assert_eq!(message.write(true, is_bare), *text, "{name}");
        assert_eq!(kind(&message), name.split('.').next().expect("a word"), "{name}");
        kinds.push(kind(&message));
    }
    kinds.dedup();
    let all = ["cancel", "child", "offer", "offered", "progress", "request", "response"];
    assert_eq!(kinds, all, "every message has an example");
}

#[test]
fn k023_requests_mean_the_same_with_and_without_an_envelope() {
    let pairs = [("request", "request.bare"), ("request.sample", "request.sample.bare")];
    let texts: std::collections::BTreeMap<_, _> = examples("").into_iter().collect();
    for (enveloped, bare) in pairs {
        let (ToolMessage::Request(a), ToolMessage::Request(b)) =
            (read(enveloped, &texts[enveloped]), read(bare, &texts[bare]))
        else {
            panic!("{enveloped} is no request");
        };
        assert_eq!((&a.id, a.kind, &a.method), (&b.id, b.kind, &b.method));
        let bare_again = ToolMessage::Request(a).write(true, true);
        assert!(bare_again.starts_with(r#"{"id":"#), "{bare_again}");
        let enveloped_again = ToolMessage::Request(b).write(true, false);
        assert!(enveloped_again.starts_with(r#"{"type":"request""#), "{enveloped_again}");
    }
    let methods = [("request.form", method::FORM), ("request.confirmation.bare", "confirmation")];
    for (name, expected) in methods {
        let ToolMessage::Request(request) = read(name, &texts[name]) else { panic!("{name}") };
        assert_eq!((request.kind, request.method.as_str()), (Kind::Elicit, expected));
    }
    let ToolMessage::Request(told) = read("notification", &texts["request.notification"]) else {
        panic!("it is a request");
    };
    assert_eq!((told.kind, told.method.as_str()), (Kind::Notify, method::NOTIFICATION));
}

#[test]
fn k024_k028_k036_a_plain_peer_is_sent_only_keys_that_it_knows() {
    let allowed = |kind: &str| -> &'static [&'static str] {
        match kind {
            "request" => &["type", "payload"],
            "progress" => &["type", "id", "data"],
            "response" => &["type", "id", "response"],
            "cancel" => &["type", "id"],
            // Types of their own, which plain peers ignore.
            _ => &["type", "of", "payload", "tools", "error"],
        }
    };
    for (name, text) in examples("") {
        let message = read(&name, &text);
        let written: Value =
            serde_json::from_str(&message.write(false, false)).expect("what is written is JSON");
        let keys = written.as_object().expect("an object").keys();
        for key in keys {
            assert!(allowed(kind(&message)).contains(&key.as_str()), "{name}: {key}");
        }
        assert_eq!(written["response"].get("fault"), None, "{name}");
    }
}

#[test]
fn k036_what_was_spent_is_read_beside_data_and_response_or_alone() {
    let texts: std::collections::BTreeMap<_, _> = examples("").into_iter().collect();
    let progress = |name: &str| match read(name, &texts[name]) {
        ToolMessage::Progress { data, cost_micro, .. } => (data, cost_micro),
        other => panic!("{other:?}"),
    };
    assert_eq!(progress("progress.cost"), (None, Some(500)));
    assert_eq!(progress("progress.data_and_cost"), (Some(json!(0.5)), Some(900)));
    assert_eq!(progress("progress.null"), (Some(Value::Null), None));
    let bare = r#"{"type":"progress","id":"r1"}"#;
    let said_nothing =
        ToolMessage::Progress { id: "r1".to_owned(), data: Some(Value::Null), cost_micro: None };
    assert_eq!(read("without data", bare), said_nothing);
    for name in ["response.cost", "response.fault_and_cost"] {
        let ToolMessage::Response { cost_micro, .. } = read(name, &texts[name]) else {
            panic!("{name}");
        };
        assert_eq!(cost_micro, Some(1200), "{name}");
    }
    for no_cost in ["-1", "0.5", "\"12\"", "null", "{}"] {
        let text = format!(
            r#"{{"type":"response","id":"a","response":{{"ok":true}},"cost_micro":{no_cost}}}"#
        );
        let ToolMessage::Response { cost_micro, response, .. } = read("no cost", &text) else {
            panic!("{text}");
        };
        assert_eq!((cost_micro, response), (None, Response::Ok), "{no_cost}");
    }
}

#[test]
fn k023_k024_the_original_frames_are_read_and_written_word_by_word() {
    let examples = examples("seed");
    assert_eq!(examples.len(), 5);
    for (name, text) in examples {
        let is_bare = name == "request";
        for marked in [false, true] {
            assert_eq!(read(&name, &text).write(marked, is_bare), text, "{name}");
        }
    }
}

#[test]
fn k032_an_offer_is_answered_by_names_or_by_an_error() {
    let texts: std::collections::BTreeMap<_, _> = examples("").into_iter().collect();
    let ToolMessage::Offer(tools) = read("offer", &texts["offer"]) else { panic!("no offer") };
    assert_eq!(tools.len(), 2);
    assert_eq!(tools[1].input, json!(true));
    assert_eq!((&tools[1].output, &tools[1].progress), (&None, &None));
    let ToolMessage::Offered(Offer::Tools(ids)) = read("offered", &texts["offered"]) else {
        panic!("no names");
    };
    assert_eq!(ids, ["browser/get-location", "browser/ring"]);
    let ToolMessage::Offered(Offer::Error { code, .. }) =
        read("offered.error", &texts["offered.error"])
    else {
        panic!("no error");
    };
    assert_eq!(code, "tool.schema_invalid");
}
