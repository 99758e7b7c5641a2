//! What belongs to server-sent events and POST alone.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use wharf_sdk::transport::{Link, Options, sse};
use wharf_sdk::{Scope, operative};

use crate::carrier::{options, soon, until};
use crate::tools::*;

/// Sends a request by hand; gives the status, and the rest as it comes.
async fn ask(listener: &sse::Listener, head: &str, body: &str) -> (u16, BufReader<TcpStream>) {
    let stream = TcpStream::connect(listener.address()).await.expect("connected");
    ask_on(BufReader::new(stream), head, body).await
}

async fn ask_on(
    mut stream: BufReader<TcpStream>,
    head: &str,
    body: &str,
) -> (u16, BufReader<TcpStream>) {
    let length = body.len();
    let (first, more) = head.split_once('\n').unwrap_or((head, ""));
    let more = more.replace('\n', "\r\n");
    let request =
        format!("{first} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{more}\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("a status");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.expect("a header");
    }
    (status.expect("a status"), stream)
}

const SESSION: &str = "session=0123456789abcdef&protocol=wharf.tool.v1";

async fn post(listener: &sse::Listener, message: &Value) -> u16 {
    ask(listener, &format!("POST /t?{SESSION}"), &message.to_string()).await.0
}

/// The next lines of a stream that have something to say, without the sizes of chunks.
async fn lines(stream: &mut BufReader<TcpStream>, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    while found.len() < count {
        let mut line = String::new();
        soon(stream.read_line(&mut line)).await.expect("a line");
        assert!(!line.is_empty(), "the stream has ended after {found:?}");
        if line.starts_with("id: ") || line.starts_with("data: ") {
            assert!(line.ends_with('\n') && !line.ends_with("\r\n"), "{line:?}");
            found.push(line.trim_end().to_owned());
        }
    }
    found
}

fn call(id: &str, said: &str) -> Value {
    json!({"id": id, "kind": "elicit", "type": "echo", "payload": {"text": said}})
}

async fn listener(options: Options) -> sse::Listener {
    sse::Listener::bind("127.0.0.1:0", options).await.expect("bound")
}

async fn serving(listener: &mut sse::Listener) -> (Link, operative::Serving, Scope) {
    let (scope, ..) = served();
    let link = soon(listener.accept()).await.expect("a session");
    let serving = operative::serve(&scope, &link);
    (link, serving, scope)
}

#[tokio::test]
async fn k029_an_event_has_one_line_of_data_and_ends_with_lf() {
    let mut listener = listener(options()).await;
    let (status, mut stream) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    assert_eq!(status, 200);
    let (_link, _serving, _scope) = serving(&mut listener).await;
    assert_eq!(post(&listener, &call("r", "two\nlines\r\n")).await, 202);
    let lines = lines(&mut stream, 2).await;
    assert_eq!(lines[0], "id: 1");
    let frame: Value = serde_json::from_str(&lines[1]["data: ".len()..]).expect("JSON");
    assert_eq!(frame["response"]["content"]["text"], "two\nlines\r\n");
}

#[tokio::test]
async fn k029_a_post_is_answered_before_its_event_is_written() {
    let mut listener = listener(options()).await;
    let (_, mut stream) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    let (_link, _serving, _scope) = serving(&mut listener).await;
    for n in 0..50 {
        // The event is looked for only when the answer is there: it must not have been needed.
        assert_eq!(post(&listener, &call(&n.to_string(), "x")).await, 202);
        let lines = lines(&mut stream, 2).await;
        assert_eq!(lines[0], format!("id: {}", n + 1));
    }
}

