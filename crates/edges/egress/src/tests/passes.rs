//! What is approved passes, whole and unchanged.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::servers::Server;
use super::{Stage, get, read_all, within};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nKeep-Alive: 5\r\n\r\nhello";

#[tokio::test]
async fn a_tunnel_passes_both_ways_and_ends_one_way_at_a_time() {
    let server = Server::echo().await;
    let stage = Stage::open(&[&server.address.to_string()]).await;
    let mut stream = stage.tunnel(server.address).await;
    stream.write_all(b"ping").await.expect("written");
    let mut answer = [0; 4];
    within(stream.read_exact(&mut answer)).await.expect("answered");
    assert_eq!(&answer, b"ping");
    stream.write_all(b"last").await.expect("written");
    stream.shutdown().await.expect("ended");
    assert_eq!(read_all(&mut stream).await, "last");
    assert_eq!(stage.door().bytes(), (8, 8));
}

#[tokio::test]
async fn what_comes_right_behind_a_connect_is_not_lost() {
    let server = Server::echo().await;
    let stage = Stage::open(&[&server.address.to_string()]).await;
    let mut stream = stage.dial().await;
    // As some older clients ask: HTTP/1.0 and no Host.
    let all = format!("CONNECT {} HTTP/1.0\r\n\r\n\0\n\rbinary", server.address);
    stream.write_all(all.as_bytes()).await.expect("written");
    stream.shutdown().await.expect("ended");
    let answer = read_all(&mut stream).await;
    assert!(answer.ends_with("\r\n\r\n\0\n\rbinary"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_passes_a_tunnel_unchanged() {
    let server = Server::echo().await;
    let stage = Stage::open(&[&server.address.to_string()]).await;
    let stream = stage.tunnel(server.address).await;
    let sent: Vec<u8> = (0..8_u32 << 18).flat_map(u32::to_be_bytes).collect();
    let (mut from, mut to) = stream.into_split();
    let bytes = sent.clone();
    let writing = tokio::spawn(async move {
        to.write_all(&bytes).await.expect("written");
        to.shutdown().await.expect("ended");
    });
    let mut received = Vec::new();
    within(from.read_to_end(&mut received)).await.expect("read");
    writing.await.expect("ends");
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    let all = sent.len() as u64;
    assert_eq!(stage.door().bytes(), (all, all));
}

#[tokio::test]
async fn a_request_is_forwarded_without_what_was_for_the_proxy() {
    let mut server = Server::http("\r\n\r\n", HELLO).await;
    let (address, stage) = (server.address, Stage::open(&[&server.address.to_string()]).await);
    let answer = stage
        .ask(format!(
            "GET http://{address}/a/b?c=d HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n\
             Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n\r\n"
        ))
        .await;
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    let wanted = format!(
        "GET /a/b?c=d HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(server.saw().await, wanted);
    let (out, back) = stage.door().bytes();
    assert_eq!((out, back), (wanted.len() as u64, HELLO.len() as u64));
}

#[tokio::test]
async fn bodies_pass_and_nothing_behind_them_does() {
    let next = "GET /second HTTP/1.1\r\nHost: b.example\r\n\r\n";
    for (headers, body) in [
        ("Content-Length: 9\r\n", "some body"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nsome \r\n4\r\nbody\r\n0\r\n\r\n"),
        ("", ""),
    ] {
        let until = if body.is_empty() { "\r\n\r\n" } else { "body" };
        let mut server = Server::http(until, HELLO).await;
        let (address, stage) = (server.address, Stage::open(&[&server.address.to_string()]).await);
        let request = format!(
            "PUT http://{address}/x HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n{body}{next}"
        );
        let answer = stage.ask(request).await;
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
        let seen = server.saw().await;
        let (head, passed) = seen.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(headers.trim()), "{head}");
        // The answer may come before the very last bytes of the body have gone out.
        assert!(body.starts_with(passed) && !seen.contains("second"), "{seen}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_early_is_heard() {
    // It reads the head only and leaves.
    let server = Server::start("127.0.0.1:0", |mut stream| async move {
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            seen.push(stream.read_u8().await.expect("a head"));
        }
        let answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.expect("written");
        seen
    })
    .await;
    let (address, stage) = (server.address, Stage::open(&[&server.address.to_string()]).await);
    let mut stream = stage.dial().await;
    let head = format!(
        "PUT http://{address}/ HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn this_machine_is_reached_when_it_is_named() {
    let mut server = Server::http("\r\n\r\n", HELLO).await;
    let port = server.port();
    let stage = Stage::open(&[&format!("localhost:{port}")]).await;
    for host in ["localhost", "LocalHost", "localhost."] {
        let answer =
            stage.ask(get(&format!("http://{host}:{port}/"), &format!("{host}:{port}"))).await;
        assert!(answer.ends_with("hello"), "{host}: {answer}");
        assert!(server.saw().await.contains(&format!("Host: localhost:{port}\r\n")));
    }
}

#[tokio::test]
async fn an_address_of_version_6_is_reached_when_it_is_named() {
    if TcpListener::bind("[::1]:0").await.is_err() {
        return wharf_skips::skip("this machine has no address of version 6");
    }
    let server = Server::http_at("[::1]:0", "\r\n\r\n", HELLO).await;
    let address = server.address.to_string();
    let stage = Stage::open(&[&address]).await;
    let answer = stage.ask(get(&format!("http://{address}/"), &address)).await;
    assert!(answer.ends_with("hello"), "{answer}");
}
