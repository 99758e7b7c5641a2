//! The endpoint against strangers, slow peers and restarts.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusty_s3::actions::{
    CreateBucket, CreateMultipartUpload, DeleteObject, ListObjectsV2, S3Action,
};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use wharf_artifacts::{CertFiles, Endpoint, EndpointOptions, FileObjects, S3Objects, S3Options};
use wharf_contract::objects::{Answer, PlainClient as _, Request};
use wharf_ports::{Method, ObjectStore as _};

use crate::support::{self, Client, Embedded, read, write};

/// Sends one request.
pub(crate) async fn send(method: &'static str, url: &str, body: &'static [u8]) -> Answer {
    let body = Bytes::from_static(body);
    let request = Request { method, url: url.to_owned(), body, ..Request::default() };
    Client::new().send(request).await.expect("answered")
}

/// Writes something to a socket of its own and reads until the other side closes it.
pub(crate) async fn raw(addr: SocketAddr, request: Vec<u8>) -> String {
    let exchange = move || {
        let mut stream = TcpStream::connect(addr).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        stream.write_all(&request).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("read to its end");
        String::from_utf8_lossy(&answer).into_owned()
    };
    tokio::task::spawn_blocking(exchange).await.expect("done")
}

/// What stands in a request for this address.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").expect("a scheme").1;
    &rest[rest.find('/').expect("a path")..]
}

/// The head of a request for this address.
pub(crate) fn head_of(method: &str, url: &str, host: &str, more: &str) -> String {
    format!("{method} {} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n", path_of(url))
}

#[tokio::test]
async fn t032_a_media_type_that_nobody_named_is_that_of_any_bytes() {
    let store = Embedded::start().await;
    let url = store.objects.presign(Method::Put, "w/file", 60);
    assert_eq!(send("PUT", &url, b"<html>").await.status, 200);
    let head = store.objects.head("w/file".to_owned()).await.expect("answered").expect("there");
    assert_eq!(head.media_type, "application/octet-stream");
    assert_eq!(head.b3.expect("hashed").as_str(), blake3::hash(b"<html>").to_hex().as_str());
}

#[tokio::test]
async fn t032_other_credentials_are_refused() {
    let store = Embedded::start().await;
    write(&*store.objects, "w/file", b"content").await;
    let url: reqwest::Url = store.objects.origin().parse().expect("an address");
    let bucket = Bucket::new(url, UrlStyle::Path, "wharf", "us-east-1").expect("a bucket");
    let good = support::credentials();
    for (key_id, secret, code) in [
        ("WHARFOTHER", good.secret.as_str(), "InvalidAccessKeyId"),
        (good.key_id.as_str(), "another secret", "SignatureDoesNotMatch"),
    ] {
        let keys = Credentials::new(key_id, secret);
        let url = bucket.get_object(Some(&keys), "w/file").sign(Duration::from_secs(60));
        let answer = send("GET", url.as_str(), b"").await;
        assert_eq!(answer.status, 403);
        assert!(answer.body.windows(code.len()).any(|part| part == code.as_bytes()), "{code}");
        let url = bucket.put_object(Some(&keys), "w/file").sign(Duration::from_secs(60));
        assert_eq!(send("PUT", url.as_str(), b"changed").await.status, 403);
    }
    assert_eq!(read(&*store.objects, "w/file").await.as_deref(), Some(b"content".as_slice()));
}

