//! Large files through the real program: put, get, and in and out of a fenced agent, beside a
//! bare streaming copy over loopback to a file that is flushed at the end.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::process::{Running, peak_mib, program};
use crate::report::Report;
use crate::{Scale, core};

const CHUNK: usize = 256 * 1024;
const AGENT: &str = "dev.wharf.copy";

pub(crate) fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    for mib in scale.file_mib {
        let dir = core::scratch()?;
        let free = free_mib(dir.path())?;
        // The file, its copies in the store, in the agent's folder and what a get leaves.
        if free < mib * 8 {
            report.figure(&skipped(*mib), free as f64, "MiB free", None, "");
            continue;
        }
        one_size(dir.path(), *mib, report)?;
    }
    Ok(())
}

pub(crate) fn skipped(mib: u64) -> String {
    format!("{mib} MiB: left out, the disk is too small")
}

fn one_size(dir: &Path, mib: u64, report: &mut Report) -> anyhow::Result<()> {
    let source = dir.join("source");
    make(&source, mib)?;
    let raw_put = rate(mib, bare_put(&source, &dir.join("bare"))?);
    report.floor(&format!("bare streaming PUT to a flushed file, {mib} MiB"), raw_put, "MB/s");
    let raw_get = rate(mib, bare_get(&dir.join("bare"), &dir.join("bare-back"))?);
    report.floor(&format!("bare streaming GET to a file, {mib} MiB"), raw_get, "MB/s");
    std::fs::remove_file(dir.join("bare-back"))?;
    std::fs::remove_file(dir.join("bare"))?;

    let wharf = program()?;
    let home = dir.join("home");
    let running = Running::start(&wharf, &home)?;
    let cli = Cli { wharf: &wharf, home: &home };
    let idle = peak_mib(running.pid())?;
    let (took, client) = cli.timed(&["worlds", "put", "default", "/big", &text(&source)?])?;
    let of = Some((raw_put, "bare PUT"));
    report.figure(&format!("wharf worlds put, {mib} MiB"), rate(mib, took), "MB/s", of, "≥ 0.9 ×");
    report.figure("  peak memory of the client", client, "MiB", None, "< 64 MiB");
    let back = dir.join("back");
    let (took, client) = cli.timed(&["worlds", "get", "default", "/big", &text(&back)?])?;
    let of = Some((raw_get, "bare GET"));
    report.figure(&format!("wharf worlds get, {mib} MiB"), rate(mib, took), "MB/s", of, "≥ 0.9 ×");
    report.figure("  peak memory of the client", client, "MiB", None, "< 64 MiB");
    ensure!(std::fs::metadata(&back)?.len() == mib << 20, "what came back is not as long");
    std::fs::remove_file(&back)?;

    agent(dir, &cli)?;
    let run = [
        "run",
        "dev.wharf.copy/copy",
        "data.world=/big",
        "--out",
        "copy.world=/copied",
        "--timeout",
        "1h",
    ];
    let (took, _) = cli.timed(&run)?;
    let (two_ways, floor) = (rate(2 * mib, took), 2.0 / (1.0 / raw_put + 1.0 / raw_get));
    let of = Some((floor, "bare PUT and GET"));
    let name = format!("in and out of a fenced agent, {mib} MiB each way");
    report.figure(&name, two_ways, "MB/s", of, "≥ 0.9 ×");
    let peak = peak_mib(running.pid())? - idle;
    report.figure(
        "  what all of it added to the core's peak memory",
        peak,
        "MiB",
        None,
        "< 64 MiB",
    );
    running.stop()
}

/// The command line against one core.
pub(crate) struct Cli<'a> {
    pub(crate) wharf: &'a Path,
    pub(crate) home: &'a Path,
}

impl Cli<'_> {
    /// How long a command takes, and the most memory it had.
    pub(crate) fn timed(&self, arguments: &[&str]) -> anyhow::Result<(Duration, f64)> {
        let started = Instant::now();
        let mut child = Command::new(self.wharf)
            .args(arguments)
            .arg("--home")
            .arg(self.home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut peak: f64 = 0.0;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            // A process that ends right now has no figures any more.
            peak = peak_mib(child.id()).unwrap_or(peak).max(peak);
            std::thread::sleep(Duration::from_millis(5));
        };
        ensure!(status.success(), "{arguments:?} ended with {status}");
        Ok((started.elapsed(), peak))
    }
}

/// An agent whose one tool copies its input file to its output file.
fn agent(dir: &Path, cli: &Cli<'_>) -> anyhow::Result<()> {
    let folder = dir.join("agent");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("opensentience.agent.json"), include_str!("../copy/manifest.json"))?;
    std::fs::write(folder.join("agent.py"), include_str!("../copy/agent.py"))?;
    cli.timed(&["agents", "add", &text(&folder)?])?;
    cli.timed(&["agents", "approve", AGENT, "--all"])?;
    cli.timed(&["agents", "start", AGENT])?;
    Ok(())
}

pub(crate) fn make(path: &Path, mib: u64) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    let mut chunk = vec![0_u8; 1 << 20];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..mib {
        for word in chunk.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    Ok(())
}

pub(crate) fn bare_put(from: &Path, to: &Path) -> anyhow::Result<Duration> {
    stream(from, to, true)
}

pub(crate) fn bare_get(from: &Path, to: &Path) -> anyhow::Result<Duration> {
    stream(from, to, false)
}

/// One thread reads a file into a socket, another one writes what it gets to a file.
fn stream(from: &Path, to: &Path, flush: bool) -> anyhow::Result<Duration> {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let addr = listener.local_addr()?;
    let to = to.to_owned();
    let started = Instant::now();
    let receiver = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept()?;
        let mut file = File::create(to)?;
        copy(&mut socket, &mut file)?;
        if flush {
            file.sync_all()?;
        }
        socket.write_all(b"!")
    });
    let mut socket = TcpStream::connect(addr)?;
    socket.set_nodelay(true)?;
    copy(&mut File::open(from)?, &mut socket)?;
    socket.shutdown(std::net::Shutdown::Write)?;
    socket.read_exact(&mut [0])?;
    let took = started.elapsed();
    receiver.join().map_err(|_| anyhow::anyhow!("the receiver panicked"))??;
    Ok(took)
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            count => to.write_all(&chunk[..count])?,
        }
    }
}

pub(crate) fn rate(mib: u64, took: Duration) -> f64 {
    (mib << 20) as f64 / 1e6 / took.as_secs_f64()
}

pub(crate) fn free_mib(path: &Path) -> anyhow::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize) >> 20)
}

pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let path: &PathBuf = &path.to_owned();
    Ok(path.to_str().context("a path that is not text")?.to_owned())
}
