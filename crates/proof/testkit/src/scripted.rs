//! A core for tests of clients that answers by script over real sockets.
//!
//! It speaks just enough HTTP to be talked to, so that what the client does on a broken or
//! reordered connection can be seen from outside.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the script answers with.
#[derive(Debug)]
pub enum Reply {
    /// A status and a whole body.
    Json(u16, serde_json::Value),
    /// The beginning of an event stream; the connection breaks after it.
    Events(String),
    /// A status, headers with their line ends, and a body, of which only this many bytes arrive.
    Bytes(u16, String, Vec<u8>, usize),
    /// Nothing: the connection breaks.
    Break,
}

/// One request as the script sees it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path with its query.
    pub line: String,
    /// The headers, in lower case.
    pub headers: Vec<String>,
    /// The body.
    pub bytes: Vec<u8>,
    /// The body, if it is JSON.
    pub body: Option<serde_json::Value>,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.headers.iter().filter_map(|header| header.split_once(':'));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value.trim())
    }
}

/// A home in which scripted cores come and go.
#[derive(Debug)]
pub struct Scripted {
    home: TempDir,
    seen: Arc<Mutex<Vec<Request>>>,
    serving: Option<JoinHandle<()>>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Scripted {
    /// A home without a core.
    pub fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join("run")).expect("made");
        std::fs::write(home.path().join("run/owner.token"), "owners").expect("written");
        Self { home, seen: Arc::default(), serving: None }
    }

    /// Starts a core; an earlier one is gone by then.
    pub async fn start(
        &mut self,
        script: impl FnMut(&Request) -> Reply + Send + 'static,
    ) -> &mut Self {
        self.stop().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let http = format!("http://{}", listener.local_addr().expect("an address"));
        let core = serde_json::json!({"http": http, "pid": 1, "version": "0"});
        let path = self.home.path().join("run/core.json");
        std::fs::write(path, core.to_string()).expect("written");
        let seen = Arc::clone(&self.seen);
        self.serving = Some(tokio::spawn(serve(listener, script, seen)));
        self
    }

    /// Stops the core as a crash would: its address stays written down.
    pub async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            // Its socket is closed once the task is really gone.
            let _ = serving.await;
        }
    }

    /// The home that says how to reach the core.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().clone()
    }
}

async fn serve(
    listener: TcpListener,
    mut script: impl FnMut(&Request) -> Reply,
    seen: Arc<Mutex<Vec<Request>>>,
) {
    loop {
        let (stream, _) = listener.accept().await.expect("accepted");
        let mut stream = BufReader::new(stream);
        let Some(request) = read(&mut stream).await else { continue };
        let reply = script(&request);
        seen.lock().push(request);
        write(stream.into_inner(), reply).await;
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut line, mut length) = (String::new(), 0);
    let mut headers = Vec::new();
    stream.read_line(&mut line).await.ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    loop {
        let mut header = String::new();
        if stream.read_line(&mut header).await.ok()? == 0 {
            return None;
        }
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        headers.push(header);
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.ok()?;
    let body = serde_json::from_slice(&bytes).ok();
    Some(Request { line, headers, bytes, body })
}

async fn write(mut stream: TcpStream, reply: Reply) {
    let mut cut = Vec::new();
    let text = match reply {
        Reply::Bytes(status, headers, mut body, arrive) => {
            let length = body.len();
            body.truncate(arrive);
            cut = body;
            format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
            )
        }
        Reply::Json(status, body) => {
            let body = body.to_string();
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        }
        // Without a length or chunks the body ends where the connection does.
        Reply::Events(body) => {
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}")
        }
        Reply::Break => String::new(),
    };
    // The client may have gone; the test sees that in what the client says.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.write_all(&cut).await;
    let _ = stream.shutdown().await;
}
