//! Fetching from storage that misbehaves.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use wharf_toolserver::Failure;
use wharf_toolserver::transfer::FileTransfer;

use crate::support::{Bench, Reply, Seen, Storage, files};

const SECRET: &str = "/w1/cat.png?X-Amz-Signature=canary";

/// Fetches the input `x` and gives its bytes.
async fn fetched(bench: &Bench, place: &str) -> Result<Vec<u8>, Failure> {
    let files = bench.input(place);
    let fetched = files.fetch("x").await?;
    let bytes = std::fs::read(&fetched.path).expect("the file");
    assert_eq!(fetched.bytes, bytes.len() as u64);
    Ok(bytes)
}

/// Bytes that differ from place to place.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

/// Where a request wants to go on.
fn asked_from(seen: &Seen) -> Option<usize> {
    seen.header("range").strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

#[tokio::test]
async fn t023_an_input_is_fetched_once_and_goes_with_the_run() {
    let storage = Storage::always(Reply::new(200, "a cat")).await;
    let bench = Bench::of(&storage);
    let files = bench.input(&storage.url(SECRET));
    let first = files.fetch("x").await.expect("fetched");
    assert_eq!(std::fs::read(&first.path).expect("the file"), b"a cat");
    assert!(first.path.to_string_lossy().ends_with("cat.png"), "its ending is kept");
    assert_eq!(files.fetch("x").await.expect("fetched"), first);
    assert_eq!(storage.seen().len(), 1);
    assert!(first.path.starts_with(files.folder().expect("a folder")));
    drop(files);
    while first.path.exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn t023_an_input_is_bytes_a_file_or_a_stream() {
    let body = pattern(1_000_000);
    let storage = Storage::always(Reply::new(200, body.clone())).await;
    let bench = Bench::of(&storage);
    let files = bench.input(&storage.url(SECRET));
    assert_eq!(files.read("x", 1_000_000).await.expect("read"), body);
    let mut streamed = Vec::new();
    let mut reading = files.open("x").await.expect("opened");
    reading.read_to_end(&mut streamed).await.expect("streamed");
    assert_eq!(streamed, body);
    let large = files.read("x", 999_999).await.expect_err("too large");
    assert_eq!(large.code, "ERR_LIMIT");
}

#[tokio::test]
async fn t023_t024_prefixes_decide_only_without_a_list() {
    let bench = Bench::new(&["http://127.0.0.1:9000".to_owned()]);
    let inputs = json!({
        "https": "https://example.com/prompt",
        "allowed": "http://127.0.0.1:9000/x",
        "http": "http://example.com/x",
        "path": "/artifacts/r1/x",
        "text": "see https://example.com",
        "number": 7,
    });
    let references = |refs: Option<&[&str]>| {
        let files = bench.run(inputs.clone(), json!({}), refs);
        let inputs = inputs.as_object().expect("an object").iter();
        let found = inputs.filter(|(key, value)| files.is_reference(key, value));
        found.map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(references(None), ["allowed", "https", "path"]);
    assert_eq!(references(Some(&[])), [""; 0], "a prompt that is an address stays a prompt");
    assert_eq!(references(Some(&["path"])), ["path"]);
    let files = bench.run(inputs.clone(), json!({}), Some(&["number", "text"]));
    assert_eq!(files.fetch("number").await.expect_err("no text").code, "ERR_INPUTS");
    assert_eq!(files.fetch("text").await.expect_err("no address").code, "ERR_INPUTS");
    assert_eq!(files.fetch("https").await.expect_err("not listed").code, "ERR_INPUTS");
    assert_eq!(files.fetch("none").await.expect_err("no input").code, "ERR_INPUTS");
}

#[tokio::test]
async fn t029_trouble_that_passes_is_tried_again() {
    for trouble in [500, 502, 503, 504, 429, 408] {
        let storage = Storage::start(move |number, _| match number {
            0 | 1 => Reply::new(trouble, "<Error><Code>SlowDown</Code></Error>"),
            _ => Reply::new(200, "at last"),
        })
        .await;
        let bytes = fetched(&Bench::of(&storage), &storage.url(SECRET)).await;
        assert_eq!(bytes.expect("fetched"), b"at last", "{trouble}");
        assert_eq!(storage.seen().len(), 3);
    }
}

#[tokio::test]
async fn t029_trouble_that_stays_ends_after_some_tries() {
    let storage = Storage::always(Reply::new(500, "")).await;
    let failure = fetched(&Bench::of(&storage), &storage.url(SECRET)).await.expect_err("trouble");
    assert_eq!(failure.code, "ERR_STORAGE");
    assert_eq!(storage.seen().len(), 4);
}

#[tokio::test]
async fn t029_refusals_are_told_apart_and_not_tried_again() {
    let expired = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
    for (status, body, code) in [
        (403, "<Error><Code>AccessDenied</Code></Error>", "ERR_STORAGE_DENIED"),
        (403, expired, "ERR_STORAGE_EXPIRED"),
        (400, "<Error><Code>ExpiredToken</Code></Error>", "ERR_STORAGE_EXPIRED"),
        (404, "<Error><Code>NoSuchKey</Code></Error>", "ERR_NOT_FOUND"),
        (418, "", "ERR_STORAGE"),
    ] {
        let storage = Storage::always(Reply::new(status, body)).await;
        let bench = Bench::of(&storage);
        let files = bench.input(&storage.url(SECRET));
        assert_eq!(files.fetch("x").await.expect_err(code).code, code);
        let failure = files.open("x").await.err().expect(code);
        assert_eq!(failure.code, code, "before the first byte is asked for");
        assert_eq!(storage.seen().len(), 2, "{code}");
    }
}

#[tokio::test]
async fn t029_an_address_is_not_tried_beyond_its_lifetime() {
    let storage = Storage::always(Reply::new(503, "")).await;
    let over = storage.url("/x?X-Amz-Date=20200101T000000Z&X-Amz-Expires=3600");
    let failure = fetched(&Bench::of(&storage), &over).await.expect_err("over");
    assert_eq!(failure.code, "ERR_STORAGE_EXPIRED");
    assert_eq!(storage.seen().len(), 1);
}

#[tokio::test]
async fn t029_a_cut_download_goes_on_where_it_stopped() {
    let body = pattern(300_000);
    let whole = body.clone();
    let storage = Storage::start(move |_, seen| {
        let from = asked_from(seen).unwrap_or(0);
        let until = (from + 90_000).min(whole.len());
        let range = format!("bytes {from}-{}/{}", whole.len() - 1, whole.len());
        let reply = Reply::new(if from == 0 { 200 } else { 206 }, &whole[from..until]);
        let reply = reply.header("ETag", "\"v1\"").header("Content-Range", range);
        reply.claiming(whole.len() - from)
    })
    .await;
    let bench = Bench::of(&storage);
    assert_eq!(fetched(&bench, &storage.url(SECRET)).await.expect("fetched"), body);
    let seen = storage.seen();
    assert!(seen.len() >= 4, "{}", seen.len());
    assert!(seen[1..].iter().all(|seen| asked_from(seen).is_some_and(|from| from > 0)));
    assert!(seen[1..].iter().all(|seen| seen.header("if-range") == "\"v1\""));
    let mut streamed = Vec::new();
    let files = bench.input(&storage.url(SECRET));
    let mut reading = files.open("x").await.expect("opened");
    reading.read_to_end(&mut streamed).await.expect("streamed");
    assert!(streamed == body, "a stream goes on, too");
}

#[tokio::test]
async fn t029_the_same_file_sent_anew_goes_on_where_it_stopped() {
    let body = pattern(200_000);
    let whole = body.clone();
    let storage = Storage::start(move |number, _| {
        let reply = Reply::new(200, if number == 0 { &whole[..70_000] } else { &whole[..] });
        reply.header("ETag", "\"v1\"").claiming(whole.len())
    })
    .await;
    let bench = Bench::of(&storage);
    let files = bench.input(&storage.url(SECRET));
    let mut streamed = Vec::new();
    let mut reading = files.open("x").await.expect("opened");
    reading.read_to_end(&mut streamed).await.expect("streamed");
    assert!(streamed == body);
}

#[tokio::test]
async fn t029_a_file_that_changes_half_way_is_never_mixed() {
    for tags in [["\"v1\"", "\"v2\""], ["", ""], ["W/\"v1\"", "W/\"v1\""]] {
        let storage = Storage::start(move |number, _| match number % 2 {
            0 => Reply::new(200, vec![b'a'; 50_000]).header("ETag", tags[0]).claiming(100_000),
            _ => Reply::new(200, vec![b'b'; 60_000]).header("ETag", tags[1]),
        })
        .await;
        let bench = Bench::of(&storage);
        let bytes = fetched(&bench, &storage.url(SECRET)).await.expect("fetched");
        assert!(bytes == vec![b'b'; 60_000], "a file begins anew");
        let files = bench.input(&storage.url(SECRET));
        let mut reading = files.open("x").await.expect("opened");
        let error = reading.read_to_end(&mut Vec::new()).await.expect_err("cannot begin anew");
        assert_eq!(error.kind(), ErrorKind::Other);
        let failure = error.into_inner().and_then(|it| it.downcast::<Failure>().ok());
        assert_eq!(failure.expect("a failure").code, "ERR_STORAGE");
    }
}

#[tokio::test]
async fn t029_a_download_that_never_gets_further_ends() {
    let storage = Storage::always(Reply::new(200, vec![1; 1_000]).claiming(2_000)).await;
    let failure = fetched(&Bench::of(&storage), &storage.url(SECRET)).await.expect_err("cut");
    assert_eq!(failure.code, "ERR_STORAGE");
    assert_eq!(storage.seen().len(), 4);
}

#[tokio::test]
async fn t032_silence_ends_after_a_while() {
    let half = Reply::new(200, vec![1; 1_000]).claiming(2_000).silent();
    let storage = Storage::always(half).await;
    let mut bench = Bench::of(&storage);
    bench.policy.byte_timeout = Duration::from_millis(50);
    bench.policy.tries = 1;
    let failure = fetched(&bench, &storage.url(SECRET)).await.expect_err("silence");
    assert_eq!(failure.code, "ERR_STORAGE");
    assert!(failure.message.contains("half-way"), "{}", failure.message);
}

#[tokio::test]
async fn t029_large_downloads_say_how_far_they_are() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let heard = Arc::new(Notify::new());
    let until = Arc::clone(&heard);
    // Sends large pieces without end, until somebody has heard how far it is.
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.expect("sent");
        let more = async {
            loop {
                stream.write_all(&[7; 1 << 20]).await.expect("sent");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = more => {}
            () = until.notified() => {}
        }
    });
    let bench = Bench::new(std::slice::from_ref(&origin));
    let transfer = FileTransfer::new(bench.policy.clone()).expect("a policy");
    let inputs = json!({"film": format!("{origin}{SECRET}")});
    let (files, mut reports) = files(&transfer, inputs, json!({}), Some(&["film"]));
    let listening = async {
        let said = format!("{:?}", reports.recv().await.expect("a report"));
        heard.notify_one();
        Ok(said)
    };
    let (fetched, said) = tokio::try_join!(files.fetch("film"), listening).expect("fetched");
    assert!(fetched.bytes > 8 << 20);
    assert!(said.contains("Fetching") && said.contains("MiB"), "{said}");
    assert!(!said.contains("canary") && !said.contains("127.0.0.1"), "{said}");
    server.await.expect("the server");
}

#[tokio::test]
async fn t035_addresses_are_in_no_failure_and_no_debug_text() {
    let replies = [
        Reply::new(403, "<Error><Code>AccessDenied</Code></Error>"),
        Reply::new(404, ""),
        Reply::new(500, ""),
        Reply::new(200, "x").claiming(9),
        Reply::new(307, "").header("Location", "http://canary.example/"),
    ];
    for reply in replies {
        let storage = Storage::always(reply).await;
        let bench = Bench::of(&storage);
        let files = bench.input(&storage.url(SECRET));
        let failure = files.fetch("x").await.expect_err("trouble");
        for text in [failure.to_string(), format!("{failure:?}"), format!("{files:?}")] {
            assert!(!text.contains("canary") && !text.contains("127.0.0.1"), "{text}");
        }
    }
}
