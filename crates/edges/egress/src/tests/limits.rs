//! Nobody takes more than their share.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::servers::Server;
use super::{Names, Stage, read_all, taken_apart, within};
use crate::EgressLimits;
use crate::head::HEAD_BYTES_MAX;

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let server = Server::http("\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n").await;
    let address = server.address.to_string();
    let stage = Stage::open(&[&address]).await;
    let head = |fill: usize| {
        let start = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\nX: ");
        format!("{start}{}\r\n\r\n", "x".repeat(fill - start.len() - 4))
    };
    let (status, _) = taken_apart(&stage.ask(head(HEAD_BYTES_MAX)).await);
    assert_eq!(status, 204);
    for longer in [HEAD_BYTES_MAX + 1, 4 * HEAD_BYTES_MAX] {
        let (status, error) = taken_apart(&stage.ask(head(longer)).await);
        assert_eq!((status, error["code"].as_str()), (431, Some("request.too_large")));
    }
    // One that never ends is not waited for.
    let (status, _) = taken_apart(&stage.ask("G".repeat(HEAD_BYTES_MAX)).await);
    assert_eq!(status, 431);
    let many = format!("GET http://{address}/ HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(101));
    let (status, _) = taken_apart(&stage.ask(many).await);
    assert_eq!(status, 431);
}

#[tokio::test]
async fn a_head_that_comes_too_slowly_is_refused() {
    let limits = EgressLimits { head: Duration::from_millis(200), ..EgressLimits::default() };
    let stage = Stage::with(&["api.example"], Names::default(), limits).await;
    for beginning in ["", "CONNECT api.exa", "CONNECT api.example:443 HTTP/1.1\r\n"] {
        let (status, error) = taken_apart(&stage.ask(beginning).await);
        assert_eq!((status, error["code"].as_str()), (408, Some("request.timeout")));
    }
}

#[tokio::test]
async fn one_connection_too_many_is_told_and_the_others_go_on() {
    let server = Server::echo().await;
    let stage = Stage::open(&[&server.address.to_string()]).await;
    let mut tunnels = Vec::new();
    for _ in 0..64 {
        tunnels.push(stage.tunnel(server.address).await);
    }
    let (status, error) = taken_apart(&stage.ask("CONNECT x:1 HTTP/1.1\r\n\r\n").await);
    assert_eq!((status, error["code"].as_str()), (503, Some("core.busy")));
    for tunnel in &mut tunnels {
        tunnel.write_all(b"ping").await.expect("written");
        let mut answer = [0; 4];
        within(tunnel.read_exact(&mut answer)).await.expect("answered");
    }
    tunnels.pop();
    let freed = async {
        loop {
            let (status, _) = taken_apart(&stage.ask("CONNECT x:1 HTTP/1.1\r\n\r\n").await);
            if status != 503 {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(within(freed).await, 403);
}

#[tokio::test]
async fn a_tunnel_through_which_nothing_passes_is_closed() {
    let server = Server::echo().await;
    let limits = EgressLimits { idle: Duration::from_millis(1500), ..EgressLimits::default() };
    let stage = Stage::with(&[&server.address.to_string()], Names::default(), limits).await;
    let mut idle = stage.tunnel(server.address).await;
    let mut busy = stage.tunnel(server.address).await;
    let closed = tokio::spawn(async move { read_all(&mut idle).await });
    let mut answer = [0; 1];
    while !closed.is_finished() {
        busy.write_all(b"x").await.expect("written");
        within(busy.read_exact(&mut answer)).await.expect("answered");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(closed.await.expect("ends"), "");
    busy.write_all(b"x").await.expect("still open");
    within(busy.read_exact(&mut answer)).await.expect("answered");
}

#[tokio::test]
async fn a_server_that_never_answers_is_not_waited_for_for_ever() {
    let server = Server::http("never", "").await;
    let address = server.address.to_string();
    let limits = EgressLimits { idle: Duration::from_millis(200), ..EgressLimits::default() };
    let stage = Stage::with(&[&address], Names::default(), limits).await;
    let request = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert_eq!(stage.ask(request).await, "");
}
