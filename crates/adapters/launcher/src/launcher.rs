//! Launching: from a spec to a running program with a handle.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::field::display;
use wharf_domain::provider::Usage;
use wharf_ports::launcher::{FenceReport, LaunchSpec, Launched, Launcher, LogLine};
use wharf_vocab::limits::LAUNCH_START_MS;
use wharf_vocab::{Fault, SandboxLevel};

use crate::error::Error;
use crate::fence::Ability;
use crate::group::Groups;
use crate::inbound::InboundSocketFile;
use crate::log::{LogWriter, Redactor};
use crate::process::{LaunchedProcess, read_log};
use crate::secrets::{SecretFiles, make_private};
use crate::shim;
use crate::shim::handover::Handover;
use crate::shim::message::{FenceOrder, InboundOrder, Layers, Order, ShimReport};
use crate::spawner::{ShimKind, Spawner};
use crate::supervise::{Leftovers, Supervisor};

/// Commands that may wait for a supervisor.
const COMMANDS_WAITING_MAX: usize = 8;

/// Threads of the process that stands before a program in namespaces, at most.
const OWN_THREADS: u64 = 6;

/// Paths that are named one by one when they are not shown.
const NOTES_MAX: usize = 20;

/// How a launcher is set up.
#[derive(Debug, Clone, Default)]
pub struct LauncherOptions {
    /// The binary that becomes a shim when its first argument is [`shim::WORD`]; this very
    /// program if none is named.
    pub shim_program: Option<PathBuf>,
}

/// What a kernel may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primitive {
    /// Namespaces of users, processes, mounts and networks.
    Namespaces,
    /// Landlock.
    Landlock,
    /// Filters of system calls.
    Seccomp,
    /// Control groups that may be used.
    Groups,
}

/// Starts programs as child processes of this one, each under a shim. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ProcessLauncher {
    spawner: Arc<Spawner>,
    /// What the machine can do, once somebody wanted to know.
    ability: Arc<OnceCell<Ability>>,
    /// Where control groups can be made, if anywhere.
    groups: Arc<OnceLock<Option<Groups>>>,
    missing: Layers,
}

impl ProcessLauncher {
    /// Starts the launcher's thread. Must be called inside a Tokio runtime, which also watches
    /// over the launches: when it ends, they are killed.
    pub fn start(options: LauncherOptions) -> io::Result<Self> {
        let program = match options.shim_program {
            Some(program) => program,
            None => shim::own_program()?,
        };
        let spawner = Arc::new(Spawner::start(program)?);
        Ok(Self { spawner, ability: Arc::default(), groups: Arc::default(), missing: Layers::NONE })
    }

    /// The same launcher as it would be on a kernel that lacks something, for tests.
    #[must_use]
    pub fn without(mut self, primitive: Primitive) -> Self {
        self.ability = Arc::default();
        match primitive {
            Primitive::Namespaces => self.missing.namespaces = true,
            Primitive::Landlock => self.missing.landlock = true,
            Primitive::Seccomp => self.missing.seccomp = true,
            Primitive::Groups => self.groups = Arc::new(OnceLock::from(None)),
        }
        self
    }

    /// The same launcher with control groups in this folder, if they can be made there.
    #[must_use]
    pub fn with_groups_in(mut self, folder: &Path) -> Self {
        self.groups = Arc::new(OnceLock::from(Groups::at(folder)));
        self
    }

    async fn ability(&self) -> &Ability {
        self.ability.get_or_init(|| Ability::find_out(&self.spawner, self.missing)).await
    }

    fn groups(&self) -> Option<&Groups> {
        self.groups.get_or_init(Groups::find).as_ref()
    }

    /// What is ordered for a fence. Only one that goes beyond the basic needs to know the machine.
    async fn fence(&self, spec: &LaunchSpec) -> Result<(FenceReport, FenceOrder), Error> {
        let groups = self.groups().filter(|_| spec.fence.usage != Usage::default());
        if spec.fence.level <= SandboxLevel::Basic {
            return Ability::unknown().order(&spec.fence, groups);
        }
        self.ability().await.order(&spec.fence, groups)
    }
}

