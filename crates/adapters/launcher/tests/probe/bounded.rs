//! A little core that runs a text of Python within limits and says how it ended. As a process of
//! its own it can be another user's.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use wharf_launcher::{LauncherOptions, Primitive, ProcessLauncher};
use wharf_ports::launcher::{LaunchSpec, Launcher, LogSource, LogSpec};
use wharf_vocab::{LaunchId, SandboxLevel};

use super::say;

/// Says what the program said, then `ended in N ms: HOW`.
pub(crate) fn run(dir: &str, text: &str) -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut launcher = ProcessLauncher::start(LauncherOptions::default())?;
        if std::env::var_os("WHARF_TEST_POLLING").is_some() {
            launcher = launcher.without(Primitive::Groups);
        }
        let launched = launcher.launch(spec(Path::new(dir), text)?).await;
        let launched = launched.map_err(io::Error::other)?;
        let began = Instant::now();
        let exit = launched.exited().await;
        let took = began.elapsed().as_millis();
        let lines = launched.tail(usize::MAX).await.map_err(io::Error::other)?;
        for line in lines.iter().filter(|line| line.source != LogSource::Launcher) {
            say(&line.text)?;
        }
        say(&format!("ended in {took} ms: {}", exit.how))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn spec(dir: &Path, text: &str) -> io::Result<LaunchSpec> {
    let id = LaunchId::new("bounded").map_err(io::Error::other)?;
    let mut spec =
        LaunchSpec::new(id, "/usr/bin/python3", dir.join("cwd"), LogSpec::at(dir.join("log/log")));
    std::fs::create_dir_all(&spec.cwd)?;
    spec.args = vec!["-c".to_owned(), text.to_owned()];
    spec.private_dirs = vec![dir.join("own/home"), dir.join("own/tmp")];
    spec.env.insert("HOME".to_owned(), dir.join("own/home").display().to_string());
    spec.env.insert("TMPDIR".to_owned(), dir.join("own/tmp").display().to_string());
    spec.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    spec.fence.level = SandboxLevel::Standard;
    spec.fence.minimum = SandboxLevel::Standard;
    spec.fence.artifacts = Some(dir.join("artifacts"));
    spec.fence.usage.memory_bytes = number("WHARF_TEST_MEMORY");
    spec.fence.usage.disk_bytes = number("WHARF_TEST_DISK");
    spec.fence.usage.processes = number("WHARF_TEST_PROCESSES");
    Ok(spec)
}
