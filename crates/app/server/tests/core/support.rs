//! A home in a folder of its own, cores on it, and a small client.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wharf_server::{Core, CoreOptions, Home};
use wharf_vocab::Fault;

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn home(&self) -> Home {
        Home::resolve(Some(self.path())).expect("a home")
    }

    pub(crate) fn options(&self) -> CoreOptions {
        CoreOptions {
            listen: Some("127.0.0.1:0".parse().expect("an address")),
            grace: Duration::ZERO,
            ..CoreOptions::new(self.home())
        }
    }

    pub(crate) async fn try_start(&self) -> Result<Core, Fault> {
        Core::start(self.options()).await
    }

    pub(crate) async fn start(&self) -> Core {
        self.try_start().await.expect("starts")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path()).expect("made");
        std::fs::write(self.path().join(name), text).expect("written");
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).expect("there").permissions().mode() & 0o777
}

/// Asks a core and gives status and body; event streams are read to their end.
pub(crate) async fn ask(core: &Core, method: &str, path: &str, body: &Value) -> (u16, String) {
    let addr = core.http_addr();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        core.owner_token(),
        body.len()
    );
    let mut stream = TcpStream::connect(addr).await.expect("connects");
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("sends");
    let mut text = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await;
    read.expect("in time").expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
    (status, body.to_owned())
}

pub(crate) async fn get(core: &Core, path: &str) -> Value {
    let (status, body) = ask(core, "GET", path, &Value::Null).await;
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).expect("JSON")
}

/// Runs a tool to its end.
pub(crate) async fn run(core: &Core, tool: &str, inputs: Value) -> Value {
    let body = json!({"tool": tool, "inputs": inputs});
    let (status, body) = ask(core, "POST", "/v1/runs?wait=20s", &body).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

/// Starts a tool and gives the run's id.
pub(crate) async fn begin(core: &Core, tool: &str, inputs: Value) -> String {
    let body = json!({"tool": tool, "inputs": inputs});
    let (status, body) = ask(core, "POST", "/v1/runs", &body).await;
    assert_eq!(status, 202, "{body}");
    let accepted: Value = serde_json::from_str(&body).expect("JSON");
    accepted["run_id"].as_str().expect("an id").to_owned()
}

/// Waits until a run stands in this status.
pub(crate) async fn until(core: &Core, run: &str, status: &str) -> Value {
    eventually(async || {
        let shown = get(core, &format!("/v1/runs/{run}")).await;
        (shown["status"] == status).then_some(shown)
    })
    .await
}

/// Looks again and again until there is something to see.
pub(crate) async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(tokio::time::Instant::now() < until, "nothing happened in {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
