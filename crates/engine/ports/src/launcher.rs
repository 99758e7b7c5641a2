//! Launching: how a provider's process is started, watched and ended.
//!
//! A port for edges that bring up their own peers. It knows processes, not protocols: what the
//! process says on its sockets is its edge's business. When to start again is decided by
//! [`Restarts`], which is pure; an adapter never restarts anything by itself.

mod fence;
mod restarts;

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use wharf_vocab::{Fault, LaunchId, ProviderId, Resource, SecretName, Timestamp, limits, shown};

use crate::vault::Secret;
pub use fence::{Egress, EgressDoor, Fence, FenceReport, Inbound};
pub use restarts::{RestartPolicy, RestartVerdict, Restarts};

/// Starts processes.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a process and answers once its program runs, or says in one sentence why it
    /// cannot. Giving up the future ends what was started.
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>>;

    /// How firmly a process can be fenced in on this machine, and what is missing for more.
    fn probe(&self) -> BoxFuture<'_, FenceReport>;

    /// The last lines of a log that an earlier launch has left, also one of an earlier core.
    /// A log that does not exist has no lines.
    fn tail(&self, log: &Path, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>>;
}

/// A process that was started, alive or dead. Dropping the last reference kills it and
/// everything it started.
pub trait Launched: Send + Sync + fmt::Debug + 'static {
    /// The launch.
    fn id(&self) -> &LaunchId;

    /// The program's process id.
    fn pid(&self) -> u32;

    /// How firmly it is fenced in, and what could not be had.
    fn fence(&self) -> &FenceReport;

    /// Whether a living process belongs to this launch: the program, or anything it started,
    /// however far it moved away from it.
    fn owns(&self, pid: u32) -> bool;

    /// What the program and everything it started use; none once it has ended, or where the system
    /// does not tell.
    fn usage(&self) -> Option<LaunchUsage> {
        None
    }

    /// Waits for the end. When it answers, everything the program started is gone too.
    fn exited(&self) -> BoxFuture<'static, Exit>;

    /// Tells the program and its group to end (TERM), and kills everything that is left after
    /// `grace`. It acts when it is called; the future only waits for the end.
    fn stop(&self, grace: Duration) -> BoxFuture<'static, Exit>;

    /// Kills the program and everything it started. It acts when it is called; the future only
    /// waits for the end.
    fn kill(&self) -> BoxFuture<'static, Exit>;

    /// The last lines of the log, oldest first.
    fn tail(&self, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>>;

    /// The last lines of the log that are still in memory, and then new ones as they come, until
    /// the launch has ended. A reader that is too slow is told how many lines it missed.
    fn follow(&self, lines: usize) -> BoxStream<'static, LogLine>;

    /// Adds a line to the log that the program said in another way than by its output. One that
    /// finds no room is left out.
    fn note(&self, _line: &str) {}
}

/// What a launch uses, all its processes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchUsage {
    /// What they have in memory; what several of them share counts for each.
    pub memory_bytes: u64,
    /// The processor time that they have used since the start.
    pub cpu_ms: u64,
    /// How many there are.
    pub processes: u32,
}

/// What to start, and in what surroundings. Nothing is inherited from the core.
#[derive(Clone)]
#[non_exhaustive]
pub struct LaunchSpec {
    /// The launch's id.
    pub launch: LaunchId,
    /// Whose process it is, which the log of the core says beside the id.
    pub provider: Option<ProviderId>,
    /// The program: an absolute path, a path from the working directory, or a plain name that is
    /// looked for in the `PATH` of [`LaunchSpec::env`].
    pub program: PathBuf,
    /// Its arguments. No shell sees them.
    pub args: Vec<String>,
    /// Its working directory, which must exist.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Directories to make first, for this user only: usually those that `HOME` and `TMPDIR` name.
    pub private_dirs: Vec<PathBuf>,
    /// Directories to make first that the core fills: the program may read what is in them, and
    /// it does not count as the program's own.
    pub given_dirs: Vec<PathBuf>,
    /// Other programs that it starts, by their paths: each is shown with what it needs to begin, as
    /// the program itself is.
    pub starts: Vec<PathBuf>,
    /// Texts that must never stand in the log.
    pub secrets: Vec<String>,
    /// Where its output goes.
    pub log: LogSpec,
    /// How long it may take to end when the machine, not the core, tells it to.
    pub stop_grace: Duration,
    /// How it is fenced in.
    pub fence: Fence,
    /// Secrets it gets, each as a file of this name in a folder that only it sees; the folder is
    /// named by `WHARF_SECRETS_DIR`, which is set only if there are any.
    pub secret_files: BTreeMap<SecretName, Secret>,
    /// An open connection it inherits as descriptor 3.
    pub connection: Option<Arc<OwnedFd>>,
    /// An open connection that is its standard input and output. Without one its input is empty
    /// and its output goes to the log.
    pub stdio: Option<Arc<OwnedFd>>,
}

