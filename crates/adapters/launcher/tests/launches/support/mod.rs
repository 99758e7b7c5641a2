//! What the tests share: a launcher with a directory of its own, and ways to look at processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, timeout};
use wharf_launcher::{LauncherOptions, Primitive, ProcessLauncher};
use wharf_ports::launcher::{Exit, LaunchSpec, Launched, Launcher, LogLine, LogSpec};
use wharf_vocab::{Fault, LaunchId, SandboxLevel};

/// The program that behaves as it is told.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_wharf-launcher-probe");

/// Nothing in a test may take longer, on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Patience that a test means to use up.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// Patience that a test means never to use up.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A launcher with a directory of its own.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) launcher: ProcessLauncher,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let options = LauncherOptions { shim_program: Some(PROBE.into()) };
        let launcher = ProcessLauncher::start(options).expect("starts");
        Self { dir: tempfile::tempdir().expect("a directory"), launcher }
    }

    /// A launcher as it would be on a kernel that lacks these.
    pub(crate) fn without(missing: &[Primitive]) -> Self {
        let Self { dir, launcher } = Self::new();
        let launcher = missing.iter().fold(launcher, |launcher, one| launcher.without(*one));
        Self { dir, launcher }
    }

    /// A launch of the probe under a mark that no other launch has.
    pub(crate) fn spec(&self, args: &[&str]) -> LaunchSpec {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = LaunchId::new(format!("l{number}")).expect("valid");
        let log = LogSpec::at(self.dir.path().join(format!("logs/{id}.log")));
        let mut spec = LaunchSpec::new(id, PROBE, self.dir.path(), log);
        spec.args = args.iter().map(|&arg| arg.to_owned()).collect();
        let mark = format!("{}-{number}", std::process::id());
        spec.env.insert("WHARF_TEST_MARK".to_owned(), mark);
        spec
    }

    /// A launch that is fenced in, with a home and a folder for temporary files.
    pub(crate) fn fenced(&self, level: SandboxLevel, args: &[&str]) -> LaunchSpec {
        let mut spec = self.spec(args);
        let own = self.dir.path().join(format!("own-{}", spec.launch));
        spec.private_dirs = vec![own.join("home"), own.join("tmp")];
        spec.env.insert("HOME".to_owned(), own.join("home").display().to_string());
        spec.env.insert("TMPDIR".to_owned(), own.join("tmp").display().to_string());
        spec.env.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        // A folder of its own, so that it does not see everything of the test.
        spec.cwd = self.dir.path().join("agent");
        fs::create_dir_all(&spec.cwd).expect("makes it");
        spec.fence.level = level;
        spec
    }

    /// Launches, waits for the end, and gives back what was said.
    pub(crate) async fn said(&self, spec: LaunchSpec) -> Vec<String> {
        let launched = self.launch(spec).await;
        ended(launched.exited()).await;
        output(&*launched).await
    }

    pub(crate) async fn launch(&self, spec: LaunchSpec) -> Arc<dyn Launched> {
        self.try_launch(spec).await.expect("launches")
    }

    pub(crate) async fn try_launch(&self, spec: LaunchSpec) -> Result<Arc<dyn Launched>, Fault> {
        timeout(DEADLINE, self.launcher.launch(spec)).await.expect("in time")
    }

    /// Launches the probe and waits for its end.
    pub(crate) async fn run(&self, args: &[&str]) -> (Exit, Vec<String>) {
        let launched = self.launch(self.spec(args)).await;
        let exit = ended(launched.exited()).await;
        (exit, output(&*launched).await)
    }
}

/// Waits for an end, for a bounded time.
/// Copies a program to be run at once. Another process does it: a child that this one forks for
/// another test at that moment would inherit what the copy is written through, and a file that
/// is open for writing cannot be run.
pub(crate) fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = std::process::Command::new("cp").arg(from.as_ref()).arg(to).status();
    assert!(copied.expect("cp runs").success(), "copies");
}

/// Writes a script to be run at once, for which the same is true.
pub(crate) fn write_program(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).expect("writes");
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("marks");
    copy_program(&draft, path);
    fs::remove_file(&draft).expect("removes");
}

pub(crate) async fn ended(exited: impl Future<Output = Exit>) -> Exit {
    timeout(DEADLINE, exited).await.expect("ends in time")
}

/// Everything the program wrote, without the launcher's own words.
pub(crate) async fn output(launched: &dyn Launched) -> Vec<String> {
    let lines = launched.tail(usize::MAX).await.expect("reads");
    texts(lines.iter().filter(|line| line.source != wharf_ports::launcher::LogSource::Launcher))
}

pub(crate) fn texts<'a>(lines: impl IntoIterator<Item = &'a LogLine>) -> Vec<String> {
    lines.into_iter().map(|line| line.text.to_string()).collect()
}

/// Reads the log until a line satisfies the condition; gives back all lines up to it.
pub(crate) async fn read_until(
    launched: &dyn Launched,
    is_it: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut lines = launched.follow(usize::MAX);
    let mut seen = Vec::new();
    let reading = async {
        while let Some(line) = lines.next().await {
            seen.push(line.text.to_string());
            if is_it(&line.text) {
                return;
            }
        }
        panic!("the log ended after {seen:?}");
    };
    timeout(DEADLINE, reading).await.expect("in time");
    seen
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "it never came true: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Every living process whose environment carries the mark.
pub(crate) fn marked(mark: &str) -> Vec<i32> {
    let needle = format!("WHARF_TEST_MARK={mark}\0");
    let carries = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.windows(needle.len()).any(|at| at == needle.as_bytes()))
    };
    pids().into_iter().filter(carries).collect()
}

pub(crate) fn mark_of(spec: &LaunchSpec) -> String {
    spec.env["WHARF_TEST_MARK"].clone()
}

pub(crate) fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("a process table");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The fields of a process after its name: state, parent, group, session and so on.
pub(crate) fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// The parent of a living process.
pub(crate) fn parent_of(pid: u32) -> i32 {
    let fields = stat(i32::try_from(pid).expect("fits")).expect("lives");
    fields[1].parse().expect("a number")
}

pub(crate) fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, signal).expect("lives");
}

pub(crate) fn log_path(spec: &LaunchSpec) -> PathBuf {
    spec.log.path.clone()
}

/// Whether this machine can do it; says so if not, because then only the fallback is tested.
pub(crate) async fn can(bench: &Bench, level: SandboxLevel) -> bool {
    let achieved = bench.launcher.probe().await;
    if achieved.level < level {
        tell(&format!(
            "{level}, because this machine has {}: {:?}",
            achieved.level, achieved.notes
        ));
    }
    achieved.level >= level
}

/// Says what could not be tested here, so that it is counted.
pub(crate) fn tell(what: &str) {
    wharf_skips::skip(what);
}