#[tokio::test]
async fn k029_a_reader_that_comes_back_goes_on_where_it_was() {
    let mut listener = listener(options()).await;
    let (_, mut stream) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    let (_link, _serving, _scope) = serving(&mut listener).await;
    for n in 1..=3 {
        post(&listener, &call(&n.to_string(), "x")).await;
    }
    assert_eq!(lines(&mut stream, 2).await[0], "id: 1");
    drop(stream);
    for head in
        [format!("GET /t?{SESSION}\nlast-event-id: 1\n"), format!("GET /t?{SESSION}&after=1")]
    {
        let (status, mut stream) = ask(&listener, &head, "").await;
        assert_eq!(status, 200);
        let lines = lines(&mut stream, 4).await;
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("id: 2", "id: 3"));
    }
    let gone = "GET /t?session=fedcba9876543210\nlast-event-id: 1\n".to_owned();
    assert_eq!(ask(&listener, &gone, "").await.0, 410, "another session knows nothing of it");
}

#[tokio::test]
async fn k029_several_readers_and_late_joiners_read_the_same() {
    let mut listener = listener(options()).await;
    let (_, mut first) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    let (_link, _serving, _scope) = serving(&mut listener).await;
    let (_, mut second) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    post(&listener, &call("1", "x")).await;
    post(&listener, &call("2", "y")).await;
    let seen = lines(&mut first, 4).await;
    assert_eq!(lines(&mut second, 4).await, seen);
    let (_, mut late) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    assert_eq!(lines(&mut late, 4).await, seen);
}

#[tokio::test]
async fn k029_a_late_joiner_is_not_asked_what_was_answered() {
    let mut listener = listener(options()).await;
    let (_, mut first) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    let link = soon(listener.accept()).await.expect("a session");
    let scope = Scope::root().with_transport(link.clone());
    let text = |text: &str| Text { text: text.to_owned() };
    let answered = tokio::spawn(ECHO.call(&scope, text("one")));
    let asked = lines(&mut first, 2).await;
    let asked: Value = serde_json::from_str(&asked[1]["data: ".len()..]).expect("JSON");
    assert_eq!((&asked["kind"], &asked["type"]), (&json!("elicit"), &json!("echo")), "bare");
    let answer = json!({"status": "accepted", "content": {"text": "two"}});
    post(&listener, &json!({"type": "response", "id": asked["id"], "response": answer})).await;
    assert_eq!(soon(answered).await.expect("ended"), Ok(text("two")));
    let _open = tokio::spawn(ECHO.call(&scope, text("three")));
    until("it was sent", || link.counters().calls_waiting == 1).await;
    let (_, mut late) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    let asked = lines(&mut late, 2).await;
    assert!(asked[1].contains("three"), "{asked:?}");
}

#[tokio::test]
async fn k029_a_session_that_nobody_reads_ends() {
    let mut listener = listener(options()).await;
    let (_, stream) = ask(&listener, &format!("GET /t?{SESSION}"), "").await;
    let link = soon(listener.accept()).await.expect("a session");
    drop(stream);
    soon(link.closed()).await;
    let back = format!("GET /t?{SESSION}\nlast-event-id: 1\n");
    assert_eq!(ask(&listener, &back, "").await.0, 410);
}

#[tokio::test]
async fn k030_a_message_that_is_too_large_is_refused() {
    let limits = wharf_sdk::transport::Limits { frame_bytes_max: 1_000, ..Default::default() };
    let listener = listener(Options { limits, ..options() }).await;
    assert_eq!(post(&listener, &call("r", &"x".repeat(2_000))).await, 413);
    assert_eq!(ask(&listener, &format!("PUT /t?{SESSION}"), "").await.0, 405);
}

/// A server that is written out: each stream of events is given in pieces, then cut.
struct Script {
    listener: TcpListener,
}

impl Script {
    async fn new() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = format!("http://{}/t", listener.local_addr().expect("bound"));
        (Self { listener }, address)
    }

    /// The next request: its head and its body.
    async fn next(&self) -> (String, String, BufReader<TcpStream>) {
        let (stream, _) = soon(self.listener.accept()).await.expect("accepted");
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            soon(stream.read_line(&mut line)).await.expect("a line");
            if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line.to_lowercase());
        }
        let mut body = vec![0; length];
        soon(stream.read_exact(&mut body)).await.expect("a body");
        (head, String::from_utf8(body).expect("text"), stream)
    }

    async fn events(&self) -> (String, BufReader<TcpStream>) {
        let (head, _, mut stream) = self.next().await;
        assert!(head.starts_with("get "), "{head}");
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        stream.write_all(answer).await.expect("written");
        (head, stream)
    }

    /// The id of the request that is posted next.
    async fn posted(&self) -> String {
        let (head, body, mut stream) = self.next().await;
        assert!(head.starts_with("post "), "{head}");
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        stream.write_all(answer).await.expect("written");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["kind"], "elicit", "requests are posted bare");
        body["id"].as_str().expect("an id").to_owned()
    }
}

