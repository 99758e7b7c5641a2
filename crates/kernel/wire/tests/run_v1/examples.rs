//! The example files: ours are written byte for byte as they were read; the original protocol's
//! own may gain defaults and lose nothing.

use std::path::Path;

use serde_json::Value;
use wharf_wire::run_v1::{
    FirstFrame, Frame, FromServer, LaterFrame, decode_first, decode_from_server, decode_later,
    encode, encode_upstream, limits,
};

fn examples(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/run_v1").join(folder);
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("readable");
            examples.push((name, text.trim_end().to_owned()));
        }
    }
    assert!(examples.len() > 10, "the examples are found");
    examples
}

/// Reads a frame as the end that it is meant for reads it.
fn read(name: &str, text: &str) -> Frame {
    if name.starts_with("request") {
        return match decode_first(text, limits::FRAME_BYTES_MAX) {
            Ok(FirstFrame::Request(request)) => Frame::Request(*request),
            other => panic!("{name}: {other:?}"),
        };
    }
    if name.starts_with("cancel") {
        return match decode_later(text, limits::FRAME_BYTES_MAX) {
            Ok(LaterFrame::Cancel(cancel)) => Frame::Cancel(cancel),
            other => panic!("{name}: {other:?}"),
        };
    }
    if name.starts_with("stepped") {
        return match decode_later(text, limits::FRAME_BYTES_MAX) {
            Ok(LaterFrame::Stepped(stepped)) => Frame::Stepped(*stepped),
            other => panic!("{name}: {other:?}"),
        };
    }
    match decode_from_server(text) {
        Ok(FromServer::Ack(ack)) => Frame::Ack(ack),
        Ok(FromServer::Log(log)) => Frame::Log(log),
        Ok(FromServer::Event(event)) => Frame::Event(event),
        Ok(FromServer::Token(token)) => Frame::Token(token),
        Ok(FromServer::Step(step)) => Frame::Step(*step),
        Ok(FromServer::Response(response)) => Frame::Response(response),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn examples_are_written_as_they_were_read() {
    for (name, text) in examples("") {
        let frame = read(&name, &text);
        assert_eq!(encode(&frame), text, "{name}");
        assert_eq!(serde_json::from_str::<Frame>(&text).expect("JSON"), frame, "{name}");
    }
}

/// Whether everything in one value is in the other.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| holds(whole, part)))
        }
        (Value::Number(whole), Value::Number(part)) => whole.as_f64() == part.as_f64(),
        _ => whole == part,
    }
}

#[test]
fn t004_t008_t009_t010_the_original_examples_lose_nothing() {
    for (name, text) in examples("seed") {
        let frame = read(&name, &text);
        let written = encode(&frame);
        assert_eq!(read(&name, &written), frame, "{name}");
        let (written, text): (Value, Value) = (
            serde_json::from_str(&written).expect("JSON"),
            serde_json::from_str(&text).expect("JSON"),
        );
        assert!(holds(&written, &text), "{name}: {written}");
    }
}

#[test]
fn peers_of_the_half_migrated_wire_find_their_content() {
    let upstream = |name: &str| {
        let all = examples("");
        let (_, text) = all.iter().find(|(one, _)| one == name).expect("there");
        let text = encode_upstream(&read(name, text));
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    assert_eq!(upstream("ack")["content"]["run_id"], "abc-123");
    assert_eq!(upstream("ack")["control"]["run_id"], "abc-123");
    assert_eq!(upstream("event")["content"]["phase"], "started");
    assert_eq!(upstream("log")["content"]["msg"], "Processing frame 10");
    assert_eq!(upstream("log")["data"]["msg"], "Processing frame 10");
    assert_eq!(upstream("response").get("content"), None);
    assert_eq!(upstream("token")["content"]["text"], "wor\"ld");
}

#[test]
fn t008_frames_of_the_authors_software_lose_nothing_that_counts() {
    for (name, text) in examples("upstream") {
        let frame = read(&name, &text);
        let said: Value = serde_json::from_str(&text).expect("JSON");
        let content = &said["content"];
        match frame {
            Frame::Ack(ack) => {
                assert_eq!(ack.control.run_id.as_deref(), content["run_id"].as_str())
            }
            Frame::Log(log) => assert_eq!(Some(log.data.msg.as_str()), content["msg"].as_str()),
            Frame::Event(event) => {
                assert_eq!(Some(event.data.phase.as_str()), content["phase"].as_str(), "{name}");
            }
            Frame::Token(token) => {
                assert_eq!(Some(token.content.text.as_str()), content["text"].as_str());
            }
            Frame::Response(response) => {
                let status = &said["control"]["status"];
                let status = if status.is_null() { &said["status"] } else { status };
                assert_eq!(serde_json::json!(response.control.status), *status, "{name}");
                let code = response.error.map(|error| error.code);
                assert_eq!(code.as_deref(), said["error"]["code"].as_str(), "{name}");
                assert!(response.control.is_final, "{name}");
            }
            Frame::Request(request) => assert_eq!(request.control.run_id, "7"),
            Frame::Cancel(_) | Frame::Step(_) | Frame::Stepped(_) => {
                panic!("{name}: there is none")
            }
        }
    }
}

#[test]
fn the_stream_of_the_original_text_is_made_of_its_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/run_v1/seed");
    let stream = std::fs::read_to_string(folder.join("example3.jsonl")).expect("readable");
    let all = examples("seed");
    let frames: Vec<Value> =
        stream.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(frames.len(), 5);
    for frame in frames {
        let known = |(_, text): &(String, String)| {
            serde_json::from_str::<Value>(text).expect("JSON") == frame
        };
        assert!(all.iter().any(known), "{frame}");
    }
}

#[test]
fn t012_what_json_cannot_say_is_not_written() {
    for progress in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (_, text) = &examples("").into_iter().find(|(n, _)| n == "event.checkpoint").expect("");
        let Frame::Event(mut event) = read("event.checkpoint", text) else { panic!("an event") };
        event.data.progress = Some(progress);
        let written = encode(&Frame::Event(event));
        serde_json::from_str::<Value>(&written).expect("strict JSON");
    }
}
