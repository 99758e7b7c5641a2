//! Addresses that end with their attempt.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use wharf_artifacts::{Endpoint, EndpointOptions, FileObjects};
use wharf_contract::objects::{PlainClient as _, Request};
use wharf_ports::{AddressGate, Method, ObjectStore as _, ObjectVersion};

use crate::endpoint::{head_of, raw, send, wait_until};
use crate::support::{self, Embedded, read, write};

/// A gate that is open for the keys in it, for writing and for readers who are called `reader`.
#[derive(Debug, Default)]
struct Keys(Mutex<BTreeSet<String>>, Mutex<Vec<ObjectVersion>>, Mutex<Vec<String>>);

impl Keys {
    fn open(&self, key: &str) {
        self.0.lock().expect("sound").insert(key.to_owned());
    }

    fn close(&self, key: &str) {
        self.0.lock().expect("sound").remove(key);
    }
}

impl AddressGate for Keys {
    fn may_write(&self, key: &str) -> bool {
        self.0.lock().expect("sound").contains(key)
    }

    fn may_read(&self, key: &str, version: &str, holder: &str) -> Option<ObjectVersion> {
        let bound = self.1.lock().expect("sound");
        let bound = bound.iter().find(|it| it.key == key && it.version.as_deref() == Some(version));
        bound.filter(|_| holder == "a/reader" && self.may_write(key)).cloned()
    }

    fn damaged(&self, key: &str) {
        self.2.lock().expect("sound").push(key.to_owned());
    }
}

/// Binds the readers to an object as it is now.
async fn bind(store: &Embedded, keys: &Keys, key: &str) -> ObjectVersion {
    let info = store.objects.head(key.to_owned()).await.expect("answered").expect("there");
    let bound = ObjectVersion::of(key.to_owned(), info);
    keys.1.lock().expect("sound").push(bound.clone());
    bound
}

async fn gated(folder: tempfile::TempDir, options: EndpointOptions) -> (Embedded, Arc<Keys>) {
    let files = FileObjects::open(folder.path()).expect("opens");
    let endpoint = Endpoint::bind(files, options).await.expect("bound");
    let keys = Arc::new(Keys::default());
    endpoint.set_gate(Arc::clone(&keys) as Arc<dyn AddressGate>);
    let objects = endpoint.objects();
    (Embedded { objects, serving: endpoint.serve(), folder }, keys)
}

async fn start() -> (Embedded, Arc<Keys>) {
    gated(tempfile::tempdir().expect("a folder"), support::options()).await
}

#[tokio::test]
async fn t032_an_address_for_writing_ends_with_its_attempt() {
    let (store, keys) = start().await;
    let put = store.objects.presign(Method::Put, "w/file", 600);
    let get = store.objects.presign(Method::Get, "w/file", 600);
    assert_eq!(send("PUT", &put, b"early").await.status, 403);
    assert_eq!(read(&*store.objects, "w/file").await, None);
    keys.open("w/file");
    assert_eq!(send("PUT", &put, b"one").await.status, 200);
    assert_eq!(send("PUT", &put, b"two").await.status, 200, "again while it is under way");
    let other = store.objects.presign(Method::Put, "w/other", 600);
    assert_eq!(send("PUT", &other, b"x").await.status, 403, "each key for itself");
    keys.close("w/file");
    let late = send("PUT", &put, b"late").await;
    assert_eq!(late.status, 403);
    let body = String::from_utf8_lossy(&late.body).into_owned();
    assert!(body.contains("<Code>AccessDenied</Code>"), "{body}");
    assert_eq!(send("GET", &get, b"").await.status, 403, "nobody holds it");
}

#[tokio::test]
async fn t032_an_address_for_reading_ends_with_its_attempt_and_shows_one_version() {
    let (store, keys) = start().await;
    write(&*store.objects, "w/file", b"approved").await;
    keys.open("w/file");
    let bound = bind(&store, &keys, "w/file").await;
    let get = store.objects.presign_version(&bound, "a/reader", 600);
    assert_eq!(send("GET", &get, b"").await.body, "approved");
    write(&*store.objects, "w/file", b"something else").await;
    assert_eq!(send("GET", &get, b"").await.body, "approved", "what was bound");
    let other = get.replace("reader", "writer");
    assert_eq!(send("GET", &other, b"").await.status, 403, "the holder is signed");
    let other = store.objects.presign_version(&bound, "a/nother", 600);
    assert_eq!(send("GET", &other, b"").await.status, 403, "each holder for itself");
    keys.close("w/file");
    let late = send("GET", &get, b"").await;
    assert_eq!(late.status, 403);
    let body = String::from_utf8_lossy(&late.body).into_owned();
    assert!(body.contains("<Code>AccessDenied</Code>"), "{body}");
}