impl Launcher for ProcessLauncher {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>> {
        async move {
            let (launch, provider) = (spec.launch.clone(), spec.provider.clone());
            // In a task of its own, so that a caller who gives up leaves nothing half done.
            let launching = tokio::spawn(launch_process(self.clone(), spec));
            let process = launching.await.unwrap_or(Err(Error::Stopping)).map_err(|error| {
                let provider = provider.map(display);
                tracing::warn!(provider, %launch, %error, "a launch failed");
                error.into_fault(Some(&launch))
            })?;
            Ok(Arc::new(process) as Arc<dyn Launched>)
        }
        .boxed()
    }

    fn probe(&self) -> BoxFuture<'_, FenceReport> {
        async move { self.ability().await.achieved(self.groups()) }.boxed()
    }

    fn tail(&self, log: &Path, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        read_log(log.to_owned(), lines).boxed()
    }
}

async fn launch_process(
    launcher: ProcessLauncher,
    spec: LaunchSpec,
) -> Result<LaunchedProcess, Error> {
    let (mut achieved, fence) = launcher.fence(&spec).await?;
    let (spawner, kind) = (Arc::clone(&launcher.spawner), ShimKind::of(fence.layers));
    let ready = spawn_blocking(move || prepare(spec, fence, launcher.groups()));
    let ready = ready.await.map_err(|_| Error::Stopping)??;
    let PreparedLaunch { spec, handover, writer, leftovers, notes } = ready;
    achieved.notes.extend(notes);
    let shim = spawner.spawn(kind, handover).await?;
    let whose = (spec.launch.clone(), spec.provider.clone());
    let mut supervisor = Supervisor::new(whose, shim, writer, leftovers, Arc::clone(&spawner));
    let limit = Duration::from_millis(LAUNCH_START_MS);
    let error = match timeout(limit, supervisor.started()).await {
        Ok(Some(ShimReport::Started { pid })) => {
            spawner.settled(kind);
            let provider = spec.provider.as_ref().map(display);
            tracing::debug!(provider, launch = %spec.launch, pid, level = %achieved.level, "a launch started");
            return Ok(supervised(supervisor, pid, achieved, spec.log.path));
        }
        Ok(Some(ShimReport::Failed(failure))) => {
            Error::Start { program: spec.program, cwd: spec.cwd, failure }
        }
        Ok(_) => Error::ShimLost,
        Err(_) => Error::Slow { program: spec.program },
    };
    supervisor.abandon(format!("[not started] {error}")).await;
    Err(error)
}

/// Hands a launch that runs to its supervisor's task.
fn supervised(
    supervisor: Supervisor,
    pid: i32,
    fence: FenceReport,
    log_path: PathBuf,
) -> LaunchedProcess {
    let (commands, waiting) = mpsc::channel(COMMANDS_WAITING_MAX);
    let (exited, exit) = watch::channel(None);
    let process = LaunchedProcess {
        id: supervisor.id.clone(),
        pid,
        fence,
        shim_pid: supervisor.shim_pid,
        commands,
        exit,
        book: Arc::clone(&supervisor.book),
        log_path,
    };
    tokio::spawn(supervisor.run(waiting, exited));
    process
}

/// Everything a launch needs before there is a process.
struct PreparedLaunch {
    spec: LaunchSpec,
    handover: Handover,
    writer: LogWriter,
    leftovers: Leftovers,
    /// What is not shown although it was granted, one sentence each.
    notes: Vec<String>,
}

/// Makes the launch's directories, opens its log and seals its order; this waits for the disk.
fn prepare(
    mut spec: LaunchSpec,
    mut fence: FenceOrder,
    groups: Option<&Groups>,
) -> Result<PreparedLaunch, Error> {
    check(&spec, &fence)?;
    for path in spec.private_dirs.iter().chain(&spec.given_dirs).chain(&fence.artifacts) {
        make_private(path).map_err(|source| Error::PrivateDir { path: path.clone(), source })?;
    }
    let notes = check_ways(&spec, &fence)?;
    let writer = LogWriter::open(&spec.log, Redactor::new(&spec.secrets))
        .map_err(|source| Error::Log { path: spec.log.path.clone(), source })?;
    let by_files = !fence.layers.namespaces && !spec.secret_files.is_empty();
    let log_dir = spec.log.path.parent().unwrap_or(Path::new("."));
    let secrets = by_files.then(|| SecretFiles::write(&spec.secret_files, log_dir));
    let secrets = secrets.transpose().map_err(Error::Secrets)?;
    let ours = if fence.layers.namespaces { OWN_THREADS } else { 0 };
    let group = groups
        .filter(|_| fence.usage != Usage::default())
        .map(|groups| groups.make(&fence.usage, ours))
        .transpose()
        .map_err(Error::Group)?;
    fence.group = group.as_ref().map(|group| group.folder().to_owned());
    let (door, way_in) = fence.inbound.as_ref().map(open_door).transpose()?.unzip();
    let mut handover = seal(&spec, fence, secrets.as_ref())?;
    if let Some(connection) = spec.connection.take() {
        handover.connection = Some(connection.try_clone().map_err(Error::Shim)?);
    }
    if let Some(stdio) = spec.stdio.take() {
        handover.stdio = Some(stdio.try_clone().map_err(Error::Shim)?);
    }
    handover.way_in = way_in;
    let leftovers = (secrets, group, door);
    Ok(PreparedLaunch { spec, handover, writer, leftovers, notes })
}