#[tokio::test]
async fn nothing_but_reading_and_writing_is_answered_even_to_the_core() {
    let store = Embedded::start().await;
    write(&*store.objects, "w/file", b"content").await;
    let origin: reqwest::Url = store.objects.origin().parse().expect("an address");
    let bucket = Bucket::new(origin, UrlStyle::Path, "wharf", "us-east-1").expect("a bucket");
    let keys = support::credentials();
    let keys = Credentials::new(keys.key_id, keys.secret);
    let minute = Duration::from_secs(60);
    let refused = [
        ("GET", ListObjectsV2::new(&bucket, Some(&keys)).sign(minute)),
        ("DELETE", DeleteObject::new(&bucket, Some(&keys), "w/file").sign(minute)),
        ("PUT", CreateBucket::new(&bucket, &keys).sign(minute)),
        ("POST", CreateMultipartUpload::new(&bucket, Some(&keys), "w/x").sign(minute)),
    ];
    for (method, url) in refused {
        let answer = send(method, url.as_str(), b"").await;
        assert_eq!(answer.status, 403, "{method}: {:?}", answer.body);
    }
    let other: reqwest::Url = store.objects.origin().parse().expect("an address");
    let other = Bucket::new(other, UrlStyle::Path, "other", "us-east-1").expect("a bucket");
    let url = other.get_object(Some(&keys), "w/file").sign(minute);
    assert_eq!(send("GET", url.as_str(), b"").await.status, 404);
    assert_eq!(read(&*store.objects, "w/file").await.as_deref(), Some(b"content".as_slice()));
}

#[tokio::test]
async fn older_ways_of_signing_are_refused() {
    let store = Embedded::start().await;
    write(&*store.objects, "w/file", b"content").await;
    let good = store.objects.presign(Method::Get, "w/file", 60);
    let bare = good.split_once('?').expect("a query").0;
    for url in [
        format!("{bare}?AWSAccessKeyId=WHARFTEST&Expires=99999999999&Signature=x"),
        format!("{good}&Signature=x"),
    ] {
        assert_eq!(send("GET", &url, b"").await.status, 403);
    }
    for value in ["AWS WHARFTEST:signature", "Basic d2hhcmY6d2hhcmY=", "Bearer token"] {
        let request = Request {
            method: "GET",
            url: good.clone(),
            headers: vec![("authorization", value.to_owned())],
            ..Request::default()
        };
        assert_eq!(Client::new().send(request).await.expect("answered").status, 403, "{value}");
    }
}

#[tokio::test]
async fn t032_addresses_outlive_a_restart_on_the_same_port() {
    let store = Embedded::start().await;
    write(&*store.objects, "w/file", b"content").await;
    let get = store.objects.presign(Method::Get, "w/file", 600);
    let put = store.objects.presign(Method::Put, "w/new", 600);
    let Embedded { objects, serving, folder } = store;
    let addr = serving.addr();
    serving.stop().await;
    drop(objects);
    let again = EndpointOptions { listen: addr, ..support::options() };
    let files = FileObjects::open(folder.path()).expect("nobody holds it any more");
    let endpoint = Endpoint::bind(files, again).await.expect("bound");
    let _serving = endpoint.serve();
    assert_eq!(send("GET", &get, b"").await.body, "content");
    assert_eq!(send("PUT", &put, b"late").await.status, 200);
}

#[tokio::test]
async fn addresses_begin_with_the_public_address_and_are_good_for_its_host_only() {
    let public_url = Some("http://files.example.com:8080".to_owned());
    let store = Embedded::start_with(EndpointOptions { public_url, ..support::options() }).await;
    write(&*store.objects, "w/file", b"content").await;
    assert_eq!(store.objects.origin(), "http://files.example.com:8080");
    let url = store.objects.presign(Method::Get, "w/file", 60);
    assert!(url.starts_with("http://files.example.com:8080/wharf/w/file?"));
    let addr = store.serving.addr();
    let ask = |host: &str| raw(addr, head_of("GET", &url, host, "Connection: close\r\n").into());
    let answer = ask("files.example.com:8080").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("content"), "{answer}");
    let answer = ask(&addr.to_string()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn t029_tls_is_spoken_and_an_own_authority_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let tls = Some(CertFiles { cert: cert.clone(), key });
    let store = Embedded::start_with(EndpointOptions { tls, ..support::options() }).await;
    assert!(store.objects.origin().starts_with("https://127.0.0.1:"));
    let port = store.serving.addr().port();
    let keys = support::credentials();
    let endpoint = format!("https://localhost:{port}");
    let mut options = S3Options::new(endpoint, "wharf", keys.key_id, keys.secret);
    options.tries = 1;
    let stranger = S3Objects::open(&options).expect("opens");
    assert!(stranger.head("w/file".to_owned()).await.is_err(), "nobody vouches for it");
    options.ca_file = Some(cert);
    let client = S3Objects::open(&options).expect("opens");
    write(&*client, "w/file", b"content").await;
    assert_eq!(read(&*client, "w/file").await.as_deref(), Some(b"content".as_slice()));
    assert_eq!(read(&*store.objects, "w/file").await.as_deref(), Some(b"content".as_slice()));
}

