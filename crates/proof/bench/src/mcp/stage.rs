//! What stands between client and server: the real program in a process of its own, and FastMCP as
//! a proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::client::Endpoint;
use super::era::Era;
use crate::http::Client;
use crate::process::{Running, program};

const LONG: Duration = Duration::from_secs(60);

/// A core with MCP servers behind it.
pub(super) struct Stage {
    running: Running,
    client: Client,
    address: SocketAddr,
    token: String,
}

impl Stage {
    pub(super) async fn start(dir: &Path) -> anyhow::Result<Self> {
        let running = Running::start(&program()?, &dir.join("home"))?;
        let (address, token) = (running.address()?, running.token()?);
        let client = Client::connect(address, &token).await?;
        Ok(Self { running, client, address, token })
    }

    /// Adds a server, lets it be called, and waits until its tools are known.
    pub(super) async fn add(&mut self, name: &str, url: &str, tools: usize) -> anyhow::Result<()> {
        let add = json!({ "name": name, "url": url, "approve": true }).to_string();
        let (status, body) = self.client.request("POST", "/v1/mcp", &add).await?;
        let text = String::from_utf8_lossy(&body);
        ensure!(status == 201, "{name} was not added: {status} {text}");
        let deadline = Instant::now() + LONG;
        loop {
            let (_, body) = self.client.request("GET", &format!("/v1/mcp/{name}"), "").await?;
            let server: Value = serde_json::from_slice(&body)?;
            if server["tools"].as_array().is_some_and(|known| known.len() == tools) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{name} does not come up: {server}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Where a server of it is reached.
    pub(super) fn endpoint(&self, provider: &str, era: Era) -> Endpoint {
        let path = format!("/mcp/{provider}");
        Endpoint { address: self.address, path, token: self.token.clone(), era }
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.running.stop()
    }
}

/// FastMCP as a proxy of one server, ended with the measurement.
pub(super) struct FastMcp {
    child: Child,
    address: SocketAddr,
}

impl FastMcp {
    /// Starts it where it is installed, which `scripts/setup.sh` does.
    pub(super) async fn start(url: &str) -> anyhow::Result<Option<Self>> {
        let python = PathBuf::from("target/mcp-peers/py/bin/python");
        if !python.exists() {
            return Ok(None);
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/fastmcp_proxy.py");
        let child = Command::new(python)
            .arg(script)
            .args([url, &port.to_string()])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("FastMCP does not start")?;
        let this = Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        let deadline = Instant::now() + LONG;
        while TcpStream::connect(this.address).await.is_err() {
            ensure!(Instant::now() < deadline, "FastMCP does not come up");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(Some(this))
    }

    pub(super) fn endpoint(&self, era: Era) -> Endpoint {
        Endpoint { address: self.address, path: "/mcp".to_owned(), token: "none".to_owned(), era }
    }
}

impl Drop for FastMcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
