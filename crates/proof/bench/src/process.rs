//! The real program as a process: start, memory, and kill -9 with many runs open.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::http::Client;
use crate::report::{Report, median_us};
use crate::{Scale, core};

const STARTS: usize = 10;

pub(crate) fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let wharf = program()?;
    let dir = core::scratch()?;
    let home = dir.path().join("home");
    Running::start(&wharf, &home)?.stop()?;

    let mut spawns = Vec::new();
    let mut starts = Vec::new();
    let (mut resident, mut anonymous) = (0.0, 0.0);
    for _ in 0..STARTS {
        spawns.push(timed(|| Ok(Command::new(&wharf).arg("--version").output()?.status))?);
        let started = Instant::now();
        let running = Running::start(&wharf, &home)?;
        starts.push(started.elapsed());
        std::thread::sleep(Duration::from_millis(200));
        resident = resident_mib(running.child.id())?;
        anonymous = memory_mib(running.child.id(), "RssAnon:")?;
        running.stop()?;
    }
    let spawn_ms = median_us(spawns) / 1e3;
    report.floor("spawn `wharf --version` and wait, p50", spawn_ms, "ms");
    let start_ms = median_us(starts) / 1e3;
    let of = Some((spawn_ms, "spawn"));
    report.figure("start to ready, p50", start_ms, "ms", of, "≤ 50 ms");
    report.figure("idle memory, resident", resident, "MiB", None, "≤ 25 MiB");
    report.figure("  of it anonymous", anonymous, "MiB", None, "≤ 10 MiB");
    recovery(scale, &wharf, &home, report)
}

/// Opens many runs that wait for an approval, kills the core, and starts it again.
fn recovery(scale: Scale, wharf: &Path, home: &Path, report: &mut Report) -> anyhow::Result<()> {
    let running = Running::start(wharf, home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let count = scale.open_runs;
    runtime.block_on(open_runs(&running, count))?;
    running.kill()?;
    let started = Instant::now();
    let running = Running::start(wharf, home)?;
    let took = started.elapsed();
    let found = runtime.block_on(async {
        let mut client = running.client().await?;
        let (status, body) = client.request("GET", "/v1/runs?status=waiting&limit=1", "").await?;
        ensure!(status == 200, "the list answered {status}");
        let page: Value = serde_json::from_slice(&body)?;
        let first = page["items"][0]["run_id"].as_str().context("no run is left")?.to_owned();
        let (status, _) = client.request("POST", &format!("/v1/runs/{first}/cancel"), "").await?;
        ensure!(status == 202, "the cancel answered {status}");
        let (_, metrics) = client.request("GET", "/metrics", "").await?;
        anyhow::Ok(String::from_utf8_lossy(&metrics).len())
    })?;
    ensure!(found > 0, "no metrics");
    let name = format!("kill -9 with {count} open runs: serving again after");
    report.figure(&name, took.as_secs_f64() * 1e3, "ms", None, "≤ 250 ms");
    let mib = resident_mib(running.child.id())?;
    report.figure(&format!("RSS with {count} open runs"), mib, "MiB", None, "");
    running.stop()
}

async fn open_runs(running: &Running, count: usize) -> anyhow::Result<()> {
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let mut client = running.client().await?;
        tasks.push(tokio::spawn(async move {
            for _ in 0..count / 16 {
                let body = r#"{"tool":"wharf/approve-me","inputs":{"purpose":"a benchmark"}}"#;
                let (status, _) = client.request("POST", "/v1/runs", body).await?;
                ensure!(status == 202, "a run answered {status}");
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// The program that was built beside this one.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("wharf");
    ensure!(path.exists(), "{} is missing; build it with `make bench`", path.display());
    Ok(path)
}

/// A core in a process of its own.
pub(crate) struct Running {
    child: Child,
    home: PathBuf,
}

impl Running {
    /// Starts a core and waits until it answers.
    pub(crate) fn start(wharf: &Path, home: &Path) -> anyhow::Result<Self> {
        let core_file = home.join("run/core.json");
        match std::fs::remove_file(&core_file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let child = Command::new(wharf)
            .args(["up", "--listen", "127.0.0.1:0", "--home"])
            .arg(home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let running = Self { child, home: home.to_owned() };
        let deadline = Instant::now() + Duration::from_secs(30);
        while running.address().is_err() {
            if Instant::now() > deadline {
                bail!("the core does not come up");
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(running)
    }

    pub(crate) fn address(&self) -> anyhow::Result<std::net::SocketAddr> {
        let text = std::fs::read(self.home.join("run/core.json"))?;
        let info: Value = serde_json::from_slice(&text)?;
        let url = info["http"].as_str().context("no address")?;
        Ok(url.trim_start_matches("http://").parse()?)
    }

    pub(crate) fn token(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.home.join("run/owner.token"))?.trim().to_owned())
    }

    async fn client(&self) -> anyhow::Result<Client> {
        Client::connect(self.address()?, &self.token()?).await
    }

    fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the core ended with {status}");
        Ok(())
    }

    fn kill(mut self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::KILL)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    /// A measurement that fails leaves no core behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Duration> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

pub(crate) fn resident_mib(pid: u32) -> anyhow::Result<f64> {
    memory_mib(pid, "VmRSS:")
}

/// The most memory a process has had so far.
pub(crate) fn peak_mib(pid: u32) -> anyhow::Result<f64> {
    memory_mib(pid, "VmHWM:")
}

fn memory_mib(pid: u32, what: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(what)).context("no such figure")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib / 1024.0)
}