#[tokio::test]
async fn a_connection_cut_half_way_leaves_nothing() {
    let store = Embedded::start().await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Put, "w/file", 60);
    let head = head_of("PUT", &url, &addr.to_string(), "Content-Length: 3000000\r\n");
    let mut stream = TcpStream::connect(addr).expect("connected");
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&[7; 2_000_000]).expect("sent");
    let tmp = store.folder.path().join("tmp");
    let count = || std::fs::read_dir(&tmp).expect("there").count();
    wait_until(|| count() == 1, "nothing was begun").await;
    drop(stream);
    wait_until(|| count() == 0, "it was left behind").await;
    assert_eq!(read(&*store.objects, "w/file").await, None);
}

#[tokio::test]
async fn a_body_without_a_length_is_refused() {
    let store = Embedded::start().await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Put, "w/file", 60);
    let more = "Transfer-Encoding: chunked\r\nConnection: close\r\n";
    let request = head_of("PUT", &url, &addr.to_string(), more) + "3\r\nabc\r\n0\r\n\r\n";
    let answer = raw(addr, request.into()).await;
    assert!(answer.starts_with("HTTP/1.1 411"), "{answer}");
    assert_eq!(read(&*store.objects, "w/file").await, None);
}

/// A client that reads only when it has sent everything, as simple ones do.
#[tokio::test]
async fn a_client_that_sends_everything_first_still_learns_that_it_was_refused() {
    let store = Embedded::start().await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Get, "w/file", 60);
    let more = "Content-Length: 30000000\r\nConnection: close\r\n";
    let mut request = head_of("PUT", &url, &addr.to_string(), more).into_bytes();
    request.resize(request.len() + 30_000_000, 7);
    let answer = raw(addr, request).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

/// Who waits for a go-ahead gets it, or the refusal in its place.
#[tokio::test]
async fn a_go_ahead_is_given_only_to_what_is_taken() {
    let store = Embedded::start().await;
    let addr = store.serving.addr();
    let more = "Content-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n";
    let get = store.objects.presign(Method::Get, "w/file", 60);
    let answer = raw(addr, head_of("PUT", &get, &addr.to_string(), more).into()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let put = store.objects.presign(Method::Put, "w/file", 60);
    let request = head_of("PUT", &put, &addr.to_string(), more) + "abc";
    let answer = raw(addr, request.into()).await;
    assert!(answer.starts_with("HTTP/1.1 100"), "{answer}");
    assert!(answer.contains("HTTP/1.1 200"), "{answer}");
    assert_eq!(read(&*store.objects, "w/file").await.as_deref(), Some(b"abc".as_slice()));
}

#[tokio::test]
async fn a_checksum_that_is_wrong_is_refused() {
    let store = Embedded::start().await;
    let put = async |name: &'static str, value: &str| {
        let request = Request {
            method: "PUT",
            url: store.objects.presign(Method::Put, "w/file", 60),
            headers: vec![(name, value.to_owned())],
            body: Bytes::from_static(b"content"),
        };
        Client::new().send(request).await.expect("answered").status
    };
    for (name, wrong, right) in [
        ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==", "mgNkuembtIDdJeHwKEyFVQ=="),
        ("x-amz-checksum-crc32", "AAAAAA==", "/sUwqQ=="),
    ] {
        assert_eq!(put(name, wrong).await, 400, "{name}");
        assert_eq!(read(&*store.objects, "w/file").await, None, "{name}");
        assert_eq!(put(name, right).await, 200, "{name}");
        store.objects.delete("w/file".to_owned()).await.expect("removed");
    }
}

