//! Addresses for writing that end with their attempt.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use wharf_artifacts::{Endpoint, EndpointOptions, FileObjects};
use wharf_ports::{Method, ObjectStore as _, WriteGate};

use crate::endpoint::{head_of, raw, send, wait_until};
use crate::support::{self, Embedded, read, write};

/// A gate that is open for the keys in it.
#[derive(Debug, Default)]
struct Keys(Mutex<BTreeSet<String>>);

impl Keys {
    fn open(&self, key: &str) {
        self.0.lock().expect("sound").insert(key.to_owned());
    }

    fn close(&self, key: &str) {
        self.0.lock().expect("sound").remove(key);
    }
}

impl WriteGate for Keys {
    fn may_write(&self, key: &str) -> bool {
        self.0.lock().expect("sound").contains(key)
    }
}

async fn gated(folder: tempfile::TempDir, options: EndpointOptions) -> (Embedded, Arc<Keys>) {
    let files = FileObjects::open(folder.path()).expect("opens");
    let endpoint = Endpoint::bind(files, options).await.expect("bound");
    let keys = Arc::new(Keys::default());
    endpoint.set_gate(Arc::clone(&keys) as Arc<dyn WriteGate>);
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
    assert_eq!(send("GET", &get, b"").await.body, "two", "reading is not its concern");
    write(&*store.objects, "w/file", b"of the core").await;
    assert_eq!(send("GET", &get, b"").await.body, "of the core", "nor is what the core writes");
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
