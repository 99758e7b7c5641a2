//! Routers of other edges on the same listener, and connections that they take over.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::{Message as Sent, http};
use tokio_util::sync::CancellationToken;
use wharf_domain::Caller;
use wharf_http::{HttpLimits, Mount};

use crate::support::client::Call;
use crate::support::{Edge, PATIENCE, TOKEN, bearer, eventually};

const SHORT: Duration = Duration::from_millis(400);

/// A mounted edge that says who is calling, and echoes on WebSockets.
pub(crate) fn mount() -> Mount {
    let who = async |Extension(caller): Extension<Caller>, body: String| {
        format!("{} sent {} bytes", caller.grant, body.len())
    };
    Mount::new("/other", Router::new().route("/other", get(open).post(who)))
}

async fn open(
    Extension(caller): Extension<Caller>,
    Extension(closing): Extension<CancellationToken>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let offered = headers.get("sec-websocket-protocol").map(|value| value.to_str());
    let offered = offered.map(|text| text.expect("text").to_owned()).unwrap_or_default();
    let hello = format!("{} offered {offered}", caller.grant);
    // Whatever is offered may be chosen: what must not come back is not there any more.
    let upgrade = upgrade.protocols([format!("wharf.bearer.{TOKEN}"), "wharf.v1".to_owned()]);
    upgrade.on_upgrade(|socket| echo(socket, hello, closing))
}

