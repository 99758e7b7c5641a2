//! Every message type has an example in `testdata/agent_v1`, and what is read from an example is
//! written as it was.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;
use wharf_wire::agent_v1::{
    AgentMessage, CoreMessage, DecodeError, EndMessage, Envelope, FrameDecoder, decode, encode,
};

/// The examples by the name of their file without `.json`.
fn examples() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/agent_v1");
    let mut examples = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("readable");
            examples.insert(name, serde_json::from_str(&text).expect("JSON"));
        }
    }
    examples
}

fn examples_of<M: EndMessage>() -> impl Iterator<Item = (String, Value)> {
    let ours = |kind: &str| M::TYPES.contains(&kind);
    examples().into_iter().filter(move |(_, value)| ours(value["type"].as_str().expect("typed")))
}

fn body<M: EndMessage>(envelope: &Envelope<M>) -> Vec<u8> {
    encode(envelope, FRAME_BYTES_MAX).expect("fits").split_off(4)
}

#[track_caller]
fn check_round_trips<M: EndMessage + std::fmt::Debug>() {
    for (name, example) in examples_of::<M>() {
        let read: Envelope<M> = decode(example.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let written: Value = serde_json::from_slice(&body(&read)).expect("JSON");
        assert_eq!(written, example, "{name}");
    }
}

#[test]
fn every_type_has_an_example_and_every_example_a_type() {
    let examples = examples();
    let types: Vec<&str> = [CoreMessage::TYPES, AgentMessage::TYPES].concat();
    for kind in &types {
        let example = examples.get(*kind).unwrap_or_else(|| panic!("{kind}.json is missing"));
        assert_eq!(example["type"], **kind);
    }
    for (name, example) in &examples {
        let kind = example["type"].as_str().expect("typed");
        assert!(types.contains(&kind), "{name}.json has an unknown type");
        assert!(name == kind || name.starts_with(&format!("{kind}.")), "{name}.json is misnamed");
    }
}

#[test]
fn examples_are_written_as_they_were_read() {
    check_round_trips::<CoreMessage>();
    check_round_trips::<AgentMessage>();
}

#[test]
fn r019_every_message_has_the_five_fields_of_an_envelope() {
    fn check<M: EndMessage + std::fmt::Debug>() {
        for (name, example) in examples_of::<M>() {
            let read: Envelope<M> = decode(example.to_string().as_bytes()).expect("reads");
            let written: Value = serde_json::from_slice(&body(&read)).expect("JSON");
            assert!(written["v"].is_i64(), "{name}");
            for field in ["type", "id", "ts"] {
                assert!(written[field].is_string(), "{name}: {field}");
            }
            assert!(written["payload"].is_object(), "{name}");
        }
    }
    check::<CoreMessage>();
    check::<AgentMessage>();
}

#[test]
fn r025_unknown_fields_are_ignored_in_every_message_type() {
    fn check<M: EndMessage + PartialEq + std::fmt::Debug>() {
        for (name, example) in examples_of::<M>() {
            let mut grown = example.clone();
            grown["from_the_future"] = json!({"deep": [1, {"x": null}]});
            grown["payload"]["from_the_future"] = json!([true, "x"]);
            let plain: Envelope<M> = decode(example.to_string().as_bytes()).expect("reads");
            let read: Envelope<M> = decode(grown.to_string().as_bytes())
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(read, plain, "{name}");
        }
    }
    check::<CoreMessage>();
    check::<AgentMessage>();
}

#[test]
fn r028_a_message_with_an_error_is_read_by_its_type() {
    let error = json!({"code": "tool.limit", "message": "Too much."});
    for (name, mut example) in examples_of::<AgentMessage>() {
        example["error"] = error.clone();
        let read: Envelope<AgentMessage> = decode(example.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(read.message.type_name(), example["type"], "{name}");
        assert_eq!(read.error.expect("kept").code, "tool.limit", "{name}");
    }
}

#[test]
fn r032_messages_of_the_other_end_are_told_apart() {
    for (name, example) in examples() {
        let text = example.to_string();
        let foreign = if name.starts_with("core.") {
            decode::<AgentMessage>(text.as_bytes()).expect_err("foreign")
        } else {
            decode::<CoreMessage>(text.as_bytes()).expect_err("foreign")
        };
        assert!(matches!(foreign, DecodeError::WrongDirection(_)), "{name}: {foreign:?}");
        assert_eq!(foreign.code().as_str(), "protocol.unexpected_message");
    }
}

#[test]
fn r052_a_token_is_shown_by_no_debug_output() {
    for (name, example) in examples_of::<AgentMessage>() {
        let read: Envelope<AgentMessage> = decode(example.to_string().as_bytes()).expect("reads");
        assert!(!format!("{read:?}").contains("example-token"), "{name}");
    }
}

#[test]
fn r001_golden_conversations_reparse_without_remainder_and_are_written_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/agent_v1");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).expect("readable");
        if name.ends_with(".core.bin") {
            check_conversation::<CoreMessage>(&name, &bytes);
        } else if name.ends_with(".agent.bin") {
            check_conversation::<AgentMessage>(&name, &bytes);
        } else {
            continue;
        }
        seen += 1;
    }
    assert!(seen >= 8, "the conversations are found");
}

fn check_conversation<M: EndMessage + std::fmt::Debug>(name: &str, bytes: &[u8]) {
    let mut frames = FrameDecoder::new(FRAME_BYTES_MAX);
    frames.push(bytes);
    let mut again = Vec::new();
    while let Some(frame) = frames.next_frame().expect("well framed") {
        let read: Envelope<M> = decode(frame).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        again.extend(encode(&read, FRAME_BYTES_MAX).expect("fits"));
    }
    frames.finish().expect("no remainder");
    assert!(again == bytes, "{name}");
}
