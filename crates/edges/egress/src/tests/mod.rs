//! The proxy on real sockets: agents on one side, servers of this machine on the other.

mod clients;
mod closing;
mod fuzz;
mod limits;
mod passes;
mod refuses;
mod servers;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wharf_domain::AuditRecord;
use wharf_domain::permission::HostPattern;
use wharf_engine::Handle;
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::SystemClock;
use wharf_ports::launcher::{Egress, EgressDoor};
use wharf_vocab::{NodeId, ProviderId};

use crate::gate::Resolve;
use crate::{EgressLimits, EgressProxy};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A door with an agent before it.
struct Stage {
    handle: Handle,
    dir: TempDir,
    proxy: EgressProxy,
    door: Option<Arc<dyn EgressDoor>>,
}

impl Stage {
    async fn open(allowed: &[&str]) -> Self {
        Self::with(allowed, Names::default(), EgressLimits::default()).await
    }

    async fn with(allowed: &[&str], names: Names, limits: EgressLimits) -> Self {
        Self::beside(None, allowed, names, limits).await
    }

    /// The same beside an artifact store at this origin.
    async fn beside(
        storage: Option<&str>,
        allowed: &[&str],
        names: Names,
        limits: EgressLimits,
    ) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let options = wharf_engine::EngineOptions::new(node, store, clock, 1);
        let handle = Handle::start(options).await.expect("starts");
        let storage = storage.map(|origin| crate::target_of(origin).expect("an origin"));
        let proxy = EgressProxy::of(handle.clone(), Box::new(names), limits, storage);
        let dir = tempfile::tempdir().expect("a folder");
        let mut stage = Self { handle, dir, proxy, door: None };
        stage.door = Some(stage.another(allowed).await);
        stage
    }

    async fn another(&self, allowed: &[&str]) -> Arc<dyn EgressDoor> {
        let parse = |text: &&str| HostPattern::parse(text).expect("a pattern");
        let agent = ProviderId::new("sneaky").expect("an id");
        let allowed = allowed.iter().map(parse).collect();
        self.proxy.open(agent, self.socket(), allowed).await.expect("opens")
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("egress.sock")
    }

    fn door(&self) -> &dyn EgressDoor {
        self.door.as_deref().expect("open")
    }

    async fn dial(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.expect("connects")
    }

    /// Sends bytes and reads everything that comes back.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.dial().await;
        stream.write_all(bytes.as_ref()).await.expect("written");
        read_all(&mut stream).await
    }

    /// Asks for a tunnel, and gives the connection once it stands.
    async fn tunnel(&self, target: impl std::fmt::Display) -> UnixStream {
        let mut stream = self.dial().await;
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("written");
        let wanted = "HTTP/1.1 200 Connection established\r\n\r\n";
        let mut answer = vec![0; wanted.len()];
        within(stream.read_exact(&mut answer)).await.expect("answered");
        assert_eq!(String::from_utf8(answer).expect("text"), wanted);
        stream
    }

    /// The refusals that were written down, once there are so many.
    async fn denied(&self, wanted: usize) -> Vec<AuditRecord> {
        let written = async {
            loop {
                let audit = self.handle.audit().list(0, 100).await.expect("read");
                let denied = audit.into_iter().map(|sealed| sealed.record);
                let denied: Vec<_> = denied.filter(|r| r.event == "security.denied").collect();
                if denied.len() >= wanted {
                    return denied;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(written).await
    }
}

/// A resolver that knows what a test tells it, and counts.
#[derive(Debug, Default, Clone)]
struct Names(Arc<Mutex<Asked>>);

#[derive(Debug, Default)]
struct Asked {
    /// Each answer is given once; the last one stays.
    answers: Vec<Vec<IpAddr>>,
    names: Vec<String>,
}

impl Names {
    fn answering(answers: &[&[&str]]) -> Self {
        let list = |list: &&[&str]| list.iter().map(|text| text.parse().expect("one")).collect();
        let answers = answers.iter().map(list).collect();
        Self(Arc::new(Mutex::new(Asked { answers, names: Vec::new() })))
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().expect("unpoisoned").names.clone()
    }
}

impl Resolve for Names {
    fn resolve(&self, name: String) -> BoxFuture<'_, io::Result<Vec<IpAddr>>> {
        let mut asked = self.0.lock().expect("unpoisoned");
        asked.names.push(name);
        let found = match asked.answers.len() {
            0 => Err(io::Error::from(io::ErrorKind::NotFound)),
            1 => Ok(asked.answers[0].clone()),
            _ => Ok(asked.answers.remove(0)),
        };
        async move { found }.boxed()
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

/// Everything up to the end; a connection that was reset has ended too.
async fn read_all(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await;
    String::from_utf8(bytes).expect("text")
}

/// The status of an answer, and its error if the proxy gave it.
fn taken_apart(answer: &str) -> (u16, Value) {
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    (status.unwrap_or(0), body["error"].clone())
}

fn get(url: &str, host: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}