#[tokio::test]
async fn k029_a_client_reads_other_ends_of_lines_and_split_events() {
    for end in ["\n", "\r\n", "\r"] {
        let (script, address) = Script::new().await;
        let served = tokio::spawn(async move {
            let (_, mut stream) = script.events().await;
            let id = script.posted().await;
            let frame = json!({"type": "response", "id": id,
                "response": {"status": "accepted", "content": {"text": "ü"}}});
            let event = format!(": hi{end}id: 1{end}data: {frame}{end}{end}");
            for byte in event.as_bytes() {
                stream.write_all(&[*byte]).await.expect("written");
                stream.flush().await.expect("written");
                tokio::task::yield_now().await;
            }
            stream
        });
        let link = sse::connect(&address, &options()).await.expect("connected");
        let scope = Scope::root().with_transport(link);
        let echo = soon(ECHO.call(&scope, Text { text: "x".to_owned() })).await;
        assert_eq!(echo, Ok(Text { text: "ü".to_owned() }), "{end:?}");
        soon(served).await.expect("served");
    }
}

#[tokio::test]
async fn k029_a_client_whose_stream_breaks_off_loses_and_doubles_nothing() {
    let (script, address) = Script::new().await;
    let served = tokio::spawn(async move {
        let (head, mut stream) = script.events().await;
        assert!(!head.contains("last-event-id"), "{head}");
        let id = script.posted().await;
        let progress = |n: u32| {
            let frame = json!({"type": "progress", "id": id, "data": n});
            format!("id: {n}\ndata: {frame}\n\n")
        };
        // The second event is cut in the middle.
        let second = progress(2);
        let cut = format!("{}{}", progress(1), &second[..second.len() / 2]);
        stream.write_all(cut.as_bytes()).await.expect("written");
        drop(stream);
        let (head, mut stream) = script.events().await;
        assert!(head.contains("last-event-id: 1\r\n"), "{head}");
        // A careless server sends the first again.
        let frame = json!({"type": "response", "id": id,
            "response": {"status": "accepted", "content": 3}});
        let rest = format!("{}{}{}id: 4\ndata: {frame}\n\n", progress(1), second, progress(3));
        stream.write_all(rest.as_bytes()).await.expect("written");
        stream
    });
    let link = sse::connect(&address, &options()).await.expect("connected");
    let scope = Scope::root().with_transport(link.clone());
    let mut call = COUNT.call(&scope, 3);
    let mut pieces = Vec::new();
    while let Some(piece) = soon(call.progress()).await {
        pieces.push(piece);
    }
    assert_eq!((pieces, soon(call).await), (vec![1, 2, 3], Ok(3)));
    assert_eq!(link.counters().duplicate_responses, 0);
    soon(served).await.expect("served");
}

#[tokio::test]
async fn k026_a_session_that_is_gone_loses_its_calls() {
    let (script, address) = Script::new().await;
    let served = tokio::spawn(async move {
        let (_, mut stream) = script.events().await;
        script.posted().await;
        stream.write_all(b"id: 1\ndata: {\"type\":\"weather\"}\n\n").await.expect("written");
        drop(stream);
        let (_, _, mut stream) = script.next().await;
        let gone = b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(gone).await.expect("written");
        stream
    });
    let link = sse::connect(&address, &options()).await.expect("connected");
    let scope = Scope::root().with_transport(link);
    let fault = soon(HANG.call(&scope, ())).await.expect_err("lost");
    assert!(fault.is(wharf_sdk::Code::TransportLost), "{fault:?}");
    soon(served).await.expect("served");
}
