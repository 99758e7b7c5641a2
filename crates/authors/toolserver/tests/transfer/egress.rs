//! Where storage may be, and where not.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::net::TcpListener;
use wharf_toolserver::transfer::{FileTransfer, Resolve};

use crate::support::{Bench, Reply, Seen, Storage, files, listens, nobody, serve};

/// Names that lead where a test wants.
#[derive(Debug)]
struct Lead(Vec<IpAddr>);

impl Resolve for Lead {
    fn resolve(&self, _name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        std::future::ready(Ok(self.0.clone())).boxed()
    }
}

fn lead(addresses: &[&str]) -> Arc<Lead> {
    Arc::new(Lead(addresses.iter().map(|text| text.parse().expect("an address")).collect()))
}

#[tokio::test]
async fn t025_only_allowed_origins_are_reached() {
    let storage = Storage::always(Reply::new(200, "secret")).await;
    let other = Storage::always(Reply::new(200, "secret")).await;
    let bench = Bench::of(&storage);
    let port = other.address.port();
    for place in [
        other.url("/x"),
        format!("http://localhost:{port}/x"),
        format!("http://[::ffff:127.0.0.1]:{port}/x"),
        format!("http://2130706433:{port}/x"),
        format!("http://{}@127.0.0.1:{port}/x", storage.address),
        "https://example.com/x".to_owned(),
    ] {
        let failure = bench.input(&place).fetch("x").await.expect_err("elsewhere");
        assert_eq!(failure.code, "ERR_EGRESS", "{place}");
        let failure = bench.output(&place).check_targets().await.expect_err("elsewhere");
        assert_eq!(failure.code, "ERR_EGRESS", "{place}");
    }
    assert!(listens(other.address).await);
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn t025_redirects_stay_within_the_origin() {
    let other = Storage::always(Reply::new(200, "secret")).await;
    let elsewhere = other.url("/y");
    let storage = Storage::start(move |_, seen| match seen.target.as_str() {
        "/near" => Reply::new(302, "").header("Location", "/there?token=1"),
        "/there?token=1" => Reply::new(200, "found"),
        "/named" => {
            let there = format!("http://user:word@{}/there?token=1", seen.header("host"));
            Reply::new(302, "").header("Location", there)
        }
        "/far" => Reply::new(302, "").header("Location", elsewhere.clone()),
        "/sideways" => Reply::new(307, "").header("Location", "https://127.0.0.1/y"),
        _ => Reply::new(308, "").header("Location", "/circle"),
    })
    .await;
    let bench = Bench::of(&storage);
    let near = bench.input(&storage.url("/near")).read("x", 100).await;
    assert_eq!(near.expect("found"), "found");
    for place in ["/far", "/sideways", "/circle", "/named"] {
        let failure = bench.input(&storage.url(place)).fetch("x").await.expect_err(place);
        assert_eq!(failure.code, "ERR_EGRESS", "{place}");
    }
    let circles = storage.seen().iter().filter(|seen| seen.target == "/circle").count();
    assert_eq!(circles, 6);
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn t025_a_redirected_upload_is_sent_whole_again() {
    let storage = Storage::start(|_, seen| match seen.target.as_str() {
        "/x" => Reply::new(307, "").header("Location", "/y"),
        _ => Reply::new(200, ""),
    })
    .await;
    let bench = Bench::of(&storage);
    let files = bench.output(&storage.url("/x"));
    let source = wharf_toolserver::transfer::Source::Value(json!("hello"));
    assert_eq!(files.put("x", source).await.expect("written").bytes, 5);
    let bodies: Vec<_> = storage.seen().into_iter().map(|seen| (seen.target, seen.body)).collect();
    assert_eq!(bodies[1], ("/y".to_owned(), b"hello".to_vec()));
}

#[tokio::test]
async fn t025_names_that_lead_inside_are_refused() {
    for addresses in [
        &["10.0.0.1"][..],
        &["127.0.0.1"],
        &["::1"],
        &["169.254.169.254"],
        &["192.168.7.7"],
        &["0.0.0.0"],
        &["224.0.0.1"],
        &["::ffff:10.0.0.1"],
        &["fe80::1"],
        &["fd00::1"],
        &["1.1.1.1", "127.0.0.1"],
    ] {
        let bench = Bench::new(&["http://s3.example:9".to_owned()]);
        let transfer = FileTransfer::with_resolver(bench.policy.clone(), lead(addresses));
        let place = json!({"x": "http://s3.example:9/x"});
        let transfer = transfer.expect("a policy");
        let (files, _reports) = files(&transfer, place.clone(), place, Some(&["x"]));
        let failure = files.fetch("x").await.expect_err("inside");
        assert_eq!(failure.code, "ERR_EGRESS", "{addresses:?}");
        let failure = files.check_targets().await.expect_err("inside");
        assert_eq!(failure.code, "ERR_EGRESS", "{addresses:?}");
    }
}

#[tokio::test]
async fn t025_the_address_that_was_checked_is_the_one_connected_to() {
    let storage = Storage::always(Reply::new(200, "here")).await;
    let origin = format!("http://bucket.localhost:{}", storage.address.port());
    let bench = Bench::new(std::slice::from_ref(&origin));
    let transfer = FileTransfer::with_resolver(bench.policy.clone(), lead(&["127.0.0.1"]));
    let inputs = json!({"x": format!("{origin}/x")});
    let (run, _reports) =
        files(&transfer.expect("a policy"), inputs.clone(), json!({}), Some(&["x"]));
    assert_eq!(run.read("x", 100).await.expect("read"), "here");
    assert!(storage.seen()[0].header("host").starts_with("bucket.localhost:"));
    // The names of this machine lead to it or nowhere.
    let transfer = FileTransfer::with_resolver(bench.policy.clone(), lead(&["1.1.1.1"]));
    let (run, _reports) = files(&transfer.expect("a policy"), inputs, json!({}), Some(&["x"]));
    assert_eq!(run.fetch("x").await.expect_err("outside").code, "ERR_EGRESS");
}

#[tokio::test]
async fn t025_private_names_are_good_only_where_the_policy_says_so() {
    let mut bench = Bench::new(&["http://s3.example:9".to_owned()]);
    bench.policy.private_names = true;
    for (address, is_good) in [("10.0.0.1", true), ("127.0.0.1", false), ("169.254.1.1", false)] {
        let transfer = FileTransfer::with_resolver(bench.policy.clone(), lead(&[address]));
        let outputs = json!({"x": "http://s3.example:9/x"});
        let (run, _reports) = files(&transfer.expect("a policy"), json!({}), outputs, None);
        assert_eq!(run.check_targets().await.is_ok(), is_good, "{address}");
    }
}

#[tokio::test]
async fn t025_within_a_fence_everything_goes_by_its_way_out() {
    let way_out = Storage::always(Reply::new(200, "by the way out")).await;
    let mut bench = Bench::new(&["http://s3.example".to_owned()]);
    bench.policy.proxy = Some(way_out.origin());
    let transfer = FileTransfer::with_resolver(bench.policy.clone(), lead(&["10.0.0.1"]));
    let transfer = transfer.expect("a policy");
    let place = json!({"x": "http://s3.example/x?y", "z": "http://other.example/x"});
    let (run, _reports) = files(&transfer, place.clone(), place, Some(&["x", "z"]));
    assert_eq!(run.read("x", 100).await.expect("read"), "by the way out");
    assert_eq!(way_out.seen()[0].target, "http://s3.example/x?y");
    assert_eq!(run.fetch("z").await.expect_err("not allowed").code, "ERR_EGRESS");
    assert_eq!(way_out.seen().len(), 1);
}

#[tokio::test]
async fn t029_storage_that_is_not_there_is_trouble_with_storage() {
    let mut bench = Bench::new(&[]);
    let address = nobody().await;
    bench.policy.origins = vec![format!("http://{address}")];
    let failure = bench.input(&format!("http://{address}/x")).fetch("x").await;
    assert_eq!(failure.expect_err("nobody").code, "ERR_STORAGE");
}

#[tokio::test]
async fn t023_https_needs_a_certificate_that_is_trusted() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let bench_folder = tempfile::tempdir().expect("a folder");
    let pem = bench_folder.path().join("trusted.pem");
    std::fs::write(&pem, made.cert.pem()).expect("written");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.expect("a key"))
        .expect("a configuration");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("https://localhost:{}", listener.local_addr().expect("it").port());
    let server = tokio::spawn(async move {
        let seen: Mutex<Vec<Seen>> = Mutex::default();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, &seen, &|_, _| Reply::new(200, "sealed")).await;
            }
        }
    });
    let mut bench = Bench::new(std::slice::from_ref(&origin));
    bench.policy.tries = 1;
    let inputs = json!({"x": format!("{origin}/x")});
    for (trusted, expected) in [(None, Err("ERR_STORAGE")), (Some(pem), Ok(b"sealed".to_vec()))] {
        bench.policy.trusted = trusted;
        let transfer = FileTransfer::with_resolver(bench.policy.clone(), lead(&["127.0.0.1"]));
        let (run, _reports) = files(&transfer.expect("a policy"), inputs.clone(), json!({}), None);
        let read = run.read("x", 100).await;
        match expected {
            Ok(bytes) => assert_eq!(read.expect("read"), bytes),
            Err(code) => assert_eq!(read.expect_err(code).code, code),
        }
    }
    server.abort();
}
