//! Whatever happens, and however much is logged, no address that is a capability is written down.
//!
//! It is a program of its own, because it listens to everything that is logged in it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;
use wharf_artifacts::{Credentials, Endpoint, EndpointOptions, FileObjects, S3Objects, S3Options};
use wharf_ports::{Method, ObjectStore, PutObject};

/// Everything that was logged.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

async fn write(store: &dyn ObjectStore, key: &str) -> Result<(), String> {
    let media_type = "text/plain".to_owned();
    let put = PutObject { key: key.to_owned(), media_type, bytes: None, b3: None };
    let body = stream::iter([Ok(Bytes::from_static(b"content"))]).boxed();
    store.put(put, body).await.map(drop).map_err(|error| format!("{error:?} {error}"))
}

#[tokio::test]
async fn t035_no_address_is_logged_or_told_by_an_error() {
    let log = Log::default();
    let all = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    all.with_writer(log.clone()).with_ansi(false).init();
    tracing::trace!("the log is heard");
    let _ = rustls::crypto::ring::default_provider().install_default();

    let folder = tempfile::tempdir().expect("a folder");
    let keys = Credentials::generate().expect("made");
    let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), keys.clone());
    let files = FileObjects::open(folder.path()).expect("opens");
    let endpoint = Endpoint::bind(files, options).await.expect("bound");
    let objects = endpoint.objects();
    let serving = endpoint.serve();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");

    let put = objects.presign(Method::Put, "w/a-path", 60);
    let get = objects.presign(Method::Get, "w/a-path", 60);
    let none = objects.presign(Method::Get, "w/none", 60);
    let status = client.put(&put).body("content").send().await.expect("answered").status();
    assert_eq!(status.as_u16(), 200);
    for (url, wanted) in [(&get, 200), (&put, 403), (&none, 404), (&format!("{get}0"), 400)] {
        let answer = client.get(url).send().await.expect("answered");
        assert_eq!(answer.status().as_u16(), wanted);
        answer.bytes().await.expect("a body");
    }

    let mut told = format!("{serving:?} {keys:?}");
    for (origin, secret, fine) in [
        (objects.origin(), keys.secret.as_str(), true),
        (objects.origin(), "another secret", false),
        ("http://127.0.0.1:1".to_owned(), keys.secret.as_str(), false),
    ] {
        let mut options = S3Options::new(origin, "wharf", &keys.key_id, secret);
        (options.tries, options.pause) = (2, Duration::from_millis(1));
        let store = S3Objects::open(&options).expect("opens");
        let written = write(&*store, "w/other").await;
        assert_eq!(written.is_ok(), fine);
        told += &format!("{options:?} {written:?}");
        told += &format!("{:?}", store.get("w/other".to_owned(), None).await);
        told += &format!("{:?}", store.head("w/none".to_owned()).await);
    }
    serving.stop().await;

    let log = log.0.lock();
    told += &String::from_utf8_lossy(&log);
    assert!(told.contains("the log is heard") && told.contains("artifact store"), "{told}");
    let signature = |url: &str| url.split_once("X-Amz-Signature=").expect("signed").1.to_owned();
    for secret in [&signature(&put), &signature(&get), &signature(&none), &keys.secret] {
        assert!(!told.contains(secret.as_str()), "a capability was told");
    }
    for part in ["X-Amz-Signature", "X-Amz-Credential", "x-amz-signature"] {
        assert!(!told.contains(part), "a part of an address was told");
    }
}
