//! Launching: from a spec to a running program with a handle.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use wharf_ports::launcher::{Achieved, LaunchSpec, Launched, Launcher, LogLine};
use wharf_vocab::limits::{LAUNCH_ORDER_BYTES_MAX, LAUNCH_START_MS};
use wharf_vocab::{Code, Fault, SandboxLevel};

use crate::dirs::make_private;
use crate::error::Error;
use crate::log::{LogWriter, Redactor, read_tail};
use crate::process::LaunchedProcess;
use crate::shim;
use crate::shim::message::{Order, Report, encode};
use crate::spawner::Spawner;
use crate::supervise::Supervisor;

/// Commands that may wait for a supervisor.
const COMMANDS_WAITING_MAX: usize = 8;

/// How a launcher is set up.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The binary that becomes a shim when its first argument is [`shim::WORD`]; this very
    /// program if none is named.
    pub shim_program: Option<PathBuf>,
}

/// Starts programs as child processes of this one, each under a shim. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ProcessLauncher {
    spawner: Arc<Spawner>,
}

impl ProcessLauncher {
    /// Starts the launcher's thread. Must be called inside a Tokio runtime, which also watches
    /// over the launches: when it ends, they are killed.
    pub fn start(options: Options) -> io::Result<Self> {
        let program = match options.shim_program {
            Some(program) => program,
            None => shim::own_program()?,
        };
        Ok(Self { spawner: Arc::new(Spawner::start(program)?) })
    }
}

impl Launcher for ProcessLauncher {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>> {
        async move {
            let launch = spec.launch.clone();
            // In a task of its own, so that a caller who gives up leaves nothing half done.
            let launching = tokio::spawn(launch_process(Arc::clone(&self.spawner), spec));
            let process = launching.await.unwrap_or(Err(Error::Stopping)).map_err(|error| {
                tracing::warn!(%launch, %error, "a launch failed");
                error.into_fault(Some(&launch))
            })?;
            Ok(Arc::new(process) as Arc<dyn Launched>)
        }
        .boxed()
    }

    fn probe(&self) -> BoxFuture<'_, Achieved> {
        std::future::ready(basic()).boxed()
    }

    fn tail(&self, log: &Path, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        read_log(log.to_owned(), lines).boxed()
    }
}

fn basic() -> Achieved {
    Achieved { level: SandboxLevel::Basic, notes: Vec::new() }
}

/// Reads the end of a log from disk.
pub(crate) async fn read_log(path: PathBuf, lines: usize) -> Result<Vec<LogLine>, Fault> {
    let reading = spawn_blocking(move || {
        read_tail(&path, lines).map_err(|source| Error::LogRead { path, source }.into_fault(None))
    });
    reading.await.unwrap_or_else(|_| {
        Err(Fault::new(Code::CoreStopping, "The core is stopping and reads no log any more."))
    })
}

async fn launch_process(spawner: Arc<Spawner>, spec: LaunchSpec) -> Result<LaunchedProcess, Error> {
    let order = encode_order(&spec)?;
    let (spec, writer) = spawn_blocking(move || prepare(&spec).map(|writer| (spec, writer)))
        .await
        .map_err(|_| Error::Stopping)??;
    let shim = spawner.spawn().await?;
    let mut supervisor = Supervisor::new(spec.launch.clone(), shim, writer, spawner);
    let limit = Duration::from_millis(LAUNCH_START_MS);
    let error = match timeout(limit, supervisor.start(&order)).await {
        Ok(Some(Report::Started { pid })) => {
            tracing::info!(launch = %spec.launch, pid, "a launch started");
            return Ok(supervised(supervisor, pid, spec.log.path));
        }
        Ok(Some(Report::Failed(failure))) => {
            Error::Start { program: spec.program, cwd: spec.cwd, failure }
        }
        Ok(_) => Error::ShimLost,
        Err(_) => Error::Slow { program: spec.program },
    };
    supervisor.abandon(format!("[not started] {error}")).await;
    Err(error)
}

/// Hands a launch that runs to its supervisor's task.
fn supervised(supervisor: Supervisor, pid: i32, log_path: PathBuf) -> LaunchedProcess {
    let (commands, waiting) = mpsc::channel(COMMANDS_WAITING_MAX);
    let (exited, exit) = watch::channel(None);
    let process = LaunchedProcess {
        id: supervisor.id().clone(),
        pid,
        fence: basic(),
        shim_pid: supervisor.shim_pid(),
        commands,
        exit,
        book: Arc::clone(supervisor.book()),
        log_path,
    };
    tokio::spawn(supervisor.run(waiting, exited));
    process
}

/// The order as the shim reads it.
fn encode_order(spec: &LaunchSpec) -> Result<Vec<u8>, Error> {
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::Environment { name: name.clone() });
        }
    }
    let order = Order {
        program: spec.program.clone(),
        args: spec.args.clone(),
        cwd: spec.cwd.clone(),
        env: spec.env.clone(),
        grace_ms: u64::try_from(spec.stop_grace.as_millis()).unwrap_or(u64::MAX),
    };
    let order = encode(&order).map_err(|_| Error::Order)?;
    if order.len() > LAUNCH_ORDER_BYTES_MAX { Err(Error::Order) } else { Ok(order) }
}

/// Makes the launch's directories and opens its log; this waits for the disk.
fn prepare(spec: &LaunchSpec) -> Result<LogWriter, Error> {
    for path in &spec.private_dirs {
        make_private(path).map_err(|source| Error::PrivateDir { path: path.clone(), source })?;
    }
    LogWriter::open(&spec.log, Redactor::new(&spec.secrets))
        .map_err(|source| Error::Log { path: spec.log.path.clone(), source })
}
