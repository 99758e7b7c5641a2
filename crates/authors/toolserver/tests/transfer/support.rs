//! Storage that does as it is told, and runs to try it with.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use wharf_toolserver::transfer::{FileTransfer, Policy, RunFiles};
use wharf_toolserver::{Report, Reporter};
use wharf_vocab::Object;
use wharf_wire::run_v1::{Mode, RequestControl, RunRequest};

/// A request as storage saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// A header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What storage does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// What it says the length is, when that is not so.
    claims: Option<usize>,
    /// Whether it falls silent at the end instead of closing.
    is_silent: bool,
}

impl Reply {
    /// An answer.
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status, headers: Vec::new(), body, claims: None, is_silent: false }
    }

    /// With a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Breaks off before this many bytes.
    pub(crate) fn claiming(mut self, bytes: usize) -> Self {
        self.claims = Some(bytes);
        self
    }

    /// Falls silent behind its last byte.
    pub(crate) fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }
}

/// Storage on loopback.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: AbortOnDropHandle<()>,
}

impl Storage {
    /// Storage that answers the n-th request so.
    pub(crate) async fn start(
        answer: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(answer);
        let all = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                tokio::spawn(async move { serve(stream, &all, &*answer).await });
            }
        });
        Self { address, seen, _task: AbortOnDropHandle::new(task) }
    }

    /// Storage that always answers so.
    pub(crate) async fn always(reply: Reply) -> Self {
        Self::start(move |_, _| reply.clone()).await
    }

    /// Its origin.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// An address on it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// What it saw so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("the requests").clone()
    }
}

/// Reads one request and answers it. The connection ends behind it.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    all: &Mutex<Vec<Seen>>,
    answer: &(dyn Fn(usize, &Seen) -> Reply + Send + Sync),
) {
    let mut stream = BufReader::new(stream);
    let Some(seen) = request(&mut stream).await else { return };
    let number = {
        let mut all = all.lock().expect("the requests");
        all.push(seen.clone());
        all.len() - 1
    };
    let reply = answer(number, &seen);
    let mut head = format!("HTTP/1.1 {} Said\r\nConnection: close\r\n", reply.status);
    head += &format!("Content-Length: {}\r\n", reply.claims.unwrap_or(reply.body.len()));
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    // A client that has gone is no fault of storage's.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&reply.body).await;
    let _ = stream.flush().await;
    if reply.is_silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    let _ = stream.shutdown().await;
}

async fn request(stream: &mut BufReader<impl AsyncRead + Unpin>) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("a head");
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let bytes = headers.get("content-length").map_or(0, |it| it.parse().expect("a length"));
    let mut body = vec![0; bytes];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { method, target, headers, body })
}

/// Something to run against: a policy with folders of its own.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) policy: Policy,
    pub(crate) folder: TempDir,
}

impl Bench {
    /// A policy that allows these origins and loses patience soon.
    pub(crate) fn new(origins: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let policy = Policy {
            origins: origins.to_vec(),
            artifacts: Some(folder.path().join("artifacts")),
            scratch: folder.path().join("scratch"),
            byte_timeout: Duration::from_secs(20),
            tries: 4,
            pause: Duration::from_millis(1),
            ..Policy::default()
        };
        Self { policy, folder }
    }

    /// A policy that allows this storage.
    pub(crate) fn of(storage: &Storage) -> Self {
        Self::new(&[storage.origin()])
    }

    /// The files of the run `r1`.
    pub(crate) fn run(&self, inputs: Value, outputs: Value, refs: Option<&[&str]>) -> RunFiles {
        let transfer = FileTransfer::new(self.policy.clone()).expect("a policy");
        files(&transfer, inputs, outputs, refs).0
    }

    /// A run with one listed input called `x`.
    pub(crate) fn input(&self, place: &str) -> RunFiles {
        self.run(serde_json::json!({"x": place}), serde_json::json!({}), Some(&["x"]))
    }

    /// A run with one output called `x`.
    pub(crate) fn output(&self, place: &str) -> RunFiles {
        self.run(serde_json::json!({}), serde_json::json!({"x": place}), None)
    }

    /// Where a file of the run `r1` lies.
    pub(crate) fn artifact(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("artifacts").join(path)
    }

    /// Puts a file where artifacts are.
    pub(crate) fn keep(&self, path: &str, bytes: &[u8]) {
        let path = self.artifact(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
}

/// The files of the run `r1`, and what it reports.
pub(crate) fn files(
    transfer: &FileTransfer,
    inputs: Value,
    outputs: Value,
    refs: Option<&[&str]>,
) -> (RunFiles, mpsc::Receiver<Report>) {
    let (sender, reports) = mpsc::channel(1_000);
    let object = |value: Value| -> Object { serde_json::from_value(value).expect("an object") };
    let mut control = RequestControl::new("r1", Mode::Real);
    control.refs = refs.map(|refs| refs.iter().map(|&key| key.to_owned()).collect());
    let request = RunRequest { control, inputs: object(inputs), outputs: object(outputs) };
    let files = transfer.for_run(&request, Reporter::new(sender));
    (files, reports)
}

/// Connects to nobody in particular: a port that was free a moment ago.
pub(crate) async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

/// Whether somebody listens.
pub(crate) async fn listens(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_ok()
}
