//! Tokens, TLS, Unix sockets, and who may listen where.

use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use wharf_toolserver::server::{CertFiles, Error, Listen, Server};
use wharf_wire::run_v1::{Handover, ToolName};

use super::kit::{Stage, done, echo, options, request, wait};

async fn guarded(handler: &'static str) -> Stage {
    let stage_folder = tempfile::tempdir().expect("a folder");
    let tokens = stage_folder.path().join("tokens");
    std::fs::write(&tokens, "first-token\nsecond-token\n").expect("written");
    let change = |options: &mut wharf_toolserver::server::Options| {
        options.token_file = Some(tokens.clone());
    };
    if handler == "wait" {
        Stage::with(wait, change).await
    } else {
        Stage::with(echo, change).await
    }
}

#[tokio::test]
async fn t022_a_token_is_needed_in_the_handshake() {
    let stage = guarded("echo").await;
    for wrong in ["", "Bearer wrong", "Basic first-token", "Bearer first-token2"] {
        let refused = stage.client_with(&[("authorization", wrong)]).await.err();
        assert_eq!(refused, Some(401), "{wrong}");
    }
    assert_eq!(stage.client_with(&[]).await.err(), Some(401));
    let mut client =
        stage.client_with(&[("authorization", "Bearer first-token")]).await.expect("accepted");
    client.send(&request("r", json!({"a": 1}))).await;
    assert_eq!(client.rest().await.end()["outputs"], json!({"a": 1}));
    assert_eq!(stage.http("GET /healthz HTTP/1.1").await.0, 200, "health needs none");
}

#[tokio::test]
async fn t022_a_run_is_seen_only_with_the_token_that_started_it() {
    let stage = guarded("wait").await;
    let first = [("authorization", "Bearer first-token")];
    let second = [("authorization", "Bearer second-token")];
    let mut mine = stage.client_with(&first).await.expect("accepted");
    mine.send(&request("r", json!({}))).await;
    mine.until("started").await;
    let mut other = stage.client_with(&second).await.expect("accepted");
    other.send(&request("r", json!({}))).await;
    other.until("started").await;
    other.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(other.rest().await.code(), "ERR_CANCELED");
    let mut again = stage.client_with(&first).await.expect("accepted");
    again.send(&request("r", json!({}))).await;
    again.until("started").await;
    again.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(mine.rest().await.code(), "ERR_CANCELED");
}

#[tokio::test]
async fn t022_without_a_token_only_this_machine_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let mut options = options(&folder);
        options.listen = Listen::Tcp(address.to_owned());
        let error = Server::bind(options).await.expect_err("refused");
        assert!(matches!(error, Error::Open(_)), "{error}");
    }
    let stage = Stage::new(echo).await;
    let page = stage.client_with(&[("origin", "https://evil.example")]).await;
    assert_eq!(page.err(), Some(403));
    let renamed = stage.client_with(&[("host", "evil.example")]).await;
    assert_eq!(renamed.err(), Some(403));
}

#[tokio::test]
async fn a_unix_socket_is_for_its_owner_and_goes_with_the_server() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tool.sock");
    let listen = Listen::Unix(path.clone());
    let stage = Stage::with(echo, |options| options.listen = listen).await;
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stream = UnixStream::connect(&path).await.expect("accepted");
    let mut asked = "ws://localhost/run".into_client_request().expect("a request");
    let offer = "theory.run.v1".parse().expect("a value");
    asked.headers_mut().insert("sec-websocket-protocol", offer);
    let (mut socket, _) = tokio_tungstenite::client_async(asked, stream).await.expect("accepted");
    socket.send(Message::text(request("r", json!({})).to_string())).await.expect("sent");
    let ack = socket.next().await.expect("an answer").expect("a frame");
    assert!(ack.to_text().expect("text").contains("Ack"));
    drop(socket);
    let mut second = options(&folder);
    second.listen = Listen::Unix(path.clone());
    assert!(Server::bind(second).await.is_err(), "somebody listens there");
    stage.stop();
    stage.serving.await.expect("ended");
    assert!(!path.exists());
}

#[tokio::test]
async fn t042_runs_work_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let tls = CertFiles { cert, key };
    let stage =
        Stage::with(|_, _| async { done(json!({"x": 1})) }, |options| options.tls = Some(tls))
            .await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("added");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = connector.connect(name, stage.tcp().await).await.expect("TLS");
    let mut asked = "wss://localhost/run".into_client_request().expect("a request");
    let offer = "theory.run.v1".parse().expect("a value");
    asked.headers_mut().insert("sec-websocket-protocol", offer);
    let (mut socket, _) = tokio_tungstenite::client_async(asked, stream).await.expect("accepted");
    socket.send(Message::text(request("r", json!({})).to_string())).await.expect("sent");
    let mut frames: Vec<Value> = Vec::new();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        frames.push(serde_json::from_str(&text).expect("JSON"));
    }
    assert!(frames.iter().any(|frame| frame["outputs"] == json!({"x": 1})));
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let mut one = options(&folder);
    one.token_file = Some(missing.clone());
    let error = Server::bind(one).await.expect_err("refused").to_string();
    assert!(error.contains("missing"), "{error}");
    let mut two = options(&folder);
    two.tls = Some(CertFiles { cert: missing.clone(), key: missing });
    assert!(Server::bind(two).await.is_err());
}