/// The only file of an object's folder that holds bytes.
fn version_file(store: &Embedded, bound: &ObjectVersion) -> std::path::PathBuf {
    let version = bound.version.clone().expect("a name");
    let mut folders = vec![store.folder.path().join("worlds")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("there") {
            let entry = entry.expect("read");
            if entry.file_name().to_str() == Some(&version) {
                return entry.path();
            }
            if entry.file_type().expect("known").is_dir() {
                folders.push(entry.path());
            }
        }
    }
    panic!("no such version");
}

#[tokio::test]
async fn a_changed_byte_never_arrives_whole_by_an_address() {
    let (store, keys) = start().await;
    for (key, bytes) in [("w/small", 1_000), ("w/large", 3_000_000)] {
        write(&*store.objects, key, &vec![7; bytes]).await;
        keys.open(key);
        let bound = bind(&store, &keys, key).await;
        let get = store.objects.presign_version(&bound, "a/reader", 600);
        assert_eq!(send("GET", &get, b"").await.body.len(), bytes);
        let path = version_file(&store, &bound);
        let mut content = std::fs::read(&path).expect("read");
        content[bytes / 2] ^= 1;
        std::fs::write(&path, content).expect("written");
        let client = support::Client::new();
        let request = Request { method: "GET", url: get, ..Request::default() };
        let answer = client.send(request).await;
        assert!(answer.as_ref().map_or(true, |answer| answer.status == 500), "{key}: {answer:?}");
        assert_eq!(keys.2.lock().expect("sound").pop().as_deref(), Some(key));
    }
}

#[tokio::test]
async fn t032_an_address_is_good_after_a_restart_if_its_attempt_goes_on() {
    let (store, keys) = start().await;
    keys.open("w/file");
    let put = store.objects.presign(Method::Put, "w/file", 600);
    let Embedded { objects, serving, folder } = store;
    let options = EndpointOptions { listen: serving.addr(), ..support::options() };
    serving.stop().await;
    drop(objects);
    let (store, keys) = gated(folder, options).await;
    assert_eq!(send("PUT", &put, b"given up").await.status, 403);
    keys.open("w/file");
    assert_eq!(send("PUT", &put, b"taken up").await.status, 200);
    assert_eq!(read(&*store.objects, "w/file").await.as_deref(), Some(b"taken up".as_slice()));
}

#[tokio::test]
async fn t032_an_upload_that_outlasts_its_attempt_leaves_nothing() {
    let (store, keys) = start().await;
    keys.open("w/file");
    write(&*store.objects, "w/file", b"before").await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Put, "w/file", 600);
    let more = "Content-Length: 1000000\r\nConnection: close\r\n";
    let mut stream = TcpStream::connect(addr).expect("connected");
    stream.write_all(head_of("PUT", &url, &addr.to_string(), more).as_bytes()).expect("sent");
    stream.write_all(&[7; 900_000]).expect("sent");
    let tmp = store.folder.path().join("tmp");
    let count = || std::fs::read_dir(&tmp).expect("there").count();
    wait_until(|| count() == 1, "nothing was begun").await;
    keys.close("w/file");
    let answer = tokio::task::spawn_blocking(move || {
        stream.write_all(&[7; 100_000]).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    });
    let answer = answer.await.expect("done");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    wait_until(|| count() == 0, "it was left behind").await;
    assert_eq!(read(&*store.objects, "w/file").await.as_deref(), Some(b"before".as_slice()));
}

/// Nobody is asked to send what will not be taken.
#[tokio::test]
async fn t032_no_byte_is_asked_for_when_the_attempt_is_over() {
    let (store, _keys) = start().await;
    let addr = store.serving.addr();
    let url = store.objects.presign(Method::Put, "w/file", 60);
    let more = "Content-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n";
    let answer = raw(addr, head_of("PUT", &url, &addr.to_string(), more).into()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}
