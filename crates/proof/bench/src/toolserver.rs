//! Runs on a tool server, a process each: warm and cold, beside a bare fork in Python and beside a
//! plain FastAPI server that starts a process for each run. The server is in this process, so its
//! clients share the machine with it, as they do with the peer.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use wharf_toolserver::Handler as _;
use wharf_toolserver::server::{Listen, Options, Server};
use wharf_toolserver::transfer::Policy;
use wharf_toolserver::worker::{PythonHandler, WorkerSettings};

use crate::report::{Report, median_us, per_second};
use crate::{Scale, core};

const MANY: usize = 16;
const PEER_START: Duration = Duration::from_secs(30);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let forks = per_second(scale.singles, fork_floor(scale.singles)?);
    report.floor("bare fork and exit in Python", forks, "forks/s");
    let counts = [("warm", false, scale.singles), ("cold", true, scale.singles / 30)];
    for (name, cold, count) in counts {
        let served = serve(dir.path(), name, cold).await?;
        let of = Some((forks, "bare forks"));
        load(name, served.address, count, of, report).await?;
        if !cold {
            streaming(served.address, scale.many, report).await?;
        }
    }
    match Peer::start(dir.path()) {
        Ok(peer) => {
            peer.wait().await?;
            load("plain FastAPI", peer.address, scale.singles / 30, None, report).await?;
        }
        Err(_) => report.figure("plain FastAPI server: not measured", 0.0, "", None, ""),
    }
    Ok(())
}

/// Runs one after the other, then on many connections at once.
async fn load(
    name: &str,
    address: SocketAddr,
    count: usize,
    of: Option<(f64, &str)>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let inputs = json!({ "text": "Hello" });
    // The first run pays for imports and connections.
    one(address, &inputs).await?;
    for callers in [1, MANY] {
        let started = Instant::now();
        let mut tasks = Vec::new();
        let each = (count / callers).max(2);
        for _ in 0..callers {
            let inputs = inputs.clone();
            tasks.push(tokio::spawn(async move {
                let mut took = Vec::new();
                for _ in 0..each {
                    let started = Instant::now();
                    one(address, &inputs).await?;
                    took.push(started.elapsed());
                }
                anyhow::Ok(took)
            }));
        }
        let mut took = Vec::new();
        for task in tasks {
            took.extend(task.await??);
        }
        let rate = per_second(took.len(), started.elapsed());
        took.sort_unstable();
        let slow = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
        let what = format!("{name} runs, {callers} at once");
        let goal = match (name, callers) {
            ("warm", 1) => "≥ 200",
            ("warm", _) => "≥ 400",
            _ => "",
        };
        report.figure(&what, rate, "runs/s", of, goal);
        report.figure(&format!("  {what}, p50"), median_us(took) / 1e3, "ms", None, "");
        report.figure(&format!("  {what}, p99"), slow.as_secs_f64() * 1e3, "ms", None, "");
    }
    Ok(())
}

/// How quickly one run can talk.
async fn streaming(address: SocketAddr, frames: usize, report: &mut Report) -> anyhow::Result<()> {
    let started = Instant::now();
    let came = one(address, &json!({ "frames": frames })).await?;
    ensure!(came > frames, "only {came} of {frames} frames came");
    let rate = per_second(came, started.elapsed());
    report.figure("frames of one streaming run", rate, "frames/s", None, "");
    Ok(())
}

/// One run over a connection of its own; how many frames came.
async fn one(address: SocketAddr, inputs: &Value) -> anyhow::Result<usize> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut request = format!("ws://{address}/run").into_client_request()?;
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", "theory.run.v1".parse()?);
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await?;
    let run_id = uuid::Uuid::now_v7().to_string();
    let request = json!({
        "kind": "Request",
        "control": { "run_id": run_id, "mode": "mock" },
        "inputs": inputs,
        "outputs": {},
    });
    socket.send(Message::text(request.to_string())).await?;
    let mut frames = 0;
    let mut succeeded = false;
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(text) => {
                frames += 1;
                // Only final ones tell a cost, so that others need not be read.
                if text.contains("cost_micro") {
                    let frame: Value = serde_json::from_str(text.as_str())?;
                    let control = &frame["control"];
                    succeeded |= control["final"] == true && control["status"] == "success";
                }
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
    ensure!(succeeded, "a run did not succeed");
    Ok(frames)
}

/// A tool server in this process.
struct Served {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(dir: &Path, name: &str, cold: bool) -> anyhow::Result<Served> {
    let settings = WorkerSettings::default();
    let handler = PythonHandler::new(peers().join("handler.py"), "python3", cold, settings)?;
    let scratch = dir.join(name);
    std::fs::create_dir(&scratch)?;
    let options = Options {
        listen: Listen::Tcp("127.0.0.1:0".to_owned()),
        files: Policy { scratch, ..Policy::default() },
        ..Options::default()
    };
    let server = Server::bind(options).await?;
    let address = server.address().to_string().parse()?;
    handler.prepare().await?;
    let task = tokio::spawn(server.serve_prepared(Arc::new(handler), std::future::pending::<()>()));
    Ok(Served { address, task })
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

fn fork_floor(count: usize) -> anyhow::Result<Duration> {
    let script = peers().join("fork_floor.py");
    let output = Command::new("python3").arg(script).arg(count.to_string()).output()?;
    ensure!(output.status.success(), "the loop of forks failed");
    let seconds: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Duration::from_secs_f64(seconds))
}

/// The plain server, ended with the measurement.
struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    /// Fetches what it needs, the first time, and starts it.
    fn start(dir: &Path) -> anyhow::Result<Self> {
        let tools = PathBuf::from("target/tools/bench-peers");
        if !tools.join("bin/uvicorn").exists() {
            quiet(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
            let pip = ["-m", "pip", "install", "--quiet", "fastapi", "uvicorn[standard]"];
            quiet(Command::new(tools.join("bin/python")).args(pip))?;
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let uvicorn = std::path::absolute(tools.join("bin/uvicorn"))?;
        let child = Command::new(uvicorn)
            .args(["plain_server:app", "--log-level", "error", "--port", &port.to_string()])
            .arg("--app-dir")
            .arg(peers())
            .current_dir(dir)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) })
    }

    async fn wait(&self) -> anyhow::Result<()> {
        let until = Instant::now() + PEER_START;
        while TcpStream::connect(self.address).await.is_err() {
            ensure!(Instant::now() < until, "the plain server does not come up");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quiet(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(status.context("python3 is missing")?.success(), "a peer could not be set up");
    Ok(())
}
