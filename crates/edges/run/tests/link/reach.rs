//! Getting to a server: sockets, encryption, tokens, and servers that are not there.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wharf_ports::vault::Secret;
use wharf_run::link::{Health, Reachable};
use wharf_vocab::{Code, RunStatus};

use crate::stage::{LONG, Plan, Stage};
use crate::troupe::Troupe;

async fn works(troupe: &Troupe, stage: &Stage) {
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.succeed(json!({"ok": true})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"ok": true}));
}

#[tokio::test]
async fn t042_a_server_on_a_socket_in_the_file_system_is_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let troupe = Troupe::unix(folder.path().join("s.sock"));
    let stage = Plan::new(troupe.endpoint()).open().await;
    works(&troupe, &stage).await;
}

#[tokio::test]
async fn t002_the_subprotocol_is_offered_and_must_be_echoed() {
    let mut troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let actor = troupe.accept().await;
    assert_eq!(actor.handshake.headers()["sec-websocket-protocol"], "theory.run.v1");
    assert_eq!(actor.handshake.uri().path(), "/run");
    assert_eq!(actor.handshake.headers()["host"], troupe.address().to_string().as_str());
    assert!(actor.handshake.headers().get("authorization").is_none());
    drop(actor);
    assert!(stage.fault_of(&run).await.is(Code::ToolWorkerLost));

    troupe.echoes = false;
    let run = stage.start(json!({})).await;
    for _ in 0..5 {
        troupe.try_accept().await;
    }
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolUnavailable), "{fault}");
    assert!(fault.message.contains("does not speak theory.run.v1"), "{fault}");
    assert_eq!(fault.details["executed"], "no");
}

/// A certificate for `localhost` and the authority that signed it.
fn certificates() -> (rustls::ServerConfig, CertificateDer<'static>) {
    let mut authority = CertificateParams::new(Vec::new()).expect("valid");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
        .expect("signs");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).expect("valid");
    let certificate = certificate.signed_by(&key, &authority).expect("signs");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("fits");
    (config, authority.der().clone())
}

#[tokio::test]
async fn t042_a_server_elsewhere_is_reached_encrypted() {
    let (config, root) = certificates();
    let troupe = Troupe::tls(config).await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.roots = vec![root]).open().await;
    works(&troupe, &stage).await;
}

#[tokio::test]
async fn t042_a_server_with_a_certificate_that_nobody_trusts_is_told_nothing() {
    let (config, _) = certificates();
    let (_, other) = certificates();
    let troupe = Troupe::tls(config).await;
    let plan = Plan::new(troupe.endpoint().with_bearer(Some(Secret::new(b"canary".to_vec()))));
    let stage = plan.with(|settings| settings.roots = vec![other]).open().await;
    let run = stage.start(json!({})).await;
    for _ in 0..5 {
        assert!(troupe.try_accept().await.is_none(), "no handshake");
    }
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolUnavailable), "{fault}");
    assert!(fault.message.contains("no encrypted connection"), "{fault}");
}

#[tokio::test]
async fn t022_the_token_is_sent_as_it_is_kept() {
    let mut troupe = Troupe::tcp().await;
    troupe.token = Some("s3cret");
    let bearer = Some(Secret::new(b"s3cret\n".to_vec()));
    let stage = Plan::new(troupe.endpoint().with_bearer(bearer)).open().await;
    works(&troupe, &stage).await;
}

#[tokio::test]
async fn t042_a_server_that_refuses_the_token_is_named_so() {
    let mut troupe = Troupe::tcp().await;
    troupe.token = Some("right");
    let bearer = Some(Secret::new(b"wrong-canary".to_vec()));
    let stage = Plan::new(troupe.endpoint().with_bearer(bearer)).open().await;
    let run = stage.start(json!({})).await;
    for _ in 0..5 {
        assert!(troupe.try_accept().await.is_none());
    }
    let fault = stage.fault_of(&run).await;
    assert!(fault.message.contains("refused the token (HTTP 401)"), "{fault}");
    assert!(!format!("{fault:?}").contains("canary"));
}

