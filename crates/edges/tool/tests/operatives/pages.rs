//! Pages of other origins that the owner let in.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::stage::{LET_IN, OWNER, PATIENCE, Stage};

/// The head of the answer to a request with these headers.
async fn head(stage: &Stage, line: &str, headers: &[(&str, &str)]) -> String {
    let addr = stage.addr();
    let mut request = format!("{line} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let mut stream = TcpStream::connect(addr).await.expect("connects");
    stream.write_all(request.as_bytes()).await.expect("sends");
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = timeout(PATIENCE, stream.read(&mut piece)).await.expect("in time");
        match read.expect("reads") {
            0 => break,
            read => answer.extend_from_slice(&piece[..read]),
        }
    }
    String::from_utf8_lossy(&answer).to_lowercase()
}

#[tokio::test]
async fn k032_a_page_that_was_let_in_may_fetch_events_and_others_may_not() {
    let stage = Stage::start().await;
    let bearer = format!("Bearer {OWNER}");
    let line = "GET /v1/tool/sse?role=principal";
    let allowed = format!("access-control-allow-origin: {LET_IN}\r\n");
    let told = head(&stage, line, &[("origin", LET_IN), ("authorization", &bearer)]).await;
    assert!(told.starts_with("http/1.1 200") && told.contains(&allowed), "{told}");
    assert!(told.contains("vary: origin"), "{told}");
    let told = head(&stage, line, &[("origin", LET_IN)]).await;
    assert!(told.starts_with("http/1.1 401") && told.contains(&allowed), "{told}");
    let evil = [("origin", "http://evil.example"), ("authorization", bearer.as_str())];
    let told = head(&stage, line, &evil).await;
    assert!(told.starts_with("http/1.1 403") && !told.contains("access-control"), "{told}");
    // What is not part of the protocol is not opened to pages.
    let runs = [("origin", LET_IN), ("authorization", bearer.as_str())];
    let told = head(&stage, "GET /v1/runs", &runs).await;
    assert!(told.starts_with("http/1.1 200") && !told.contains("access-control"), "{told}");
}

#[tokio::test]
async fn k032_a_browser_that_asks_first_is_told_what_a_page_may_do() {
    let stage = Stage::start().await;
    let asks = |origin| [("origin", origin), ("access-control-request-method", "POST")];
    let line = "OPTIONS /v1/tool/sse?role=principal";
    let told = head(&stage, line, &asks(LET_IN)).await;
    assert!(told.starts_with("http/1.1 204"), "{told}");
    assert!(told.contains("access-control-allow-methods: get, post"), "{told}");
    assert!(told.contains("access-control-allow-headers: authorization, content-type"), "{told}");
    let told = head(&stage, line, &asks("http://evil.example")).await;
    assert!(told.starts_with("http/1.1 403"), "{told}");
    let told = head(&stage, "OPTIONS /v1/runs", &asks(LET_IN)).await;
    assert!(told.starts_with("http/1.1 401"), "{told}");
}

#[tokio::test]
async fn k032_a_page_that_was_let_in_opens_a_socket_with_its_token_as_a_subprotocol() {
    let stage = Stage::start().await;
    let open = async |origin: &str| {
        let addr = stage.addr();
        let address = format!("ws://{addr}/v1/tool/ws?role=operative&provider=browser&tools=a");
        let mut request = address.into_client_request().expect("a request");
        let offers = format!("wharf.v1, wharf.bearer.{OWNER}");
        request.headers_mut().insert("origin", origin.parse().expect("a header"));
        request.headers_mut().insert("sec-websocket-protocol", offers.parse().expect("a header"));
        let stream = TcpStream::connect(addr).await.expect("connects");
        tokio_tungstenite::client_async(request, stream).await.map(|(stream, _)| stream)
    };
    assert!(open("http://evil.example").await.is_err());
    let page = open(LET_IN).await.expect("connects");
    let listed = stage.tool("browser/a", "available").await;
    assert_eq!(listed["tool_id"], json!("browser/a"));
    drop(page);
}
