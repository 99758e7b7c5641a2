//! Peers that are slow, stalled or too many.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use wharf_http::HttpLimits;

use crate::support::client::{Answer, Call};
use crate::support::{Edge, PATIENCE, eventually};

/// Short for a peer that does nothing, long for one that a busy machine holds up.
const SHORT: Duration = Duration::from_millis(500);

async fn connect(edge: &Edge) -> TcpStream {
    TcpStream::connect(edge.server.addr()).await.expect("connects")
}

/// Waits until the core has closed the connection; what it still sent is given back.
async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut sent = Vec::new();
    // A reset is a close too.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut sent)).await.expect("closed in time");
    sent
}

#[tokio::test]
async fn a_head_that_trickles_is_cut_off() {
    let edge = Edge::start_limited(HttpLimits { head_read: SHORT, ..HttpLimits::default() }).await;
    let (mut reader, mut writer) = connect(&edge).await.into_split();
    let trickle = async {
        for byte in b"GET /v1/tools HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'x')) {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(SHORT / 10).await;
        }
    };
    let mut sent = Vec::new();
    tokio::select! {
        () = trickle => {}
        closed = timeout(PATIENCE, reader.read_to_end(&mut sent)) => {
            // A reset is a close too.
            let _ = closed.expect("cut off in time");
        }
    }
    assert_eq!(edge.get("/v1/tools").await.status, 200);
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_let_go() {
    let edge = Edge::start_limited(HttpLimits { head_read: SHORT, ..HttpLimits::default() }).await;
    assert_eq!(until_closed(&mut connect(&edge).await).await, b"");
}

#[tokio::test]
async fn a_connection_is_reused_but_not_kept_for_ever() {
    let limits = HttpLimits { idle: SHORT * 5, head_read: PATIENCE, ..HttpLimits::default() };
    let edge = Edge::start_limited(limits).await;
    let mut stream = BufReader::new(connect(&edge).await);
    for _ in 0..3 {
        let head = edge.call("GET", "/v1/tools").head();
        stream.get_mut().write_all(head.as_bytes()).await.expect("sends");
        assert_eq!(Answer::read(&mut stream).await.expect("an answer").status, 200);
        // Far shorter than the limit.
        sleep(SHORT / 10).await;
    }
    assert_eq!(until_closed(stream.get_mut()).await, b"");
}

#[tokio::test]
async fn a_request_that_takes_long_is_not_taken_for_silence() {
    let limits = HttpLimits { idle: SHORT, head_read: SHORT, ..HttpLimits::default() };
    let edge = Edge::start_limited(limits).await;
    let began = Instant::now();
    let answer = edge.run("wharf/sleep", json!({"ms": 1_500})).await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("succeeded")));
    assert!(began.elapsed() > SHORT * 2);
}

#[tokio::test]
async fn a_body_that_trickles_gets_a_timeout() {
    let edge = Edge::start_limited(HttpLimits { body_read: SHORT, ..HttpLimits::default() }).await;
    let head = edge.call("POST", "/v1/runs").header("content-length", "1000").head();
    let mut stream = connect(&edge).await;
    stream.write_all(head.as_bytes()).await.expect("sends");
    let (reader, mut writer) = stream.into_split();
    let trickle = async {
        loop {
            if writer.write_all(b" ").await.is_err() {
                std::future::pending::<()>().await;
            }
            sleep(SHORT / 10).await;
        }
    };
    let mut text = Vec::new();
    let read = async {
        let mut reader = reader;
        let mut byte = [0; 1024];
        while !text.ends_with(b"}}") {
            let count = reader.read(&mut byte).await.expect("an answer");
            assert_ne!(count, 0, "closed without an answer");
            text.extend_from_slice(&byte[..count]);
        }
    };
    tokio::select! {
        () = trickle => {}
        read = timeout(PATIENCE, read) => read.expect("answered in time"),
    }
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("request.timeout"), "{text}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let edge =
        Edge::start_limited(HttpLimits { connections_max: 2, ..HttpLimits::default() }).await;
    let call = || Call::new(edge.server.addr(), "GET", "/healthz").head();
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = BufReader::new(connect(&edge).await);
        stream.get_mut().write_all(call().as_bytes()).await.expect("sends");
        assert_eq!(Answer::read(&mut stream).await.expect("an answer").status, 200);
        held.push(stream);
    }
    let mut third = BufReader::new(connect(&edge).await);
    third.get_mut().write_all(call().as_bytes()).await.expect("sends");
    assert!(timeout(SHORT, third.read_u8()).await.is_err(), "answered beyond the limit");
    held.pop();
    let answer = Answer::read(&mut third).await.expect("an answer");
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn bodies_share_a_bounded_memory() {
    let limits =
        HttpLimits { bodies_bytes_max: 8 * 1024, body_read: SHORT, ..HttpLimits::default() };
    let edge = Edge::start_limited(limits).await;
    // This one takes all the memory there is and never comes.
    let head = edge.call("POST", "/v1/runs").header("content-length", "8192").head();
    let mut hog = connect(&edge).await;
    hog.write_all(head.as_bytes()).await.expect("sends");
    let answers = async {
        loop {
            let answer = edge.run("wharf/echo", json!({})).await;
            if answer.status == 503 {
                break answer;
            }
        }
    };
    // Whoever comes then is told to come again, until the slow one is let go.
    let busy = tokio::select! {
        answer = answers => Some(answer),
        sent = until_closed(&mut hog) => {
            assert!(String::from_utf8_lossy(&sent).contains("request.timeout"));
            None
        }
    };
    if let Some(busy) = busy {
        busy.refused(503, "core.busy");
    }
    eventually(async || (edge.run("wharf/echo", json!({})).await.status == 200).then_some(()))
        .await;
}

