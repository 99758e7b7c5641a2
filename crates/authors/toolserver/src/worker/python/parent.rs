//! The parent of workers: one interpreter that has imported the handler; each run is a fork of it.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::AsyncRead;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::time::timeout;
use wharf_wire::run_v1::code;

use super::super::lines::{LineReader, NextLine};
use super::super::log_traceback;
use super::super::message::ParentGreeting;
use super::super::settings::WorkerSettings;
use super::super::ways::{ServerEnds, send_with, socket, ways};
use crate::Failure;

/// What the interpreter does first: it takes modules of ours from the private folder only, and
/// writes no compiled ones, neither there nor beside a handler.
const BOOT: &str = "import sys; sys.path[0] = sys.argv[1]; sys.dont_write_bytecode = True; \
                    from wharf_sdk._worker.parent import main; main(*sys.argv[2:])";
/// One order to fork.
const FORK: &[u8] = b"r";
/// The longest greeting.
const GREETING_BYTES_MAX: usize = 1 << 20;
/// The longest line of the parent that is kept.
const PRINTED_BYTES_MAX: usize = 8 << 10;

/// How interpreters are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Import once, fork for each run.
    Warm,
    /// Import in each run.
    Cold,
    /// Import and end.
    Check,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Check => "check",
        }
    }
}

/// All that is needed to start an interpreter.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) folder: TempDir,
    pub(super) file: PathBuf,
    pub(super) python: PathBuf,
    pub(super) mode: Mode,
    pub(super) settings: WorkerSettings,
}

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParentError {
    #[error("failed to start: {0}")]
    Start(io::Error),
    #[error("the interpreter {0} cannot be started: {1}")]
    Interpreter(PathBuf, io::Error),
    #[error("{message}")]
    Handler { message: String, detail: String },
    #[error("the interpreter ended before it was ready")]
    Lost,
    #[error("the handler was not ready within {0} seconds")]
    Slow(u64),
}

impl ParentError {
    /// Why a server cannot start, for whoever starts it.
    pub(super) fn failure(self) -> Failure {
        let message = match self {
            Self::Handler { message, detail } => {
                log_traceback(&detail);
                return Failure::new(code::HANDLER, message);
            }
            Self::Interpreter(python, error) => {
                let name = python.display();
                format!("The Python interpreter `{name}` cannot be started: {}.", error.kind())
            }
            Self::Slow(seconds) => format!("The handler was not ready within {seconds} seconds."),
            Self::Lost => "The interpreter ended while it imported the handler.".to_owned(),
            Self::Start(_) => "The interpreter could not be started.".to_owned(),
        };
        Failure::new(code::WORKER, message)
    }
}

/// The parent of workers, which is started when it is first needed, and again when it has died. It
/// ends with this.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) recipe: Recipe,
    running: Mutex<Option<UnixStream>>,
}

impl Parent {
    pub(super) fn new(recipe: Recipe) -> Self {
        Self { recipe, running: Mutex::default() }
    }

    /// Sees to it that the handler can be imported and that forks are ready to be made.
    pub(super) async fn prepare(&self) -> Result<(), ParentError> {
        // One that imports in each run would notice only then.
        if self.recipe.mode == Mode::Cold {
            start(&self.recipe, Mode::Check).await?;
        }
        self.ready().await.map(drop)
    }

    /// Forks for a run, and gives the server's ends of it.
    pub(super) async fn fork(&self) -> Result<ServerEnds, ParentError> {
        let (ours, theirs) = ways().map_err(ParentError::Start)?;
        let passed = [
            theirs.control.as_fd(),
            theirs.channel.as_fd(),
            theirs.out.as_fd(),
            theirs.err.as_fd(),
        ];
        let parent = self.ready().await?;
        send_with(&parent, FORK, &passed).await.map_err(ParentError::Start)?;
        Ok(ours)
    }

    async fn ready(&self) -> Result<MappedMutexGuard<'_, UnixStream>, ParentError> {
        let mut running = self.running.lock().await;
        if running.as_ref().is_some_and(is_gone) {
            tracing::warn!("the parent of workers died and is started again");
            *running = None;
        }
        if running.is_none() {
            *running = Some(start(&self.recipe, self.recipe.mode).await?);
        }
        MutexGuard::try_map(running, Option::as_mut).map_err(|_| ParentError::Lost)
    }
}

/// Whether the other end is closed. The parent never says anything after its greeting.
fn is_gone(parent: &UnixStream) -> bool {
    let mut nothing = [0];
    !matches!(parent.try_read(&mut nothing), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Starts an interpreter and waits until it is ready.
async fn start(recipe: &Recipe, mode: Mode) -> Result<UnixStream, ParentError> {
    let (ours, theirs) = socket().map_err(ParentError::Start)?;
    let mut child = Command::new(&recipe.python)
        .args(["-E", "-c", BOOT])
        .arg(recipe.folder.path().join("runtime"))
        .arg(mode.word())
        .arg(&recipe.file)
        .env_clear()
        .envs(recipe.settings.variables())
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| ParentError::Interpreter(recipe.python.clone(), error))?;
    if let Some(out) = child.stdout.take() {
        tokio::spawn(log(out));
    }
    if let Some(err) = child.stderr.take() {
        tokio::spawn(log(err));
    }
    let limit = recipe.settings.start_timeout;
    let (socket, greeting) =
        timeout(limit, greeted(ours)).await.map_err(|_| ParentError::Slow(limit.as_secs()))?;
    match greeting.ok_or(ParentError::Lost)? {
        ParentGreeting::Failed { message, detail } => Err(ParentError::Handler { message, detail }),
        ParentGreeting::Ready { python, threads } => {
            tracing::info!(python, mode = mode.word(), "a handler in Python is ready");
            if threads > 0 && mode == Mode::Warm {
                tracing::warn!(
                    threads,
                    "the handler file starts threads when it is imported; they do not exist in \
                     workers, so serve it with --cold"
                );
            }
            Ok(socket)
        }
    }
}

/// The first line of the parent.
async fn greeted(socket: UnixStream) -> (UnixStream, Option<ParentGreeting>) {
    let mut lines = LineReader::new(socket, GREETING_BYTES_MAX);
    let greeting = match lines.next().await {
        NextLine::Whole(line) => serde_json::from_slice(&line).ok(),
        NextLine::Cut(_) | NextLine::End => None,
    };
    (lines.into_inner(), greeting)
}

/// What is printed outside of runs, such as during imports, goes to the server's log.
async fn log(printed: impl AsyncRead + Unpin) {
    let mut lines = LineReader::new(printed, PRINTED_BYTES_MAX);
    loop {
        match lines.next().await {
            NextLine::Whole(line) | NextLine::Cut(line) => {
                tracing::info!(text = %String::from_utf8_lossy(&line), "the handler file printed");
            }
            NextLine::End => return,
        }
    }
}
