//! What is open over HTTP, and how a WebSocket is accepted.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::kit::{Stage, echo, request, wait};

#[tokio::test]
async fn t001_health_tells_the_digest_and_nothing_else_is_open() {
    let stage = Stage::new(echo).await;
    let (status, body) = stage.http("GET /healthz HTTP/1.1").await;
    assert_eq!(status, 200);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body, json!({"ok": true, "digest": "b3:test"}));
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        assert_eq!(stage.http(&format!("{method} /healthz HTTP/1.1")).await.0, 405, "{method}");
    }
    for path in ["/", "/metrics", "/healthz/", "/run/", "/runs", "/docs", "/openapi.json"] {
        assert_eq!(stage.http(&format!("GET {path} HTTP/1.1")).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn t001_the_digest_can_be_given() {
    let stage = Stage::with(echo, |options| options.digest = Some("sha256:x".into())).await;
    assert!(stage.http("GET /healthz HTTP/1.1").await.1.contains("sha256:x"));
}

#[tokio::test]
async fn t001_health_answers_while_every_slot_is_taken() {
    let stage = Stage::with(wait, |options| options.concurrency = 1).await;
    let mut busy = Vec::new();
    for n in 0..20 {
        busy.push(stage.ask(&request(&format!("r{n}"), json!({}))).await);
    }
    assert_eq!(stage.http("GET /healthz HTTP/1.1").await.0, 200);
}

const KEY: &str = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
const UPGRADE: &str = "upgrade: websocket\r\nconnection: keep-alive, Upgrade";

/// The head of the answer to a handshake that is written by hand.
async fn shake(stage: &Stage, lines: &str) -> String {
    let mut stream = stage.tcp().await;
    let text = format!("GET /run HTTP/1.1\r\nhost: {}\r\n{lines}\r\n\r\n", stage.address);
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("text").to_ascii_lowercase()
}

#[tokio::test]
async fn t002_the_subprotocol_is_found_in_any_list_and_echoed_alone() {
    let stage = Stage::new(echo).await;
    for offer in [
        "sec-websocket-protocol: theory.run.v1",
        "sec-websocket-protocol: chat,  theory.run.v1 , other",
        "sec-websocket-protocol: chat\r\nsec-websocket-protocol: theory.run.v1",
    ] {
        let head =
            shake(&stage, &format!("{UPGRADE}\r\nsec-websocket-version: 13\r\n{KEY}\r\n{offer}"))
                .await;
        assert!(head.starts_with("http/1.1 101"), "{offer}: {head}");
        assert!(head.contains("sec-websocket-protocol: theory.run.v1\r\n"), "{head}");
        assert!(head.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    }
}

#[tokio::test]
async fn t002_everything_else_is_refused_before_it_is_accepted() {
    let stage = Stage::new(echo).await;
    let good = "sec-websocket-protocol: theory.run.v1";
    let version = "sec-websocket-version: 13";
    for (lines, status) in [
        (format!("{UPGRADE}\r\n{version}\r\n{KEY}"), "400"),
        (
            format!("{UPGRADE}\r\n{version}\r\n{KEY}\r\nsec-websocket-protocol: theory.run.v2"),
            "400",
        ),
        (
            format!("{UPGRADE}\r\n{version}\r\n{KEY}\r\nsec-websocket-protocol: THEORY.RUN.V1"),
            "400",
        ),
        (
            format!("{UPGRADE}\r\n{version}\r\n{KEY}\r\nsec-websocket-protocol: theory.run.v10"),
            "400",
        ),
        (format!("{UPGRADE}\r\n{version}\r\nsec-websocket-key: short\r\n{good}"), "400"),
        (format!("{UPGRADE}\r\nsec-websocket-version: 8\r\n{KEY}\r\n{good}"), "426"),
        (format!("{version}\r\n{KEY}\r\n{good}"), "426"),
        (format!("upgrade: h2c\r\nconnection: upgrade\r\n{version}\r\n{KEY}\r\n{good}"), "426"),
    ] {
        let head = shake(&stage, &lines).await;
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{lines}: {head}");
    }
    assert_eq!(stage.http("POST /run HTTP/1.1").await.0, 405);
}

#[tokio::test]
async fn a_peer_that_is_no_client_hurts_nobody() {
    let stage = Stage::new(echo).await;
    let mut stuck = stage.tcp().await;
    stuck.write_all(b"GET /healthz HT").await.expect("written");
    let mut noise = stage.tcp().await;
    noise.write_all(&[0x16, 3, 1, 0, 200, 255]).await.expect("written");
    let heard = stage.run(&request("r", json!({"a": 1}))).await;
    assert_eq!(heard.end()["outputs"], json!({"a": 1}));
}
