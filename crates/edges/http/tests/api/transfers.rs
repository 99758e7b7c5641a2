//! Files on their way: without end in memory, from and to peers that are slow or leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use wharf_http::HttpLimits;
use wharf_vocab::limits::FILE_BYTES_MAX;

use crate::files::b3;
use crate::support::client::{Answer, Call};
use crate::support::{Edge, PATIENCE, eventually};

const SHORT: Duration = Duration::from_millis(200);
const FILE: &str = "/v1/worlds/default/files/big";
const MIB: usize = 1024 * 1024;

/// Sends the head of a request and no more.
async fn begin(edge: &Edge, call: Call) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(edge.server.addr()).await.expect("connects");
    stream.write_all(call.head().as_bytes()).await.expect("sends");
    BufReader::new(stream)
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 7).to_le_bytes()[0]).collect()
}

#[tokio::test]
async fn a_large_file_goes_in_and_out_unchanged() {
    let edge = Edge::start().await;
    let sent = content(10 * MIB);
    let hash = b3(&sent);
    let call = edge.call("PUT", FILE).bytes(sent.clone()).header("wharf-b3", &hash);
    let answer = call.send().await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let answer = edge.get(FILE).await;
    assert_eq!(answer.header("wharf-b3"), Some(hash.as_str()));
    assert!(answer.body == sent, "it comes back as it was sent");
    let half = edge.call("GET", FILE).header("range", "bytes=5242880-").send().await;
    assert!(half.body == sent[5 * MIB..], "and so does its second half");
}

#[tokio::test]
async fn a_file_that_is_not_what_was_written_never_arrives_whole() {
    let edge = Edge::start().await;
    for bytes in [1_000, 3 * MIB] {
        let mut sent = content(bytes);
        edge.call("PUT", FILE).bytes(sent.clone()).send().await;
        sent[bytes / 2] ^= 1;
        edge.objects.inner.damage("default/big", sent.clone());
        let call = edge.call("GET", FILE).header("connection", "close");
        let mut stream = begin(&edge, call).await;
        let mut got = Vec::new();
        // The connection ends, in whatever way.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut got)).await.expect("in time");
        let head = String::from_utf8_lossy(&got[..got.len().min(1_000)]).into_owned();
        if bytes < MIB {
            assert!(
                head.starts_with("HTTP/1.1 502") && head.contains("artifact.damaged"),
                "{head}"
            );
        } else {
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert!(got.len() < bytes, "all of it arrived");
        }
        let part = edge.call("GET", FILE).header("range", "bytes=0-9").send().await;
        assert_eq!(
            (part.status, part.body.as_slice()),
            (206, &sent[..10]),
            "parts are not checked"
        );
        let audit = edge.get("/v1/audit?limit=200").await.text();
        assert!(audit.contains("artifact.damaged"), "{audit}");
    }
}

#[tokio::test]
async fn a_file_without_a_length_is_taken() {
    let edge = Edge::start().await;
    let mut stream =
        begin(&edge, edge.call("PUT", FILE).header("transfer-encoding", "chunked")).await;
    for piece in ["5\r\nhello\r\n", "6\r\n world\r\n", "0\r\n\r\n"] {
        stream.get_mut().write_all(piece.as_bytes()).await.expect("sends");
    }
    let answer = Answer::read(&mut stream).await.expect("an answer");
    assert_eq!((answer.status, &answer.json()["bytes"]), (201, &serde_json::json!(11)));
}

/// Whoever sends one of these wants something kept that a plain write would replace.
#[tokio::test]
async fn a_part_or_a_condition_replaces_nothing() {
    let edge = Edge::start().await;
    edge.call("PUT", FILE).bytes(b"whole".to_vec()).send().await;
    for (name, value) in [
        ("Content-Range", "bytes 0-1/5"),
        ("If-None-Match", "*"),
        ("If-Match", "\"0000\""),
        ("If-Unmodified-Since", "Sun, 15 Nov 2026 10:00:00 GMT"),
    ] {
        let call = edge.call("PUT", FILE).bytes(b"xx".to_vec()).header(name, value);
        let error = call.send().await.refused(400, "request.invalid");
        assert_eq!(error["details"]["field"], name);
        assert_eq!(edge.get(FILE).await.text(), "whole", "{name}");
    }
}