#[tokio::test]
async fn t042_an_answer_that_leads_elsewhere_is_not_followed() {
    let (troupe, other) = (Troupe::tcp().await, Troupe::tcp().await);
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.failures_max = 100).open().await;
    let run = stage.start(json!({})).await;
    let there = other.address();
    for _ in 0..5 {
        let mut wire = troupe.raw().await;
        let mut request = [0; 4096];
        let _ = wire.read(&mut request).await.expect("a request");
        let answer = format!(
            "HTTP/1.1 307 There\r\nLocation: ws://{there}/run\r\nContent-Length: 0\r\n\r\n"
        );
        wire.write_all(answer.as_bytes()).await.expect("answers");
    }
    let fault = stage.fault_of(&run).await;
    assert!(fault.message.contains("HTTP 307"), "{fault}");
    let nobody = tokio::time::timeout(Duration::from_millis(50), other.raw());
    assert!(nobody.await.is_err(), "nobody came there");
}

#[tokio::test]
async fn t042_an_attempt_that_never_reached_its_server_is_tried_again() {
    let troupe = Troupe::tcp().await;
    let address = troupe.address();
    let stage = Plan::new(troupe.endpoint()).open().await;
    drop(troupe);
    let run = stage.start(json!({})).await;
    let failed = |run: &wharf_domain::Run| run.active.is_none() && run.attempt >= 1;
    let deadline = tokio::time::Instant::now() + LONG;
    while !failed(&stage.handle.runs().get(&run).await.expect("known")) {
        assert!(tokio::time::Instant::now() < deadline, "it does not fail");
        tokio::task::yield_now().await;
    }
    let troupe = Troupe::at(address).await;
    let (mut actor, request) = troupe.take().await;
    assert!(request["control"]["attempt"].as_u64() > Some(1));
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t042_a_server_that_cannot_be_reached_is_left_alone_until_it_is_there_again() {
    let troupe = Troupe::tcp().await;
    let address = troupe.address();
    let adjust = |settings: &mut wharf_run::link::Settings| {
        settings.failures_max = 2;
        settings.rest = Duration::from_millis(100);
    };
    let stage = Plan::new(troupe.endpoint()).with(adjust).open().await;
    drop(troupe);
    assert_eq!(stage.server.reachable(), Reachable::Yes);
    let run = stage.start(json!({})).await;
    let no = stage.server.reachable_changed(&Reachable::Yes);
    let no = tokio::time::timeout(LONG, no).await.expect("in time");
    assert_eq!(no, Reachable::No { why: "nobody listens there".to_owned() });

    let troupe = Troupe::at(address).await;
    let yes = stage.server.reachable_changed(&no);
    let (yes, first) = tokio::join!(tokio::time::timeout(LONG, yes), troupe.accept());
    assert_eq!(yes.expect("in time"), Reachable::Yes);
    // Whoever came first may have tried only whether the server is there.
    let mut first = first;
    let mut actor = match first.try_hear().await {
        Some(_) => first,
        None => {
            let mut actor = troupe.accept().await;
            actor.request().await;
            actor
        }
    };
    actor.say(json!({"kind": "Ack"})).await;
    actor.say(json!({"kind": "Response", "control": {"final": true, "status": "success", "cost_micro": 0}}))
        .await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t001_a_server_is_asked_how_it_is() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let serve = async {
        let mut wire = troupe.raw().await;
        let mut request = vec![0; 4096];
        let count = wire.read(&mut request).await.expect("a request");
        let body = r#"{"ok":true,"digest":"abc"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        wire.write_all(answer.as_bytes()).await.expect("answers");
        String::from_utf8_lossy(&request[..count]).into_owned()
    };
    let (request, health) = tokio::join!(serve, stage.server.health());
    assert!(request.starts_with("GET /healthz HTTP/1.1\r\n"), "{request}");
    let expected = Health { ok: true, digest: Some("abc".to_owned()) };
    assert_eq!(health.expect("answers"), expected);
    let address = troupe.address();
    drop(troupe);
    let fault = stage.server.health().await.expect_err("gone");
    assert!(fault.message.contains("nobody listens there"), "{fault} {address}");
}