impl LaunchSpec {
    /// A launch without arguments and with an empty environment.
    pub fn new(
        launch: LaunchId,
        program: impl Into<PathBuf>,
        cwd: impl Into<PathBuf>,
        log: LogSpec,
    ) -> Self {
        Self {
            launch,
            provider: None,
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: BTreeMap::new(),
            private_dirs: Vec::new(),
            given_dirs: Vec::new(),
            starts: Vec::new(),
            secrets: Vec::new(),
            log,
            stop_grace: Duration::from_millis(limits::STOP_GRACE_MS),
            fence: Fence::default(),
            secret_files: BTreeMap::new(),
            connection: None,
            stdio: None,
        }
    }
}

// Values of the environment and secrets must not reach a log by way of a debug print.
impl fmt::Debug for LaunchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("launch", &self.launch)
            .field("provider", &self.provider)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("private_dirs", &self.private_dirs)
            .field("given_dirs", &self.given_dirs)
            .field("starts", &self.starts)
            .field("secrets", &self.secrets.len())
            .field("log", &self.log)
            .field("stop_grace", &self.stop_grace)
            .field("fence", &self.fence)
            .field("secret_files", &self.secret_files.keys().collect::<Vec<_>>())
            .field("connection", &self.connection.is_some())
            .field("stdio", &self.stdio.is_some())
            .finish()
    }
}

/// Where a launch's output goes, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogSpec {
    /// The file. When it has grown to half of [`LogSpec::bytes_max`], it makes room for a new one
    /// and is kept beside it under the same name with `.1` at the end.
    pub path: PathBuf,
    /// Longest line.
    pub line_bytes_max: usize,
    /// Most that both files may take together.
    pub bytes_max: u64,
    /// Last lines that are kept in memory.
    pub lines_kept_max: usize,
}

impl LogSpec {
    /// A log of the usual size.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            line_bytes_max: limits::LOG_LINE_BYTES_MAX,
            bytes_max: limits::LOG_BYTES_MAX,
            lines_kept_max: limits::LOG_LINES_KEPT_MAX,
        }
    }
}

/// One line of a launch's log. Secrets have been taken out of it; control characters have not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was read.
    pub at: Timestamp,
    /// Who wrote it.
    pub source: LogSource,
    /// What it says, without the line's end.
    pub text: Arc<str>,
}

/// Who wrote a line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// The program, on its standard output.
    Stdout,
    /// The program, on its standard error.
    Stderr,
    /// The launcher itself.
    Launcher,
}

impl LogSource {
    /// The word that stands in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "out",
            Self::Stderr => "err",
            Self::Launcher => "log",
        }
    }

    /// Reads back what [`LogSource::as_str`] wrote.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Stdout, Self::Stderr, Self::Launcher]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// What became of the program.
    pub how: ExitHow,
    /// The last line it wrote on its standard error, if any.
    pub last_stderr: Option<Arc<str>>,
    /// Processes of the launch that could not be killed; 0 unless the kernel holds them.
    pub survivors: u32,
}

impl Exit {
    /// Whether the program ended by itself and says that all went well.
    pub fn is_success(&self) -> bool {
        self.how == ExitHow::Code(0)
    }
}

/// `exit code 3: ValueError: no such key`, for people.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Enough of a line to recognise the trouble.
        const SHOWN_CHARS: usize = 300;
        self.how.fmt(f)?;
        match self.last_stderr.as_deref().map(str::trim) {
            None | Some("") => Ok(()),
            Some(line) => write!(f, ": {}", shown(line, SHOWN_CHARS)),
        }
    }
}

/// What became of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitHow {
    /// It ended with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It was killed because it took too much of something.
    Limit(Resource),
    /// It was killed after its supervisor had disappeared, so nobody saw its end.
    Lost,
}

impl fmt::Display for ExitHow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
            Self::Limit(Resource::Hidden) => {
                f.write_str("stopped: it hid from its limits what it uses (hidden)")
            }
            Self::Limit(resource) => write!(f, "stopped: it went over its limit of {resource}"),
            Self::Lost => f.write_str("its supervisor was killed"),
        }
    }
}

/// Names of signals that have the same number everywhere.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_like_a_sentence_and_hides_control_characters() {
        let exit =
            |how, line: Option<&str>| Exit { how, last_stderr: line.map(Into::into), survivors: 0 };
        let check = |exit: Exit, expect: &str| assert_eq!(exit.to_string(), expect);
        check(exit(ExitHow::Code(3), None), "exit code 3");
        check(exit(ExitHow::Code(3), Some("  ")), "exit code 3");
        check(exit(ExitHow::Signal(9), Some("\u{1b}[31mboom\r")), "signal 9 (KILL): [31mboom");
        check(exit(ExitHow::Signal(34), None), "signal 34");
        assert!(exit(ExitHow::Lost, Some(&"x".repeat(9_000))).to_string().len() < 400);
    }

    #[test]
    fn a_spec_shows_neither_values_of_the_environment_nor_secrets() {
        let id = LaunchId::new("l1").expect("valid");
        let mut spec = LaunchSpec::new(id, "agent", "/", LogSpec::at("/tmp/l1.log"));
        spec.env.insert("TOKEN".into(), "canary-1".into());
        spec.secrets.push("canary-2".into());
        spec.args.push("canary-3".into());
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN"), "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}