async fn echo(mut socket: WebSocket, hello: String, closing: CancellationToken) {
    let polite = hello.ends_with("polite");
    let _ = socket.send(Message::text(hello)).await;
    loop {
        tokio::select! {
            () = closing.cancelled(), if polite => {
                let _ = socket.send(Message::text("goodbye")).await;
                return;
            }
            said = socket.recv() => match said {
                Some(Ok(said @ Message::Text(_))) => {
                    let _ = socket.send(said).await;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    }
}

async fn edge(limits: HttpLimits) -> Edge {
    Edge::start_with(|options| {
        options.mounts = vec![mount()];
        options.limits = limits;
    })
    .await
}

type Socket = WebSocketStream<TcpStream>;

/// Opens a WebSocket as a browser does, with nothing but subprotocols.
async fn connect(edge: &Edge, offered: &str) -> Result<(Socket, http::Response<()>), Error> {
    connect_with(edge, &[("sec-websocket-protocol", offered)]).await
}

async fn connect_with(
    edge: &Edge,
    headers: &[(&'static str, &str)],
) -> Result<(Socket, http::Response<()>), Error> {
    let addr = edge.server.addr();
    let mut request = format!("ws://{addr}/other").into_client_request()?;
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a value"));
    }
    let stream = TcpStream::connect(addr).await?;
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await?;
    Ok((socket, answer.map(|_| ())))
}

/// What the other side says next; `None` once it has gone.
async fn heard(socket: &mut Socket) -> Option<String> {
    match timeout(PATIENCE, socket.next()).await.expect("in time") {
        Some(Ok(Sent::Text(text))) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

fn status(refused: Result<(Socket, http::Response<()>), Error>) -> u16 {
    match refused {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_mounted_router_stands_behind_the_same_checks() {
    let edge = edge(HttpLimits::default()).await;
    let post = || edge.call("POST", "/other").bytes(b"abc".to_vec());
    assert_eq!(post().send().await.text(), "owner sent 3 bytes");
    post().header("authorization", "").send().await.refused(401, "auth.required");
    post().header("authorization", "Bearer x").send().await.refused(401, "auth.invalid");
    post().header("host", "evil.example").send().await.refused(421, "request.host_unknown");
    let foreign = post().header("origin", "http://evil.example").send().await;
    foreign.refused(403, "request.origin_forbidden");
    let large = edge.call("POST", "/other").bytes(vec![b' '; 5 * 1024 * 1024]);
    large.send().await.refused(413, "request.too_large");
    edge.call("DELETE", "/other").send().await.refused(405, "request.method_unknown");
    edge.get("/other/else").await.refused(404, "request.route_unknown");
    // A token that may do nothing here is let through: the mounted edge knows what it needs.
    let token = edge.token(json!({"verbs": ["answer"]})).await;
    let token = token["token"].as_str().expect("a token");
    let answer = edge.call_as(token, "POST", "/other").bytes(Vec::new()).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    // Metrics and audit know it by its name.
    let metrics = edge.get("/metrics").await.text();
    assert!(metrics.contains("route=\"/other\""), "{metrics}");
}

#[tokio::test]
async fn a_browsers_token_is_taken_from_the_subprotocols_and_never_sent_back() {
    let edge = edge(HttpLimits::default()).await;
    let offered = format!("wharf.v1, wharf.bearer.{TOKEN}");
    let (mut socket, answer) = connect(&edge, &offered).await.expect("let in");
    assert_eq!(answer.headers()["sec-websocket-protocol"], "wharf.v1");
    assert_eq!(heard(&mut socket).await.as_deref(), Some("owner offered wharf.v1"));
    socket.send(Sent::text("hello")).await.expect("sends");
    assert_eq!(heard(&mut socket).await.as_deref(), Some("hello"));

    assert_eq!(status(connect(&edge, "wharf.v1").await), 401);
    assert_eq!(status(connect(&edge, "wharf.v1, wharf.bearer.wrong").await), 401);
    let foreign = [("sec-websocket-protocol", offered.as_str()), ("origin", "http://evil.example")];
    assert_eq!(status(connect_with(&edge, &foreign).await), 403);
    // Only a WebSocket is opened that way.
    let call = Call::new(edge.server.addr(), "GET", "/v1/tools");
    let call = call.header("sec-websocket-protocol", &offered);
    call.send().await.refused(401, "auth.required");
    // Programs send their token as always.
    let header = [("authorization", bearer())];
    let header = header.iter().map(|(name, value)| (*name, value.as_str()));
    let (mut socket, _) = connect_with(&edge, &header.collect::<Vec<_>>()).await.expect("let in");
    assert_eq!(heard(&mut socket).await.as_deref(), Some("owner offered "));
}

#[tokio::test]
async fn a_connection_that_was_taken_over_may_be_silent() {
    let limits = HttpLimits { idle: SHORT, head_read: SHORT, ..HttpLimits::default() };
    let edge = edge(limits).await;
    let (mut socket, _) =
        connect(&edge, &format!("wharf.v1, wharf.bearer.{TOKEN}")).await.expect("let in");
    heard(&mut socket).await.expect("a greeting");
    sleep(SHORT * 4).await;
    socket.send(Sent::text("still here")).await.expect("sends");
    assert_eq!(heard(&mut socket).await.as_deref(), Some("still here"));
}

#[tokio::test]
async fn a_connection_that_was_taken_over_counts_until_it_is_closed() {
    let edge = edge(HttpLimits { connections_max: 1, ..HttpLimits::default() }).await;
    let (mut socket, _) =
        connect(&edge, &format!("wharf.v1, wharf.bearer.{TOKEN}")).await.expect("let in");
    heard(&mut socket).await.expect("a greeting");
    let next = tokio::spawn(Call::new(edge.server.addr(), "GET", "/healthz").send());
    sleep(SHORT).await;
    assert!(!next.is_finished(), "there is room for one connection only");
    drop(socket);
    assert_eq!(next.await.expect("served").status, 200);
}

#[tokio::test]
async fn connections_that_were_taken_over_end_when_the_core_stops() {
    let edge = edge(HttpLimits::default()).await;
    let offered = format!("wharf.v1, wharf.bearer.{TOKEN}");
    let (mut blunt, _) = connect(&edge, &offered).await.expect("let in");
    let (mut polite, _) = connect(&edge, &format!("{offered}, polite")).await.expect("let in");
    for socket in [&mut blunt, &mut polite] {
        heard(socket).await.expect("a greeting");
    }
    let addr = edge.server.addr();
    edge.server.drain();
    eventually(async || TcpStream::connect(addr).await.is_err().then_some(())).await;
    blunt.send(Sent::text("draining")).await.expect("sends");
    assert_eq!(heard(&mut blunt).await.as_deref(), Some("draining"), "they go on while it drains");

    let Edge { server, .. } = edge;
    let stopped = tokio::spawn(server.stop(PATIENCE));
    assert_eq!(heard(&mut polite).await.as_deref(), Some("goodbye"));
    assert_eq!(heard(&mut polite).await, None);
    assert_eq!(heard(&mut blunt).await, None);
    timeout(PATIENCE / 2, stopped).await.expect("in time").expect("stopped");
}

/// The beginning of a text frame of this many bytes, and so many of them.
fn unfinished(length: u16, there: usize) -> Vec<u8> {
    frame(0x81, length, there)
}

fn frame(first: u8, length: u16, there: usize) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(std::iter::repeat_n(b'x', there));
    frame
}

#[tokio::test]
async fn messages_that_are_not_whole_share_a_bounded_memory() {
    let limits = HttpLimits { bodies_bytes_max: 64 * 1024, ..HttpLimits::default() };
    let edge = edge(limits).await;
    let offered = format!("wharf.v1, wharf.bearer.{TOKEN}");
    let (mut first, _) = connect(&edge, &offered).await.expect("opens");
    let (mut second, _) = connect(&edge, &offered).await.expect("opens");
    for socket in [&mut first, &mut second] {
        assert!(heard(socket).await.is_some());
    }
    // The first takes all that there is: a part of a message, which a pong shows to be there.
    first.get_mut().write_all(&frame(0x01, 62_000, 62_000)).await.expect("sends");
    first.send(Sent::Ping(Vec::new().into())).await.expect("sends");
    let pong = timeout(PATIENCE, first.next()).await.expect("in time");
    assert!(matches!(pong, Some(Ok(Sent::Pong(_)))), "{pong:?}");
    // Then the second waits with the rest of what it has begun.
    second.get_mut().write_all(&unfinished(60_000, 50_000)).await.expect("sends");
    tokio::time::sleep(SHORT).await;
    second.get_mut().write_all(&[b'x'; 10_000]).await.expect("sends");
    let mut answered = std::pin::pin!(heard(&mut second));
    assert!(timeout(SHORT * 5, answered.as_mut()).await.is_err(), "there is no room");
    // What is small needs none.
    let (mut small, _) = connect(&edge, &offered).await.expect("opens");
    assert!(heard(&mut small).await.is_some());
    small.send(Sent::text("z")).await.expect("sends");
    assert_eq!(heard(&mut small).await.as_deref(), Some("z"));
    drop(first);
    assert_eq!(answered.await, Some("x".repeat(60_000)));
}

#[tokio::test]
async fn a_message_that_is_never_whole_ends_its_connection() {
    let edge = edge(HttpLimits { body_read: SHORT, ..HttpLimits::default() }).await;
    let offered = format!("wharf.v1, wharf.bearer.{TOKEN}");
    let (mut socket, _) = connect(&edge, &offered).await.expect("opens");
    assert!(heard(&mut socket).await.is_some());
    tokio::time::sleep(SHORT * 3).await;
    socket.send(Sent::text("still here")).await.expect("silence has no limit");
    assert_eq!(heard(&mut socket).await.as_deref(), Some("still here"));
    socket.get_mut().write_all(&unfinished(100, 10)).await.expect("sends");
    assert_eq!(heard(&mut socket).await, None);
}

#[tokio::test]
async fn whoever_does_not_wait_for_the_answer_gets_no_socket() {
    let edge = edge(HttpLimits::default()).await;
    let addr = edge.server.addr();
    let head = format!(
        "GET /other HTTP/1.1\r\nhost: {addr}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         authorization: Bearer {TOKEN}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(addr).await.expect("connects");
    let mut early = head.into_bytes();
    early.extend(unfinished(1_000, 500));
    stream.write_all(&early).await.expect("sends");
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is ended");
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
}
