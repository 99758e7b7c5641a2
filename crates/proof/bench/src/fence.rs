//! What a fence costs: starts under each level beside a plain spawn and bubblewrap, and permission
//! checks. Starts of all kinds take turns, so that they meet the same machine.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use wharf_domain::permission::{PathGlob, Permission};
use wharf_launcher::{LauncherOptions, ProcessLauncher};
use wharf_ports::launcher::{Fence, LaunchSpec, Launcher as _, LogSpec};
use wharf_vocab::{LaunchId, SandboxLevel, ToolId};

use crate::report::{Report, median_us};
use crate::{Scale, core, process};

const STARTED: &str = "/bin/true";
/// Permissions of a generous manifest.
const PERMISSIONS: usize = 50;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    starts(scale, report).await?;
    checks(scale, report)
}

async fn starts(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let launcher =
        ProcessLauncher::start(LauncherOptions { shim_program: Some(process::program()?) })?;
    let levels = [SandboxLevel::Basic, SandboxLevel::Standard, SandboxLevel::Strict];
    let mut took: Vec<Vec<Duration>> = vec![Vec::new(); levels.len()];
    let (mut plain, mut wrapped) = (Vec::new(), Vec::new());
    let bubblewrap = has_bubblewrap();
    for turn in 0..(scale.singles / 10).max(20) {
        plain.push(spawned(&mut Command::new(STARTED))?);
        if bubblewrap {
            let mut command = Command::new("bwrap");
            command.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", STARTED]);
            wrapped.push(spawned(&mut command)?);
        }
        for (level, took) in levels.iter().zip(&mut took) {
            let spec = spec(&dir.path().join(format!("{turn}-{level}")), *level)?;
            let started = Instant::now();
            let launched =
                launcher.launch(spec).await.map_err(|fault| anyhow::anyhow!("{fault}"))?;
            took.push(started.elapsed());
            ensure!(launched.fence().level == *level, "{level} could not be had here");
            ensure!(launched.exited().await.is_success(), "{STARTED} failed under {level}");
        }
    }
    let floor = median_us(plain) / 1e3;
    report.floor("spawn a program and wait for it, p50", floor, "ms");
    if bubblewrap {
        let of = Some((floor, "spawn"));
        report.figure("the same under bubblewrap, p50", median_us(wrapped) / 1e3, "ms", of, "");
    }
    for (level, took) in levels.iter().zip(took) {
        let value = median_us(took) / 1e3;
        let name = format!("launch a program under `{level}` until it runs, p50");
        let goal = match level {
            SandboxLevel::Strict => "≤ 5 ms over a spawn",
            _ => "≤ 3 ms over a spawn",
        };
        report.figure(&name, value, "ms", Some((floor, "spawn")), goal);
    }
    Ok(())
}

fn spec(folder: &PathBuf, level: SandboxLevel) -> anyhow::Result<LaunchSpec> {
    std::fs::create_dir_all(folder)?;
    let launch = LaunchId::new(format!("bench-{level}"))?;
    let mut spec = LaunchSpec::new(launch, STARTED, folder, LogSpec::at(folder.join("log")));
    spec.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    spec.private_dirs = vec![folder.join("home"), folder.join("tmp")];
    spec.fence = Fence::default();
    spec.fence.level = level;
    spec.fence.minimum = level;
    Ok(spec)
}

fn spawned(command: &mut Command) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let status = command.stdin(Stdio::null()).status().context("failed to spawn")?;
    ensure!(status.success(), "{command:?} failed");
    Ok(started.elapsed())
}

fn has_bubblewrap() -> bool {
    let mut tried = Command::new("bwrap");
    tried.args(["--unshare-all", "--ro-bind", "/", "/", STARTED]);
    tried.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A check looks through all permissions, and the last one fits.
fn checks(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let error = |error| anyhow::anyhow!("{error}");
    let count = u32::try_from(scale.many)?;
    let list = |last: &str, other: &dyn Fn(usize) -> String| {
        let texts = (1..PERMISSIONS).map(other).chain([last.to_owned()]);
        texts.map(|text| Permission::parse(&text)).collect::<Result<Vec<_>, _>>()
    };
    let tools = list("tool:invoke:dev.*/ec*o", &|n| format!("tool:invoke:other{n}.*/ec*o"));
    let tools = tools.map_err(error)?;
    let tool = ToolId::new("dev.example.hello/echo")?;
    let started = Instant::now();
    for _ in 0..count {
        let fits =
            tools.iter().any(|permission| permission.allows_tool(std::hint::black_box(&tool)));
        ensure!(fits, "the last permission fits");
    }
    let each = (started.elapsed() / count).as_secs_f64() * 1e6;
    report.figure(&format!("check a call against {PERMISSIONS} permissions"), each, "us", None, "");
    let hosts = list("network:egress:*.example.com:443", &|n| format!("network:egress:*.h{n}.dev"));
    let hosts = hosts.map_err(error)?;
    let started = Instant::now();
    for _ in 0..count {
        let name = std::hint::black_box("api.example.com");
        ensure!(hosts.iter().any(|permission| permission.allows_host(name, 443)), "it fits");
    }
    let each = (started.elapsed() / count).as_secs_f64() * 1e6;
    report.figure(&format!("check a host against {PERMISSIONS} permissions"), each, "us", None, "");
    let (wide, narrow) = ("/srv/**/data*/**", "/srv/a/*/data-1/x?/**/*.csv");
    let (wide, narrow) =
        (PathGlob::parse(wide).map_err(error)?, PathGlob::parse(narrow).map_err(error)?);
    let started = Instant::now();
    let times = (count / 100).max(10);
    for _ in 0..times {
        ensure!(std::hint::black_box(&wide).covers(&narrow), "it lies within");
    }
    let each = (started.elapsed() / times).as_secs_f64() * 1e6;
    report.figure("prove that one path pattern lies within another", each, "us", None, "");
    Ok(())
}
