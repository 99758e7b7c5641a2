//! What happens when an end goes away, and when the door itself does.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wharf_ports::launcher::Egress;
use wharf_vocab::{Code, ProviderId};

use super::servers::Server;
use super::{Stage, read_all, within};

#[tokio::test]
async fn when_the_agent_leaves_the_server_hears_it() {
    let mut server = Server::http("never", "").await;
    let stage = Stage::open(&[&server.address.to_string()]).await;
    let mut stream = stage.tunnel(server.address).await;
    stream.write_all(b"half a mess").await.expect("written");
    drop(stream);
    assert_eq!(server.saw().await, "half a mess");
    // The same in the middle of a body: nothing is made up for what is missing.
    let address = server.address;
    let mut stream = stage.dial().await;
    let request = format!(
        "PUT http://{address}/ HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100\r\n\r\nhalf"
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    drop(stream);
    assert!(server.saw().await.ends_with("\r\n\r\nhalf"));
}

#[tokio::test]
async fn when_the_server_leaves_the_agent_hears_it() {
    let server = Server::start("127.0.0.1:0", |mut stream| async move {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
        stream.read_u8().await.expect("something");
        stream.write_all(answer.as_bytes()).await.expect("written");
        // What was not read would reset the connection and take the answer with it.
        let mut rest = [0; 4096];
        let _ = stream.read(&mut rest).await;
        Vec::new()
    })
    .await;
    let (address, stage) = (server.address, Stage::open(&[&server.address.to_string()]).await);
    let request = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert!(stage.ask(&request).await.ends_with("\r\n\r\nhalf"));
    let mut stream = stage.tunnel(address).await;
    stream.write_all(b"xy").await.expect("written");
    assert!(read_all(&mut stream).await.ends_with("half"));
}

#[tokio::test]
async fn with_the_door_its_socket_and_every_connection_go() {
    let mut server = Server::http("never", "").await;
    let mut stage = Stage::open(&[&server.address.to_string()]).await;
    let mut tunnel = stage.tunnel(server.address).await;
    let mut half = stage.dial().await;
    half.write_all(b"CONNECT").await.expect("written");
    tunnel.write_all(b"before").await.expect("written");
    let counted = async {
        while stage.door().bytes() != (6, 0) {
            tokio::task::yield_now().await;
        }
    };
    within(counted).await;
    stage.door = None;
    assert!(!stage.socket().exists());
    assert!(UnixStream::connect(stage.socket()).await.is_err());
    assert_eq!(read_all(&mut tunnel).await, "");
    assert_eq!(read_all(&mut half).await, "");
    assert_eq!(server.saw().await, "before");
}

#[tokio::test]
async fn the_socket_is_the_owners_alone_and_one_left_behind_is_replaced() {
    let mut stage = Stage::open(&["api.example"]).await;
    let found = std::fs::symlink_metadata(stage.socket()).expect("there");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    // The next door of the same agent is not closed by the one before it.
    let next = stage.another(&["api.example"]).await;
    stage.door = None;
    assert!(stage.socket().exists());
    let answer = stage.ask("CONNECT other.example:1 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    drop(next);
    assert!(!stage.socket().exists());
}

#[tokio::test]
async fn a_door_that_cannot_be_opened_is_told_and_removes_nothing() {
    let mut stage = Stage::open(&[]).await;
    stage.door = None;
    std::fs::write(stage.socket(), "not a socket").expect("written");
    let agent = ProviderId::new("sneaky").expect("an id");
    for path in
        [stage.socket(), stage.dir.path().join("no/such"), stage.dir.path().join("x".repeat(120))]
    {
        let fault = stage.proxy.open(agent.clone(), path, Vec::new()).await.err().expect("refused");
        assert!(fault.is(Code::AgentStartFailed), "{fault}");
    }
    assert_eq!(std::fs::read_to_string(stage.socket()).expect("there"), "not a socket");
}