/// What a core hands over: a socket that it has made, a secret, and which tool is served. The
/// reader's end of the connection must stay for as long as the server takes.
fn handed_over(folder: &std::path::Path) -> (std::path::PathBuf, std::os::unix::net::UnixStream) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::io::IoSlice;
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd as _;
    let path = folder.join("core.sock");
    let socket = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let tool = ToolName { reference: "text/shout@1".into(), digest: Some("aa".into()) };
    let text = serde_json::to_vec(&Handover { secret: "launch-1".into(), tool }).expect("JSON");
    let descriptors = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(&ours, &[IoSlice::new(&text)], &mut ancillary, SendFlags::empty()).expect("sent");
    (path, theirs)
}

/// Asks a launched server for a run with this secret, for this tool; its frames, or the status.
async fn asked_as(
    path: &std::path::Path,
    secret: Option<&str>,
    tool: &Value,
) -> Result<Vec<Value>, u16> {
    let stream = UnixStream::connect(path).await.expect("accepted");
    let mut asked = "ws://localhost/run".into_client_request().expect("a request");
    let offer = "theory.run.v1".parse().expect("a value");
    asked.headers_mut().insert("sec-websocket-protocol", offer);
    if let Some(secret) = secret {
        let shown = format!("Bearer {secret}").parse().expect("a value");
        asked.headers_mut().insert("authorization", shown);
    }
    let mut socket = match tokio_tungstenite::client_async(asked, stream).await {
        Ok((socket, _)) => socket,
        Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
            return Err(answer.status().as_u16());
        }
        Err(error) => panic!("{error}"),
    };
    let mut request = request("r", json!({"a": 1}));
    request["control"]["tool"] = tool.clone();
    socket.send(Message::text(request.to_string())).await.expect("sent");
    let mut frames: Vec<Value> = Vec::new();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        frames.push(serde_json::from_str(&text).expect("JSON"));
    }
    Ok(frames)
}

#[tokio::test]
async fn a_launched_server_listens_where_it_was_told_and_serves_its_core_and_its_tool_alone() {
    use std::os::fd::AsRawFd as _;
    let folder = tempfile::tempdir().expect("a folder");
    let (path, theirs) = handed_over(folder.path());
    let listen = Listen::Inherited(theirs.as_raw_fd());
    let stage = Stage::with(echo, |options| options.listen = listen).await;
    let inherited = rustix::io::fcntl_getfd(&theirs).expect("open");
    assert!(inherited.contains(rustix::io::FdFlags::CLOEXEC), "no worker inherits it");
    let own = json!({"ref": "text/shout@1", "digest": "aa"});
    for wrong in [None, Some(""), Some("launch-2"), Some("launch-11"), Some("launch")] {
        assert_eq!(asked_as(&path, wrong, &own).await.err(), Some(401), "{wrong:?}");
    }
    let frames = asked_as(&path, Some("launch-1"), &own).await.expect("let in");
    assert_eq!(frames[0]["tool"], own, "{frames:?}");
    assert!(frames.iter().any(|frame| frame["outputs"] == json!({"a": 1})), "{frames:?}");
    for other in [json!({"ref": "bank/transfer@1"}), json!({"ref": "text/shout@1", "digest": "b"})]
    {
        let frames = asked_as(&path, Some("launch-1"), &other).await.expect("let in");
        let codes: Vec<_> = frames.iter().map(|frame| &frame["error"]["code"]).collect();
        assert!(codes.contains(&&json!("ERR_WRONG_TOOL")), "{frames:?}");
        assert!(!frames.iter().any(|frame| frame["outputs"] == json!({"a": 1})), "{frames:?}");
    }
    stage.stop();
    stage.serving.await.expect("ended");
    assert!(path.exists(), "the socket's name is its maker's");
}

#[tokio::test]
async fn a_server_to_which_nothing_was_handed_over_does_not_start() {
    use std::os::fd::AsRawFd as _;
    let folder = tempfile::tempdir().expect("a folder");
    let (_ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let file = std::fs::File::open(folder.path()).expect("open");
    for number in [theirs.as_raw_fd(), file.as_raw_fd()] {
        let mut options = options(&folder);
        options.listen = Listen::Inherited(number);
        let error = Server::bind(options).await.expect_err("refused");
        assert!(matches!(error, Error::Bind { .. }), "{error}");
    }
}
