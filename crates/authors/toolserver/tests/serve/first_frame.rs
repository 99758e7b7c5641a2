//! The first frame, over a real socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::SinkExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;
use wharf_toolserver::{Call, Reporter};
use wharf_vocab::limits::{SOCKET_PINGS_FIRST_MAX, SOCKET_PINGS_MAX};

use super::kit::{Got, Stage, echo, request};

/// A stage whose handler counts how often it was asked.
async fn counting() -> (Stage, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let handler = move |call: Call, report: Reporter| {
        counted.fetch_add(1, Ordering::SeqCst);
        echo(call, report)
    };
    (Stage::with(handler, |options| options.limits.frame_bytes_max = 100_000).await, count)
}

#[track_caller]
fn closed(got: &Got, code: u16) {
    match got {
        Got::Close(found) => assert_eq!(*found, Some(code)),
        Got::Frame(frame) => panic!("a frame: {frame}"),
    }
}

#[tokio::test]
async fn t005_every_wrong_first_frame_closes_with_its_code() {
    let (stage, count) = counting().await;
    for (text, code) in [
        ("nope".to_owned(), 1007),
        ("{\"kind\":\"Request\"".to_owned(), 1007),
        ("[1]".to_owned(), 1002),
        ("null".to_owned(), 1002),
        (json!({"kind": "RunOpen", "control": {"run_id": "r"}}).to_string(), 1002),
        (json!({"kind": "Request"}).to_string(), 1008),
        (json!({"kind": "Request", "control": {"run_id": ""}}).to_string(), 1008),
        (format!("{}[]", " ".repeat(100_000)), 1009),
    ] {
        let mut client = stage.client().await;
        client.send_text(&text).await;
        closed(&client.next().await, code);
    }
    let mut client = stage.client().await;
    client.socket.send(Message::binary(b"{}".to_vec())).await.expect("sent");
    closed(&client.next().await, 1003);
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn t005_bytes_that_are_no_text_or_no_frame_are_told_too() {
    let (stage, _) = counting().await;
    let mut client = stage.client().await;
    // A masked text frame whose content is not UTF-8.
    let bytes = [0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe];
    client.socket.get_mut().write_all(&bytes).await.expect("written");
    closed(&client.next().await, 1007);
    let mut client = stage.client().await;
    // A reserved kind of frame.
    client.socket.get_mut().write_all(&[0x83, 0x80, 0, 0, 0, 0]).await.expect("written");
    closed(&client.next().await, 1002);
}

#[tokio::test]
async fn t003_a_client_that_says_nothing_is_told_and_closed() {
    let stage = Stage::with(echo, |options| options.limits.first_frame_ms = 50).await;
    let mut client = stage.client().await;
    closed(&client.next().await, 1008);
    let mut half = stage.client().await;
    // The head of a frame, and nothing of what it announces.
    half.socket.get_mut().write_all(&[0x81, 0xfe, 0x10]).await.expect("written");
    closed(&half.next().await, 1008);
}

#[tokio::test]
async fn t004_an_unknown_mode_spends_nothing() {
    let (stage, count) = counting().await;
    for mode in [json!("REAL"), json!("live"), json!(1)] {
        let mut asked = request("r", json!({}));
        asked["control"]["mode"] = mode;
        let heard = stage.run(&asked).await;
        assert_eq!(heard.kinds(), ["Ack", "Response"]);
        assert_eq!((heard.code(), heard.close), ("ERR_INPUTS", Some(1000)));
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn t006_inputs_and_outputs_are_objects_or_nothing() {
    let (stage, count) = counting().await;
    for wrong in [json!([]), json!("x"), json!(7)] {
        for side in ["inputs", "outputs"] {
            let mut asked = request("r", json!({}));
            asked[side] = wrong.clone();
            let heard = stage.run(&asked).await;
            assert_eq!((heard.code(), heard.close), ("ERR_INPUTS", Some(1000)));
        }
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let mut bare = request("r", json!({}));
    bare["inputs"] = Value::Null;
    bare.as_object_mut().expect("an object").remove("outputs");
    assert_eq!(stage.run(&bare).await.end()["outputs"], json!({}));
}

#[tokio::test]
async fn t007_the_acknowledgment_comes_first_and_once() {
    let (stage, _) = counting().await;
    let heard = stage.run(&request("r", json!({"x": 1}))).await;
    assert_eq!(heard.frames[0], json!({"kind": "Ack", "control": {"run_id": "r"}}));
    assert_eq!(heard.kinds(), ["Ack", "started", "Response", "completed"]);
    assert_eq!(heard.close, Some(1000));
}

#[tokio::test]
async fn a_flood_of_pings_before_the_request_is_ended() {
    let stage = Stage::with(echo, |_| {}).await;
    let (answered, close) = stage.client().await.flood().await;
    assert!(answered <= SOCKET_PINGS_FIRST_MAX, "{answered}");
    assert!(matches!(close, None | Some(1008)), "{close:?}");
}

#[tokio::test]
async fn a_flood_of_pings_beside_a_run_is_ended_and_the_run_goes_on() {
    let stage = Stage::with(echo, |_| {}).await;
    let mut client = stage.ask(&request("flood", json!({"n": 1}))).await;
    assert_eq!(client.frame().await["kind"], "Ack");
    let (answered, close) = client.flood().await;
    assert!(answered <= SOCKET_PINGS_MAX, "{answered}");
    assert!(matches!(close, None | Some(1000 | 1008)), "{close:?}");
    let end = stage.run(&request("flood", json!({"n": 1}))).await;
    assert_eq!(end.code(), "", "the run was not lost: {end:?}");
}
