//! Measures what a start costs at each level beside a plain spawn: from asking for it until the
//! program's first line has been read. Run it in release mode on a quiet machine.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use wharf_launcher::{LauncherOptions, ProcessLauncher, shim};
use wharf_ports::launcher::{LaunchSpec, Launcher, LogSpec};
use wharf_vocab::{LaunchId, SandboxLevel};

const ROUNDS: usize = 200;

fn main() -> ExitCode {
    if shim::is_asked_for() {
        return shim::main();
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "it is what the example is for")]
async fn measure() {
    let dir = std::env::temp_dir().join(format!("wharf-start-cost-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("makes it");
    let launcher = ProcessLauncher::start(LauncherOptions::default()).expect("starts");
    let achieved = launcher.probe().await;
    println!("this machine can do {}", achieved.level);
    let mut rows: Vec<(&str, Vec<[Duration; 2]>)> =
        ["plain", "basic", "standard", "strict"].map(|name| (name, Vec::new())).into();
    // In turn, so that whatever else the machine does hits all of them alike.
    for round in 0..ROUNDS {
        for (name, times) in &mut rows {
            let time = match SandboxLevel::parse(name) {
                None => plain(),
                Some(level) => launch(&launcher, &dir, level, round).await,
            };
            times.push(time);
        }
    }
    for (name, times) in &mut rows {
        for (index, what) in ["runs", "first line"].iter().enumerate() {
            times.sort_by_key(|time| time[index]);
            let at = |share: usize| times[times.len() * share / 100][index];
            println!("{name:>8} {what:<10} p10 {:?} p50 {:?} p90 {:?}", at(10), at(50), at(90));
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
}

/// Until it runs, and until its first line is read.
fn plain() -> [Duration; 2] {
    let began = Instant::now();
    let mut child =
        Command::new("/bin/echo").arg("hello").stdout(Stdio::piped()).spawn().expect("starts");
    let runs = began.elapsed();
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("reads");
    let spoke = began.elapsed();
    child.wait().expect("ends");
    [runs, spoke]
}

async fn launch(
    launcher: &ProcessLauncher,
    dir: &std::path::Path,
    level: SandboxLevel,
    round: usize,
) -> [Duration; 2] {
    let id = LaunchId::new(format!("{level}-{round}")).expect("valid");
    let log = LogSpec::at(dir.join(format!("{id}.log")));
    let mut spec = LaunchSpec::new(id, "/bin/echo", dir, log);
    spec.args.push("hello".to_owned());
    spec.private_dirs = vec![dir.join("home"), dir.join("tmp")];
    spec.fence.level = level;
    let began = Instant::now();
    let launched = launcher.launch(spec).await.expect("starts");
    let runs = began.elapsed();
    let first = launched.follow(usize::MAX).next().await;
    let spoke = began.elapsed();
    assert_eq!(first.expect("a line").text.as_ref(), "hello");
    launched.exited().await;
    [runs, spoke]
}
