//! Calls to an agent in a process of its own, beside a raw echo over the same kind of socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use wharf_domain::Caller;
use wharf_engine::Handle;
use wharf_ports::providers::{Approve, ProviderControl as _, ProviderState};
use wharf_server::{Core, CoreOptions, Home};
use wharf_vocab::{Durability, ProviderId, RunStatus};

use crate::cpu::cpu_us;
use crate::report::{Report, median_us, per_second};
use crate::{Scale, core};

/// The word that makes this program the raw echo.
pub(crate) const ECHO_WORD: &str = "__echo";
const AGENT: &str = "dev.wharf.hello";
const TOOL: &str = "dev.wharf.hello/hello_world";
const PAYLOAD_BYTES: usize = 200;
const CALLERS: usize = 32;
const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let floor = raw_round_trip_us(scale.singles)?;
    report.floor("raw framed echo over a Unix socket, two processes, p50", floor, "µs");
    let dir = core::scratch()?;
    let core = start(&dir).await?;
    let handle = core.handle().clone();
    one_caller(&handle, scale.singles / 10, Durability::Memory).await?;
    let of = Some((2.0 * floor, "two raw round trips"));
    let (p50, cpu) = one_caller(&handle, scale.singles, Durability::Memory).await?;
    report.figure("brokered agent call p50, 1 caller, memory", p50, "µs", of, "≤ 1.5 ×");
    report.cpu(cpu);
    let (p50, cpu) = one_caller(&handle, scale.singles / 3, Durability::Journal).await?;
    report.figure("brokered agent call p50, 1 caller, durable", p50, "µs", of, "");
    report.cpu(cpu);
    let cpu = cpu_us()?;
    let count = scale.many / 2;
    let rate = many_callers(&handle, count, Durability::Memory).await?;
    let per_call = (cpu_us()? - cpu) / count as f64;
    report.figure("brokered agent calls, 32 callers, memory", rate, "calls/s", None, "≥ 50,000");
    report.cpu(per_call);
    report.figure("CPU of the core per brokered call, memory", per_call, "µs", None, "≤ 20 µs");
    let cpu = cpu_us()?;
    let count = scale.many / 6;
    let rate = many_callers(&handle, count, Durability::Journal).await?;
    report.figure("brokered agent calls, 32 callers, durable", rate, "calls/s", None, "");
    report.cpu((cpu_us()? - cpu) / count as f64);
    let restart = restart_ms(&core).await?;
    report.figure(
        "kill -9 an agent: running again after (pause of 1 s included)",
        restart,
        "ms",
        None,
        "",
    );
    core.stop().await?;
    Ok(())
}

/// A core with the Rust example agent, which was built beside this program.
async fn start(dir: &tempfile::TempDir) -> anyhow::Result<Core> {
    let beside = |name: &str| -> anyhow::Result<PathBuf> {
        let path = std::env::current_exe()?.with_file_name(name);
        ensure!(path.exists(), "{} is missing; build it with `make bench`", path.display());
        Ok(path)
    };
    let home = Home::resolve(Some(dir.path().join("home")))?;
    let listen = Some(core::any_port());
    let shim = Some(beside("wharf")?);
    let core = Core::start(CoreOptions { listen, shim, ..CoreOptions::new(home) }).await?;
    let folder = dir.path().join("hello");
    std::fs::create_dir(&folder)?;
    let manifest = json!({
        "id": AGENT, "version": "0.1.0", "permissions": [],
        "entrypoint": {"type": "command", "value": beside("hello-agent")?},
    });
    std::fs::write(folder.join("opensentience.agent.json"), manifest.to_string())?;
    let (agents, owner, id) = (core.agents(), Caller::owner(), ProviderId::new(AGENT)?);
    agents.add(owner.clone(), folder).await?;
    agents.approve(owner.clone(), id.clone(), Approve::default()).await?;
    agents.start(owner, id).await?;
    running(&core, None).await?;
    Ok(core)
}

/// Waits until the agent runs as another process than before.
async fn running(core: &Core, not: Option<u32>) -> anyhow::Result<u32> {
    let deadline = Instant::now() + LONG;
    let id = ProviderId::new(AGENT)?;
    loop {
        let view = core.agents().show(&id)?;
        if let (ProviderState::Running, Some(pid)) = (view.state, view.pid)
            && Some(pid) != not
        {
            return Ok(pid);
        }
        ensure!(Instant::now() < deadline, "the agent does not come up: {view:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn restart_ms(core: &Core) -> anyhow::Result<f64> {
    let pid = running(core, None).await?;
    let process = rustix::process::Pid::from_raw(i32::try_from(pid)?).context("no process")?;
    let started = Instant::now();
    rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
    running(core, Some(pid)).await?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// The middle of so many calls, and the processor time of each.
async fn one_caller(
    handle: &Handle,
    count: usize,
    durability: Durability,
) -> anyhow::Result<(f64, f64)> {
    let mut durations = Vec::with_capacity(count);
    let cpu = cpu_us()?;
    for _ in 0..count {
        let started = Instant::now();
        call(handle, durability).await?;
        durations.push(started.elapsed());
    }
    let cpu = (cpu_us()? - cpu) / count as f64;
    Ok((median_us(durations), cpu))
}

async fn many_callers(
    handle: &Handle,
    count: usize,
    durability: Durability,
) -> anyhow::Result<f64> {
    let started = Instant::now();
    let tasks: Vec<_> = (0..CALLERS)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move {
                for _ in 0..count / CALLERS {
                    call(&handle, durability).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(per_second(count / CALLERS * CALLERS, started.elapsed()))
}

async fn call(handle: &Handle, durability: Durability) -> anyhow::Result<()> {
    let mut new = core::request(TOOL, json!({"name": "x".repeat(100)}))?;
    new.durability = Some(durability);
    let accepted = handle.runs().create_and_wait(&Caller::owner(), new, LONG).await?;
    ensure!(
        accepted.run.status() == RunStatus::Succeeded,
        "a run ended {:?}",
        accepted.run.outcome
    );
    Ok(())
}

/// What a frame to another process and back costs on this machine.
fn raw_round_trip_us(count: usize) -> anyhow::Result<f64> {
    let dir = core::scratch()?;
    let path = dir.path().join("echo.sock");
    let listener = UnixListener::bind(&path)?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg(ECHO_WORD)
        .arg(&path)
        .stdin(Stdio::null())
        .spawn()?;
    let (mut stream, _) = listener.accept()?;
    let mut frame = vec![7; 4 + PAYLOAD_BYTES];
    frame[..4].copy_from_slice(&u32::try_from(PAYLOAD_BYTES)?.to_be_bytes());
    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        stream.write_all(&frame)?;
        stream.read_exact(&mut frame)?;
        durations.push(started.elapsed());
    }
    drop(stream);
    child.wait()?;
    Ok(median_us(durations))
}

/// The other end of the raw echo.
pub(crate) fn echo(path: &str) -> anyhow::Result<()> {
    let mut stream = UnixStream::connect(path)?;
    let mut frame = vec![0; 4 + PAYLOAD_BYTES];
    while stream.read_exact(&mut frame).is_ok() {
        stream.write_all(&frame)?;
    }
    Ok(())
}