#[tokio::test]
async fn a_store_that_is_slow_slows_its_sender_and_fills_no_memory() {
    let edge = Edge::start().await;
    edge.objects.set_open(false);
    // More than the system's own buffers take.
    let total = 48 * MIB;
    let stream =
        begin(&edge, edge.call("PUT", FILE).header("content-length", &total.to_string())).await;
    let (mut reader, mut writer) = stream.into_inner().into_split();
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let sending = tokio::spawn(async move {
        let piece = content(64 * 1024);
        for _ in 0..total / piece.len() {
            writer.write_all(&piece).await.expect("sends");
            counted.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
        writer
    });
    // Nothing is taken, so sending comes to a stop once all buffers on the way are full.
    let mut before = u64::MAX;
    while before != sent.load(Ordering::SeqCst) {
        before = sent.load(Ordering::SeqCst);
        sleep(SHORT).await;
    }
    assert!(before < total as u64, "the core took {before} bytes that nobody wanted");
    assert_eq!(edge.objects.taken(), 0);
    edge.objects.set_open(true);
    let writer = timeout(PATIENCE, sending).await.expect("in time").expect("sent");
    let mut head = vec![0; 12];
    reader.read_exact(&mut head).await.expect("an answer");
    assert_eq!(head, b"HTTP/1.1 201");
    drop(writer);
    assert_eq!(edge.objects.taken(), total as u64);
}

#[tokio::test]
async fn a_reader_that_is_slow_fills_no_memory_and_is_cut_off() {
    let limits =
        HttpLimits { write: SHORT, send_buffer_bytes: Some(64 * 1024), ..HttpLimits::default() };
    let edge = Edge::start_limited(limits).await;
    assert_eq!(edge.call("PUT", FILE).bytes(content(16 * MIB)).send().await.status, 201);
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16 * 1024).expect("set");
    let mut stream = socket.connect(edge.server.addr()).await.expect("connects");
    stream.write_all(edge.call("GET", FILE).head().as_bytes()).await.expect("sends");
    eventually(async || (edge.objects.given() > 0).then_some(())).await;
    // It reads nothing, so that nothing more is fetched once all buffers on the way are full.
    let mut before = u64::MAX;
    while before != edge.objects.given() {
        before = edge.objects.given();
        sleep(SHORT).await;
    }
    assert!(before < 4 * MIB as u64, "{before} bytes were fetched for somebody who reads nothing");
    let mut rest = Vec::new();
    // A reset is a close too.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed in time");
    assert!(rest.len() < 16 * MIB, "cut off");
}

#[tokio::test]
async fn a_sender_that_falls_silent_is_cut_off_and_leaves_nothing() {
    let edge =
        Edge::start_limited(HttpLimits { file_silence: SHORT, ..HttpLimits::default() }).await;
    let mut stream = begin(&edge, edge.call("PUT", FILE).header("content-length", "1000")).await;
    stream.get_mut().write_all(b"hello").await.expect("sends");
    let answer = Answer::read(&mut stream).await.expect("an answer");
    answer.refused(408, "request.timeout");
    edge.get(FILE).await.refused(404, "artifact.not_found");
    assert_eq!(edge.objects.keys(), [""; 0]);
}

#[tokio::test]
async fn a_file_may_take_longer_than_other_bodies() {
    let limits = HttpLimits { body_read: SHORT, file_silence: PATIENCE, ..HttpLimits::default() };
    let edge = Edge::start_limited(limits).await;
    let mut stream = begin(&edge, edge.call("PUT", FILE).header("content-length", "6")).await;
    for byte in b"slowly" {
        stream.get_mut().write_all(&[*byte]).await.expect("sends");
        sleep(SHORT / 4).await;
    }
    assert_eq!(Answer::read(&mut stream).await.expect("an answer").status, 201);
}

#[tokio::test]
async fn a_transfer_that_breaks_off_leaves_what_was_there() {
    let edge = Edge::start().await;
    assert_eq!(edge.call("PUT", FILE).bytes(b"old".to_vec()).send().await.status, 201);
    let mut stream = begin(&edge, edge.call("PUT", FILE).header("content-length", "1000000")).await;
    stream.get_mut().write_all(&content(500_000)).await.expect("sends");
    eventually(async || (edge.objects.taken() > 3).then_some(())).await;
    drop(stream);
    eventually(async || (edge.objects.broken() == 1).then_some(())).await;
    assert_eq!(edge.get(FILE).await.text(), "old");
    let shown = edge.get("/v1/worlds/default/usage").await.json();
    assert_eq!(shown["bytes"], 3);
}

#[tokio::test]
async fn a_client_can_ask_before_it_sends() {
    let edge = Edge::start().await;
    let call = |token: &str, path: &str, length: &str| {
        let call = edge.call("PUT", path).header("content-length", length);
        call.header("authorization", token).header("expect", "100-continue")
    };
    let owner = crate::support::bearer();
    let mut stream = begin(&edge, call(&owner, FILE, "5")).await;
    assert_eq!(Answer::read(&mut stream).await.expect("a first answer").status, 100);
    stream.get_mut().write_all(b"hello").await.expect("sends");
    assert_eq!(Answer::read(&mut stream).await.expect("an answer").status, 201);

    // Who is refused is told so at once, and need not send anything.
    let refused = [
        (call("Bearer x", FILE, "1000000000000"), 401, "auth.invalid"),
        (
            call(&owner, "/v1/worlds/default/files/a%2fb", "1000000000000"),
            422,
            "scope.path_invalid",
        ),
        (call(&owner, "/v1/worlds/none/files/a", "1000000000000"), 404, "world.not_found"),
        (call(&owner, FILE, &(FILE_BYTES_MAX + 1).to_string()), 413, "request.too_large"),
    ];
    for (call, status, code) in refused {
        let mut stream = begin(&edge, call).await;
        let answer = Answer::read(&mut stream).await.expect("an answer");
        answer.refused(status, code);
    }
    assert_eq!(edge.objects.taken(), 5);
}