fn open_door(inbound: &InboundOrder) -> Result<(InboundSocketFile, OwnedFd), Error> {
    let path = &inbound.socket;
    InboundSocketFile::open(path).map_err(|source| Error::Inbound { path: path.clone(), source })
}

/// Refuses what no system can start, and what would open a fence to everything.
fn check(spec: &LaunchSpec, fence: &FenceOrder) -> Result<(), Error> {
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::Environment { name: name.clone() });
        }
    }
    if fence.layers == Layers::NONE {
        return Ok(());
    }
    let opened =
        [&spec.cwd].into_iter().chain(&fence.read).chain(&fence.write).chain(&fence.artifacts);
    for path in opened.chain(&spec.private_dirs).chain(&spec.given_dirs) {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if real == Path::new("/") || real.starts_with("/proc") || !path.is_absolute() {
            return Err(Error::Path { path: path.clone() });
        }
    }
    Ok(())
}

/// Refuses links on the way to what the program cannot do without, and says what it is not shown
/// of the rest. Nothing rests on this: the shim looks again when it opens them.
fn check_ways(spec: &LaunchSpec, fence: &FenceOrder) -> Result<Vec<String>, Error> {
    if fence.layers == Layers::NONE {
        return Ok(Vec::new());
    }
    let is_linked = |path: &Path| path.canonicalize().is_ok_and(|real| real != path);
    let own = [&spec.cwd].into_iter().chain(&spec.private_dirs).chain(&spec.given_dirs);
    let own = own.chain(&fence.sockets).chain(&fence.egress).chain(&fence.artifacts);
    if let Some(path) = own.into_iter().find(|path| is_linked(path)) {
        return Err(Error::Linked { path: path.clone() });
    }
    let is_hidden = |path: &Path| {
        fence.hidden.iter().any(|hidden| path.starts_with(hidden) || hidden.starts_with(path))
    };
    let granted = fence.read.iter().chain(&fence.write).filter_map(|path| {
        let why = match path {
            path if is_hidden(path) => "no program may see it",
            path if is_linked(path) => "a link lies on its way",
            _ => return None,
        };
        Some(format!("{} is not shown, because {why}.", path.display()))
    });
    Ok(granted.take(NOTES_MAX).collect())
}

/// The order as the shim reads it.
fn seal(
    spec: &LaunchSpec,
    fence: FenceOrder,
    secrets: Option<&SecretFiles>,
) -> Result<Handover, Error> {
    let mut order = Order {
        program: spec.program.clone(),
        args: spec.args.clone(),
        cwd: spec.cwd.clone(),
        env: spec.env.clone(),
        grace_ms: u64::try_from(spec.stop_grace.as_millis()).unwrap_or(u64::MAX),
        private_dirs: spec.private_dirs.clone(),
        given_dirs: spec.given_dirs.clone(),
        starts: spec.starts.clone(),
        secrets: [].into(),
        secrets_dir: secrets.map(|secrets| secrets.folder().to_owned()),
        fence,
    };
    if secrets.is_none() {
        let bytes = spec.secret_files.iter();
        let bytes = bytes.map(|(name, secret)| (name.to_string(), secret.expose().to_vec()));
        order.secrets = bytes.collect();
    }
    Handover::seal(&order).map_err(|error| match error.raw_os_error() {
        Some(_) => Error::Shim(error),
        None => Error::Order,
    })
}