#[tokio::test]
async fn a_stalled_reader_is_let_go_and_slows_nobody() {
    let limits = HttpLimits {
        write: SHORT,
        send_buffer_bytes: Some(16 * 1024),
        keep_alive: PATIENCE,
        ..HttpLimits::default()
    };
    let edge = Edge::start_limited(limits).await;
    let run = edge.begin("wharf/count", json!({"n": 20_000, "delay_ms": 0})).await;

    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 * 1024).expect("set");
    let mut stalled = socket.connect(edge.server.addr()).await.expect("connects");
    let head = edge.call("GET", &format!("/v1/runs/{run}/events")).head();
    stalled.write_all(head.as_bytes()).await.expect("sends");

    // Others read the same run to its end meanwhile, and the run is not slowed.
    let events = edge.events(&run, "").await.rest().await;
    let last = events.last().expect("an end");
    assert_eq!((last.event.as_str(), &last.data["status"]), ("finished", &json!("succeeded")));
    assert_eq!(edge.get("/v1/tools").await.status, 200);

    // The stalled one finds far less than the whole story, and then the end of the connection.
    // It takes nothing for much longer than it may.
    sleep(SHORT * 10).await;
    let sent = until_closed(&mut stalled).await;
    let text = String::from_utf8_lossy(&sent);
    assert!(!text.contains("event: finished"), "it was never stalled: {} bytes", sent.len());
    assert!(sent.len() < 1024 * 1024, "{} bytes were buffered for it", sent.len());
}

#[tokio::test]
async fn answers_that_nobody_reads_share_a_bounded_memory() {
    let limits = HttpLimits {
        answers_bytes_max: 4 * 1024 * 1024,
        send_buffer_bytes: Some(16 * 1024),
        ..HttpLimits::default()
    };
    let edge = Edge::start_limited(limits).await;
    let run = edge.begin("wharf/echo", json!({"text": "x".repeat(700_000)})).await;
    edge.until(&run, "succeeded").await;
    let path = format!("/v1/runs/{run}");
    let mut unread = Vec::new();
    // Each holds about 1.4 MB: inputs and outputs. One token may have the half.
    for _ in 0..2 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4 * 1024).expect("set");
        let mut stalled = socket.connect(edge.server.addr()).await.expect("connects");
        let head = edge.call("GET", &path).head();
        stalled.write_all(head.as_bytes()).await.expect("sends");
        let mut first = [0; 1];
        stalled.read_exact(&mut first).await.expect("the answer begins");
        unread.push(stalled);
    }
    edge.get(&path).await.refused(503, "core.busy");
    assert_eq!(edge.get("/healthz").await.status, 200, "what is small goes");
    let other = edge.token(json!({"verbs": ["read"]})).await;
    let other = other["token"].as_str().expect("a token");
    let answer = edge.call_as(other, "GET", &path).send().await;
    assert_eq!(answer.status, 200, "another token has its own share");
    drop(unread);
    eventually(async || (edge.get(&path).await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn whoever_is_refused_early_is_told_that_the_connection_ends() {
    let edge = Edge::start().await;
    let addr = edge.server.addr();
    for (request, status) in [
        // What hyper refuses by itself.
        ("GET /v1/tools HTTP/1.1\r\nbad header\r\n\r\n".to_owned(), 400),
        ("NO\u{1}PE / HTTP/1.1\r\n\r\n".to_owned(), 400),
        // What is refused before its body has come.
        (format!("POST /v1/runs HTTP/1.1\r\nhost: {addr}\r\ncontent-length: 100\r\n\r\nxx"), 401),
        (
            "POST /v1/runs HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 9\r\n\r\nxx"
                .to_owned(),
            421,
        ),
    ] {
        let mut stream = connect(&edge).await;
        // A connection that was used before.
        let good = edge.call("GET", "/healthz").head();
        stream.write_all(good.as_bytes()).await.expect("sends");
        let mut some = [0; 4096];
        let count = stream.read(&mut some).await.expect("answered");
        assert!(some[..count].starts_with(b"HTTP/1.1 200"));
        stream.write_all(request.as_bytes()).await.expect("sends");
        stream.shutdown().await.expect("no more");
        let answer = String::from_utf8(until_closed(&mut stream).await).expect("text");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        let head = answer.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
        assert!(head.contains("connection: close"), "{request:?}: {answer}");
    }
}

#[tokio::test]
async fn what_is_sent_ahead_waits_in_the_peers_own_buffers() {
    let edge = Edge::start().await;
    // A request that is not answered for long, and more behind it than is ever read ahead.
    let run = edge.begin("wharf/sleep", json!({"ms": 600_000})).await;
    let waits = edge.call("GET", &format!("/v1/runs/{run}/events")).head();
    let ahead = edge.call("GET", "/healthz").head();
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(16 * 1024).expect("set");
    let mut stream = socket.connect(edge.server.addr()).await.expect("connects");
    stream.write_all(waits.as_bytes()).await.expect("sends");
    let ahead = ahead.repeat(100_000);
    let sent = timeout(SHORT * 5, stream.write_all(ahead.as_bytes())).await;
    assert!(sent.is_err(), "the core read {} bytes ahead", ahead.len());
}
