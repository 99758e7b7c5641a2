//! Heads of requests that are too long, too slow or promise a body of another form.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use wharf_artifacts::EndpointOptions;
use wharf_contract::objects::{PlainClient as _, Request};
use wharf_ports::{Method, ObjectStore as _};

use crate::endpoint::{raw, send};
use crate::support::{self, Client, Embedded, read, write};

/// More connections than a client opens by accident, none of which ever ends its head.
const UNFINISHED: usize = 600;

#[tokio::test]
async fn heads_that_never_end_keep_nobody_out() {
    // So long that none of them is let go while the test looks.
    let head_timeout = Duration::from_secs(600);
    let store = Embedded::start_with(EndpointOptions { head_timeout, ..support::options() }).await;
    write(&*store.objects, "w/file", b"content").await;
    let addr = store.serving.addr();
    let held = tokio::task::spawn_blocking(move || {
        let begin = |_| {
            let mut stream = TcpStream::connect(addr).expect("connected");
            stream.write_all(b"GET /wharf/w/file HTTP/1.1\r\nX-Slow: ").expect("sent");
            stream
        };
        (0..UNFINISHED).map(begin).collect::<Vec<_>>()
    });
    let held = held.await.expect("connected");
    let url = store.objects.presign(Method::Get, "w/file", 60);
    assert_eq!(send("GET", &url, b"").await.body, "content");
    // Still open: nothing was closed to make room.
    for stream in &held {
        stream.set_nonblocking(true).expect("set");
        let waits = stream.peek(&mut [0]).expect_err("no answer and no end");
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[tokio::test]
async fn a_head_of_more_than_64_kib_is_refused() {
    let store = Embedded::start().await;
    let mut request = b"GET /wharf/w/file HTTP/1.1\r\nHost: x\r\nX-Long: ".to_vec();
    // Not a byte more than is read, so that the answer is not lost with the rest.
    request.resize(64 * 1024, b'x');
    let answer = raw(store.serving.addr(), request).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

/// Chunks within a body would be kept as if they were the object.
#[tokio::test]
async fn a_body_in_signed_chunks_is_refused_and_never_kept() {
    let store = Embedded::start().await;
    let chunked =
        Bytes::from_static(b"7;chunk-signature=0\r\ncontent\r\n0;chunk-signature=0\r\n\r\n");
    for (name, value) in [
        ("content-encoding", "aws-chunked"),
        ("content-encoding", "gzip, AWS-Chunked"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("x-amz-decoded-content-length", "7"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
    ] {
        let request = Request {
            method: "PUT",
            url: store.objects.presign(Method::Put, "w/file", 60),
            headers: vec![(name, value.to_owned())],
            body: chunked.clone(),
        };
        let answer = Client::new().send(request).await.expect("answered");
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 501, "{name}: {value}: {body}");
        assert!(body.contains("<Code>NotImplemented</Code>"), "{body}");
        assert_eq!(read(&*store.objects, "w/file").await, None, "{name}: {value}");
    }
    let plain = Request {
        method: "PUT",
        url: store.objects.presign(Method::Put, "w/file", 60),
        headers: vec![("x-amz-content-sha256", "UNSIGNED-PAYLOAD".to_owned())],
        body: Bytes::from_static(b"content"),
    };
    assert_eq!(Client::new().send(plain).await.expect("answered").status, 200);
}
