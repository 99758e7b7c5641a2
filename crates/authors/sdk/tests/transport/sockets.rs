//! What belongs to WebSockets and Unix sockets alone.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::handshake::server::{
    Callback, ErrorResponse, Request, Response,
};
use wharf_sdk::transport::{Options, sse, unix, ws};
use wharf_sdk::{Code, Error, Scope, operative};

use crate::carrier::{options, soon};
use crate::tools::*;

fn with(token: &str) -> Options {
    Options { token: Some(token.to_owned()), ..options() }
}

fn refused(result: Result<wharf_sdk::transport::Link, Error>) -> u16 {
    match result.expect_err("refused") {
        Error::Refused { status, .. } => status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn k022_a_websocket_wants_the_token_in_the_header() {
    let mut listener = ws::Listener::bind("127.0.0.1:0", with("right")).await.expect("bound");
    let address = format!("ws://{}", listener.address());
    assert_eq!(refused(ws::connect(&address, &options()).await), 401);
    assert_eq!(refused(ws::connect(&address, &with("wrong")).await), 401);
    let link = ws::connect(&address, &with("right")).await.expect("let in");
    assert!(link.is_extended());
    soon(listener.accept()).await.expect("accepted");
}

#[tokio::test]
async fn k022_server_sent_events_want_the_token_in_the_header() {
    let listener = sse::Listener::bind("127.0.0.1:0", with("right")).await.expect("bound");
    let address = format!("http://{}", listener.address());
    assert_eq!(refused(sse::connect(&address, &options()).await), 401);
    assert_eq!(refused(sse::connect(&address, &with("wrong")).await), 401);
    assert!(sse::connect(&address, &with("right")).await.is_ok());
}

#[tokio::test]
async fn k022_whoever_cannot_be_reached_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    for error in [
        ws::connect(&format!("ws://{address}"), &options()).await.expect_err("nobody"),
        sse::connect(&format!("http://{address}"), &options()).await.expect_err("nobody"),
    ] {
        assert!(matches!(error, Error::Connect { .. }) && error.is_passing(), "{error:?}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = unix::connect(folder.path().join("none"), &options()).await;
    assert!(matches!(nowhere, Err(Error::Connect { .. })));
}

#[tokio::test]
async fn k022_whoever_speaks_something_else_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut space = [0; 1024];
            let _ = stream.read(&mut space).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        }
    });
    assert_eq!(refused(ws::connect(&format!("ws://{address}"), &options()).await), 200);
    let error = sse::connect(&format!("http://{address}"), &options()).await.expect_err("none");
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
}

/// Takes the subprotocol of our own peers, whatever else was offered.
struct Choose;

impl Callback for Choose {
    fn on_request(
        self,
        _request: &Request,
        mut response: Response,
    ) -> Result<Response, ErrorResponse> {
        let name = "wharf.tool.v1".parse().expect("a header");
        response.headers_mut().insert("sec-websocket-protocol", name);
        Ok(response)
    }
}

#[tokio::test]
async fn k026_a_peer_that_gives_no_sign_of_life_is_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    // It greets, and then neither reads nor goes.
    let frozen = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("accepted");
        tokio_tungstenite::accept_hdr_async(stream, Choose).await.expect("a handshake")
    });
    let options = Options { keep_alive: Duration::from_millis(20), ..options() };
    let link = ws::connect(&format!("ws://{address}"), &options).await.expect("connected");
    let kept = soon(frozen).await.expect("greeted");
    let scope = Scope::root().with_transport(link.clone());
    let fault = soon(HANG.call(&scope, ())).await.expect_err("lost");
    assert!(fault.is(Code::TransportLost), "{fault:?}");
    assert!(link.is_closed());
    drop(kept);
}

#[tokio::test]
async fn k026_a_peer_that_is_only_silent_is_kept() {
    let (scope, seen, gate) = served();
    let options = Options { keep_alive: Duration::from_millis(10), ..options() };
    let mut listener = ws::Listener::bind("127.0.0.1:0", options.clone()).await.expect("bound");
    let address = format!("ws://{}", listener.address());
    let link = ws::connect(&address, &options).await.expect("connected");
    let server = soon(listener.accept()).await.expect("accepted");
    let _serving = operative::serve(&scope, &server);
    let caller = Scope::root().with_transport(link);
    let call = tokio::spawn(GATE.call(&caller, 1));
    crate::carrier::until("it is under way", || seen.begun() == 1).await;
    // Far longer than a silent peer is waited for.
    tokio::time::sleep(Duration::from_millis(200)).await;
    gate.add_permits(1);
    assert_eq!(soon(call).await.expect("ended"), Ok(1));
}

#[tokio::test]
async fn k022_the_file_of_a_socket_goes_with_its_listener() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tools.sock");
    let listener = unix::Listener::bind(&path, options()).expect("bound");
    assert!(path.exists());
    assert!(matches!(unix::Listener::bind(&path, options()), Err(Error::Listen(_))));
    drop(listener);
    assert!(!path.exists());
}
