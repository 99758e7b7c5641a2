//! The API over TLS: requests, streams, WebSockets, cookies, and peers that do not speak it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use wharf_http::HttpLimits;
use wharf_tls::{Acceptor, CertFiles};

use crate::mounts;
use crate::support::client::Call;
use crate::support::{Edge, PATIENCE, TOKEN, bearer, eventually};

struct Secure {
    edge: Edge,
    certificate: CertificateDer<'static>,
    acceptor: Acceptor,
    folder: tempfile::TempDir,
}

/// Writes a certificate for these names and its key into a folder.
fn write_certificate(folder: &Path, names: &[&str]) -> (CertFiles, CertificateDer<'static>) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("made");
    let files = CertFiles { cert: folder.join("cert.pem"), key: folder.join("key.pem") };
    std::fs::write(&files.cert, made.cert.pem()).expect("written");
    std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("written");
    (files, made.cert.der().clone())
}

impl Secure {
    async fn start(limits: HttpLimits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (files, certificate) = write_certificate(folder.path(), &["localhost"]);
        let acceptor = Acceptor::open(files).expect("opens");
        let tls = acceptor.clone();
        let edge = Edge::start_with(|options| {
            options.tls = Some(tls);
            options.limits = limits;
            options.mounts = vec![mounts::mount()];
        })
        .await;
        Self { edge, certificate, acceptor, folder }
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.edge.server.addr().port())
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("added");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.edge.server.addr()).await.expect("connects");
        let name = ServerName::try_from("localhost").expect("a name");
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        timeout(PATIENCE, connecting).await.expect("a handshake in time").expect("TLS")
    }

    fn call(&self, method: &str, path: &str) -> Call {
        Call::new(self.edge.server.addr(), method, path)
            .header("host", &self.host())
            .header("authorization", &bearer())
    }

    /// Sends one request with its body and reads all that comes back.
    async fn send(&self, call: Call, body: &str) -> String {
        let length = body.len().to_string();
        let call = call.header("connection", "close").header("content-length", &length);
        let mut stream = self.connect().await;
        stream.write_all(format!("{}{body}", call.head()).as_bytes()).await.expect("sent");
        stream.flush().await.expect("sent");
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        timeout(PATIENCE, reading).await.expect("an answer in time").expect("a clean end");
        String::from_utf8(answer).expect("text")
    }
}

#[tokio::test]
async fn runs_their_events_and_websockets_work_over_tls() {
    let secure = Secure::start(HttpLimits::default()).await;
    let body = json!({"run_id": "r1", "tool": "wharf/count", "inputs": {"n": 3}}).to_string();
    let call = secure.call("POST", "/v1/runs?wait=20s").header("content-type", "application/json");
    let answer = secure.send(call, &body).await;
    assert!(answer.contains("\"succeeded\""), "{answer}");

    let mut stream = secure.connect().await;
    let head = secure.call("GET", "/v1/runs/r1/events").head();
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut lines = BufReader::new(stream).lines();
    let told = async {
        while let Some(line) = lines.next_line().await.expect("read") {
            if line.contains("succeeded") {
                return true;
            }
        }
        false
    };
    assert!(timeout(PATIENCE, told).await.expect("events in time"), "the end is told");

    let mut request =
        format!("wss://{}/other", secure.host()).into_client_request().expect("a request");
    let offered = format!("wharf.bearer.{TOKEN}, wharf.v1");
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", offered.parse().expect("a value"));
    headers.insert("origin", format!("https://{}", secure.host()).parse().expect("a value"));
    let opened = tokio_tungstenite::client_async(request, secure.connect().await).await;
    let (mut socket, _) = opened.expect("opened");
    let hello = timeout(PATIENCE, socket.next()).await.expect("in time");
    assert!(matches!(hello, Some(Ok(Message::Text(text))) if text.starts_with("owner")));
    let large = "x".repeat(1_000_000);
    socket.send(Message::text(large.clone())).await.expect("sent");
    let echoed = timeout(PATIENCE, socket.next()).await.expect("in time");
    assert!(matches!(echoed, Some(Ok(Message::Text(text))) if text.as_str() == large));
}