#[tokio::test]
async fn peers_that_are_too_slow_are_let_go() {
    let short = Duration::from_millis(200);
    let options =
        EndpointOptions { head_timeout: short, byte_timeout: short, ..support::options() };
    let store = Embedded::start_with(options).await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Put, "w/file", 60);
    let whole = head_of("PUT", &url, &addr.to_string(), "Content-Length: 10\r\n");
    // Each of them reads to the end, which comes only because the endpoint closes.
    for request in ["", "GET / HT", whole.as_str(), &format!("{whole}12345")] {
        let answer = raw(addr, request.into()).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    assert_eq!(read(&*store.objects, "w/file").await, None);
    // One that asks for much and takes nothing of it.
    write(&*store.objects, "w/large", &vec![7; 64 * 1024 * 1024]).await;
    let url = store.objects.presign(Method::Get, "w/large", 60);
    let mut lazy = TcpStream::connect(addr).expect("connected");
    lazy.write_all(head_of("GET", &url, &addr.to_string(), "").as_bytes()).expect("sent");
    tokio::time::timeout(Duration::from_secs(4), store.serving.stop()).await.expect("let go");
    drop(lazy);
}

#[tokio::test]
async fn who_comes_when_all_places_are_taken_waits() {
    let options = EndpointOptions { connections_max: 1, ..support::options() };
    let store = Embedded::start_with(options).await;
    let addr = store.serving.addr();
    write(&*store.objects, "w/file", b"content").await;
    let url = store.objects.presign(Method::Get, "w/file", 60);
    let mut first = TcpStream::connect(addr).expect("connected");
    let head = head_of("GET", &url, &addr.to_string(), "");
    let one = head.clone();
    let first = tokio::task::spawn_blocking(move || {
        first.write_all(one.as_bytes()).expect("sent");
        let mut answer = [0; 12];
        first.read_exact(&mut answer).expect("answered");
        assert_eq!(&answer, b"HTTP/1.1 200");
        first
    });
    let first = first.await.expect("served");
    let mut second = TcpStream::connect(addr).expect("in the queue");
    second.write_all(head.as_bytes()).expect("sent");
    second.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
    let mut answer = [0; 12];
    assert!(second.read_exact(&mut answer).is_err(), "there is but one place");
    drop(first);
    second.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    let second =
        tokio::task::spawn_blocking(move || second.read_exact(&mut answer).map(|()| answer));
    assert_eq!(&second.await.expect("done").expect("answered"), b"HTTP/1.1 200");
}

#[tokio::test]
async fn a_stop_lets_what_is_under_way_end() {
    let store = Embedded::start().await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Put, "w/file", 60);
    let head = head_of("PUT", &url, &addr.to_string(), "Content-Length: 1000000\r\n");
    let mut stream = TcpStream::connect(addr).expect("connected");
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&[7; 600_000]).expect("sent");
    let tmp = store.folder.path().join("tmp");
    let count = || std::fs::read_dir(&tmp).expect("there").count();
    wait_until(|| count() == 1, "nothing was begun").await;
    let stopping = tokio::spawn(store.serving.stop());
    let refused = || TcpStream::connect(addr).is_err();
    wait_until(refused, "it still takes connections").await;
    let answer = tokio::task::spawn_blocking(move || {
        stream.write_all(&[7; 400_000]).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    });
    let answer = answer.await.expect("done");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    stopping.await.expect("stopped");
    let head = store.objects.head("w/file".to_owned()).await.expect("answered").expect("there");
    assert_eq!(head.bytes, 1_000_000);
}

/// Waits for a condition.
pub(crate) async fn wait_until(done: impl Fn() -> bool, or: &str) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{or}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
