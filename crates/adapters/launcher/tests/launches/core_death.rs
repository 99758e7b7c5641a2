//! When the core dies, whatever the way, nothing it launched survives.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{Bench, PROBE, eventually, marked, parent_of, signal, stat, tell};
use rustix::process::Signal;
use wharf_ports::launcher::Launcher;
use wharf_vocab::SandboxLevel;

/// A core in a process of its own, with a family launched below it.
struct Core {
    process: Child,
    /// Held, because a core that cannot speak ends too early.
    _stdout: BufReader<ChildStdout>,
    _dir: tempfile::TempDir,
    mark: String,
    program: i32,
    shim: i32,
}

impl Core {
    async fn start(name: &str) -> Self {
        Self::start_at(name, SandboxLevel::Basic).await
    }

    async fn start_at(name: &str, level: SandboxLevel) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mark = format!("{name}-{}", std::process::id());
        let mut process = Command::new(PROBE)
            .args(["core", &dir.path().display().to_string(), &mark, "family"])
            .env("WHARF_TEST_LEVEL", level.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("reads");
        let program = line.trim().strip_prefix("program ").expect("the program's id");
        let program = program.parse().expect("a number");
        let parent = parent_of(program);
        // In namespaces there is one more process between them.
        let shim = match level {
            SandboxLevel::Basic => parent,
            _ => parent_of(parent.unsigned_abs()),
        };
        let mut lines = stdout.by_ref().lines().map(|line| line.expect("text"));
        assert!(lines.any(|line| line == "family complete"), "the family never came");
        // A process that has just begun does not show its environment at once.
        eventually("all of it can be seen", || marked(&mark).len() == 4).await;
        let program = i32::try_from(program).expect("fits");
        Self { process, _stdout: stdout, _dir: dir, mark, program, shim }
    }

    fn signal(&self, sent: Signal) {
        signal(i32::try_from(self.process.id()).expect("fits"), sent);
    }

    async fn assert_all_gone(mut self) {
        self.process.wait().expect("ends");
        eventually("everything below the core is gone", || marked(&self.mark).is_empty()).await;
        eventually("so is the shim", || is_dead(self.shim)).await;
    }
}

/// Gone, or waiting for the machine's first process to take note of an orphan's death.
fn is_dead(pid: i32) -> bool {
    stat(pid).is_none_or(|fields| fields[0] == "Z")
}

#[tokio::test]
async fn a_core_that_is_killed_takes_everything_along() {
    let core = Core::start("killed").await;
    core.signal(Signal::KILL);
    core.assert_all_gone().await;
}

#[tokio::test]
async fn a_core_that_ends_without_a_word_takes_everything_along() {
    let core = Core::start("ended").await;
    core.signal(Signal::TERM);
    core.assert_all_gone().await;
}

#[tokio::test]
async fn a_core_that_dies_together_with_its_shim_takes_the_program_along() {
    let mut core = Core::start("both").await;
    // Halted, the core cannot clear up between the two deaths.
    core.signal(Signal::STOP);
    signal(core.shim, Signal::KILL);
    core.signal(Signal::KILL);
    core.process.wait().expect("ends");
    eventually("the program died with its shim", || is_dead(core.program)).await;
    // The rest has nobody left who knows it, so the test ends it.
    for pid in marked(&core.mark) {
        signal(pid, Signal::KILL);
    }
    eventually("the test leaves nothing", || marked(&core.mark).is_empty()).await;
}

#[tokio::test]
async fn in_namespaces_nothing_at_all_survives_core_and_shim() {
    if Bench::new().launcher.probe().await.level < SandboxLevel::Standard {
        return tell("this machine has no namespaces");
    }
    for signal_core in [Signal::KILL, Signal::TERM] {
        let core = Core::start_at(&format!("fenced-{signal_core:?}"), SandboxLevel::Standard).await;
        core.signal(signal_core);
        core.assert_all_gone().await;
    }
    let core = Core::start_at("fenced-both", SandboxLevel::Standard).await;
    // Halted, the core cannot clear up between the two deaths.
    core.signal(Signal::STOP);
    signal(core.shim, Signal::KILL);
    core.signal(Signal::KILL);
    core.assert_all_gone().await;
}

#[tokio::test]
async fn a_program_hears_the_signals_that_its_core_was_started_to_ignore() {
    for level in [SandboxLevel::None, SandboxLevel::Basic, SandboxLevel::Standard] {
        let dir = tempfile::tempdir().expect("a directory");
        // As `nohup wharf up &` does it in a script.
        let output = Command::new("sh")
            .args(["-c", "trap '' HUP INT QUIT; exec \"$0\" \"$@\"", PROBE, "core"])
            .args([&dir.path().display().to_string(), "ignoring", "ignored"])
            .env("WHARF_TEST_LEVEL", level.as_str())
            .stdin(Stdio::null())
            .output()
            .expect("starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = said.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let told = told.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        let told = told.unwrap_or_else(|| panic!("{level}: {said}"));
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
            assert_eq!(told & 1 << (signal.as_raw() - 1), 0, "{level}: {signal:?} of {told:x}");
        }
    }
}