#[tokio::test]
async fn c007_a_browser_that_signs_in_over_tls_gets_a_secure_cookie() {
    let secure = Secure::start(HttpLimits::default()).await;
    // Whoever calls by an address that the certificate is not for is led to a name that it is for.
    let call = secure.call("POST", "/v1/console/links");
    let call = call.header("host", &secure.edge.server.addr().to_string());
    let answer = secure.send(call, "").await;
    let address = format!("\"https://{}/#link=", secure.host());
    assert!(answer.contains(&address), "{answer}");

    let page = |origin: &str| {
        secure
            .call("POST", "/v1/console/session")
            .header("authorization", "")
            .header("origin", origin)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/json")
    };
    let token = json!({"token": TOKEN}).to_string();
    let answer = secure.send(page(&format!("https://{}", secure.host())), &token).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect("a cookie");
    assert!(cookie.starts_with("__Host-wharf-00000000="), "{cookie}");
    assert!(cookie.ends_with("; Secure") && cookie.contains("; Path=/;"), "{cookie}");

    let plain = secure.send(page(&format!("http://{}", secure.host())), &token).await;
    assert!(plain.starts_with("HTTP/1.1 403 ") && plain.contains("request.origin_forbidden"));
}

#[tokio::test]
async fn the_names_of_a_new_certificate_are_names_of_the_core() {
    let mut secure = Secure::start(HttpLimits::default()).await;
    let own = async |secure: &Secure, host: &str| {
        let call = secure.call("GET", "/v1/runs").header("host", host);
        secure.send(call.header("origin", &format!("https://{host}")), "").await
    };
    let answer = own(&secure, "core.example").await;
    assert!(answer.starts_with("HTTP/1.1 4"), "nobody has named it: {answer}");

    let acceptor = secure.acceptor.clone();
    let period = Duration::from_millis(20);
    let following = tokio::spawn(async move { acceptor.follow_every(period, |_| ()).await });
    let (_, new) = write_certificate(secure.folder.path(), &["localhost", "Core.example"]);
    let chain = [new.clone()];
    eventually(async || (secure.acceptor.certificate().chain() == chain).then_some(())).await;
    secure.certificate = new;
    let answer = own(&secure, "core.example").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    // And a name that is gone from the certificate is none any more.
    let (_, new) = write_certificate(secure.folder.path(), &["localhost"]);
    let chain = [new.clone()];
    eventually(async || (secure.acceptor.certificate().chain() == chain).then_some(())).await;
    secure.certificate = new;
    let answer = own(&secure, "core.example").await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    following.abort();
}

#[tokio::test]
async fn whoever_speaks_plain_http_is_told_to_use_tls() {
    let secure = Secure::start(HttpLimits::default()).await;
    let answer = secure.edge.get("/v1/runs").await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.code(), "request.invalid");
    assert!(answer.text().contains("https://"), "{}", answer.text());
    // Nothing of it was let in, and others go on.
    let answer = secure.send(secure.call("GET", "/v1/runs"), "").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn peers_that_never_finish_a_handshake_give_their_places_back() {
    let limits = HttpLimits {
        connections_max: 2,
        head_read: Duration::from_millis(300),
        ..HttpLimits::default()
    };
    let secure = Secure::start(limits).await;
    let addr = secure.edge.server.addr();
    let _silent = TcpStream::connect(addr).await.expect("connects");
    let mut slow = TcpStream::connect(addr).await.expect("connects");
    // The beginning of a handshake, which never goes on.
    slow.write_all(&[22, 3, 1, 2, 0, 1]).await.expect("sent");
    let answer = secure.send(secure.call("GET", "/healthz"), "").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut end = Vec::new();
    let ended = timeout(PATIENCE, slow.read_to_end(&mut end)).await;
    assert!(ended.is_ok(), "it is let go");
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_handshakes() {
    let secure = Secure::start(HttpLimits::default()).await;
    let _silent = TcpStream::connect(secure.edge.server.addr()).await.expect("connects");
    let mut reader = secure.connect().await;
    reader.write_all(secure.call("GET", "/healthz").head().as_bytes()).await.expect("sent");
    let mut first = [0; 12];
    timeout(PATIENCE, reader.read_exact(&mut first)).await.expect("in time").expect("an answer");
    let began = tokio::time::Instant::now();
    timeout(PATIENCE, secure.edge.server.stop(PATIENCE)).await.expect("it stops");
    assert!(began.elapsed() < PATIENCE, "nobody was cut off by force");
    eventually(async || TcpStream::connect(reader.get_ref().0.peer_addr().ok()?).await.err()).await;
}
