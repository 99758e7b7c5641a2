//! Stores to try, and a client that knows HTTP and nothing of S3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use tempfile::TempDir;
use wharf_artifacts::{
    Credentials, EmbeddedObjects, Endpoint, EndpointOptions, FileObjects, RunningEndpoint,
};
use wharf_contract::objects::{Answer, PlainClient, Request, Subject};
use wharf_ports::{ByteStream, ObjectInfo, ObjectStore, PutObject};

/// An embedded store with its endpoint.
pub(crate) struct Embedded {
    pub(crate) objects: Arc<EmbeddedObjects>,
    pub(crate) serving: RunningEndpoint,
    pub(crate) folder: TempDir,
}

/// The credentials of all embedded stores.
pub(crate) fn credentials() -> Credentials {
    Credentials { key_id: "WHARFTEST".to_owned(), secret: "a secret of tests".to_owned() }
}

/// Usual options on a port of its own.
pub(crate) fn options() -> EndpointOptions {
    EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), credentials())
}

impl Embedded {
    /// A new store.
    pub(crate) async fn start() -> Self {
        Self::start_with(options()).await
    }

    /// A new store with an endpoint that behaves so.
    pub(crate) async fn start_with(options: EndpointOptions) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let files = FileObjects::open(folder.path()).expect("opens");
        let endpoint = Endpoint::bind(files, options).await.expect("bound");
        let objects = endpoint.objects();
        Self { objects, serving: endpoint.serve(), folder }
    }

    /// The store as a subject of the contract.
    pub(crate) fn subject(self) -> Subject {
        Subject {
            store: self.objects,
            world: world(),
            client: Some(Arc::new(Client::new())),
            keeps_all_versions: false,
            keep: Box::new((self.serving, self.folder)),
        }
    }
}

/// A world that no other test has.
pub(crate) fn world() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("w{}-{}x", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A client of plain HTTP.
pub(crate) struct Client(reqwest::Client);

impl Client {
    /// A client that trusts nobody in particular.
    pub(crate) fn new() -> Self {
        // Only the first of all tests installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self(client)
    }
}

impl PlainClient for Client {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Answer, String>> {
        let method = request.method.parse().expect("a method");
        let mut sent = self.0.request(method, &request.url);
        for (name, value) in request.headers {
            sent = sent.header(name, value);
        }
        let sent = sent.body(request.body).send();
        async move {
            let answer = sent.await.map_err(|error| format!("{error:?}"))?;
            let text = |value: &reqwest::header::HeaderValue| {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            let headers = answer.headers().iter();
            let headers = headers.map(|(name, value)| (name.as_str().to_owned(), text(value)));
            Ok(Answer {
                status: answer.status().as_u16(),
                headers: headers.collect(),
                body: answer.bytes().await.map_err(|error| format!("{error:?}"))?,
            })
        }
        .boxed()
    }
}

/// Writes an object.
pub(crate) async fn write(store: &dyn ObjectStore, key: &str, bytes: &[u8]) -> ObjectInfo {
    let media_type = "text/plain".to_owned();
    let put = PutObject { key: key.to_owned(), media_type, bytes: None, b3: None };
    store.put(put, body(bytes)).await.expect("written")
}

/// Reads a whole object.
pub(crate) async fn read(store: &dyn ObjectStore, key: &str) -> Option<Vec<u8>> {
    let found = store.get(key.to_owned(), None).await.expect("answered")?;
    Some(found.stream.try_collect::<Vec<_>>().await.expect("read").concat())
}

/// A body in pieces.
pub(crate) fn body(bytes: &[u8]) -> ByteStream {
    let pieces: Vec<_> = bytes.chunks(65_536).map(Bytes::copy_from_slice).map(Ok).collect();
    stream::iter(pieces).boxed()
}
