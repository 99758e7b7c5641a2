//! One command on behalf of a provider, fenced in like the provider itself and over soon: what
//! makes its files, before anything of it runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt as _;
use wharf_domain::Provider;
use wharf_domain::permission::HostPattern;
use wharf_ports::Steps;
use wharf_ports::launcher::{Exit, Fence, LaunchSpec, Launched, LogSource, LogSpec};
use wharf_vocab::{Code, Fault, Isolation, LaunchId, ProviderId};

use crate::fence::FenceGrants;
use crate::host::random_hex;
use crate::kind::HostedKind;
use crate::launch;
use crate::places::Places;
use crate::sockets::Sockets;
use crate::tasks::blocking;

/// Lines of its log that are told when it fails.
const LINES_TOLD: usize = 40;

/// A command that is run once.
#[derive(Debug, Clone, Default)]
pub struct Errand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables besides the usual ones.
    pub env: BTreeMap<String, String>,
    /// What it may read besides the system and the provider's folder.
    pub read: Vec<PathBuf>,
    /// Folders of the home that it may read.
    pub given: Vec<PathBuf>,
    /// Other programs that it starts.
    pub starts: Vec<PathBuf>,
    /// Folders that it may write; they are made first.
    pub write: Vec<PathBuf>,
    /// Where its way out leads; the machine's own settings name these hosts.
    pub hosts: Vec<HostPattern>,
    /// Texts that must not stand in the log.
    pub secrets: Vec<String>,
    /// How long it may take.
    pub within: Duration,
    /// Where its lines are told as they come.
    pub steps: Steps,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrandEnd {
    /// What became of it; nothing if it took too long and was killed.
    pub exit: Option<Exit>,
    /// What it wrote last as errors, oldest first.
    pub errors: Vec<String>,
}

impl ErrandEnd {
    /// Whether all went well.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.exit.as_ref().is_some_and(Exit::is_success)
    }
}

/// Runs a command in the folder of a provider and waits for its end. What it writes goes to the
/// provider's log.
pub async fn run_errand(
    kind: &dyn HostedKind,
    agent: &Provider,
    errand: Errand,
) -> Result<ErrandEnd, Fault> {
    run_errand_for(kind, &agent.id, &agent.folder, errand).await
}

/// The same for a provider that is only about to be added.
pub async fn run_errand_for(
    kind: &dyn HostedKind,
    id: &ProviderId,
    folder: &str,
    errand: Errand,
) -> Result<ErrandEnd, Fault> {
    let options = kind.host().options();
    let unnamed = |_| Fault::new(Code::CoreInternal, "A launch cannot be named.");
    let launch = LaunchId::new(random_hex(16)?).map_err(unnamed)?;
    let places = Places::new(&options.folder, id, &launch, Isolation::Run);
    let mut sockets = Sockets::new(options, kind.word(), &launch);
    let log = LogSpec::at(&places.log);
    let mut spec = LaunchSpec::new(launch, errand.program, folder, log);
    spec.provider = Some(id.clone());
    spec.args = errand.args;
    spec.env = launch::environment(&places, &FenceGrants::default());
    spec.env.extend(errand.env);
    spec.secrets = errand.secrets;
    spec.stop_grace = options.stop_grace;
    spec.private_dirs = vec![places.home.clone(), places.tmp.clone()];
    spec.private_dirs.extend(errand.write);
    spec.given_dirs = errand.given;
    spec.starts = errand.starts;
    spec.fence = Fence::default();
    spec.fence.level = options.sandbox;
    spec.fence.minimum = options.sandbox_min.unwrap_or(options.sandbox);
    spec.fence.read = errand.read;
    let ground = kind.host().ground(folder);
    spec.fence.hidden = blocking(move || Ok(ground.canonical().hidden)).await?;
    let _door = if errand.hosts.is_empty() {
        None
    } else {
        let socket = sockets.folder()?.join("e");
        spec.fence.egress = Some(socket.clone());
        Some(options.egress.open_own(id.clone(), socket, errand.hosts).await?)
    };
    let launched = options.launcher.launch(spec).await?;
    let exit = tokio::time::timeout(errand.within, attended(&*launched, &errand.steps)).await.ok();
    if exit.is_none() {
        launched.kill().await;
    }
    let lines = launched.tail(LINES_TOLD).await.unwrap_or_default();
    let errors = lines.iter().filter(|line| line.source == LogSource::Stderr);
    let errors = errors.map(|line| line.text.trim().to_owned()).filter(|line| !line.is_empty());
    Ok(ErrandEnd { exit, errors: errors.collect() })
}

/// Waits for the end of a command, and tells its lines until then.
async fn attended(launched: &dyn Launched, steps: &Steps) -> Exit {
    let exited = launched.exited();
    if !steps.are_heard() {
        return exited.await;
    }
    let lines = launched.follow(LINES_TOLD).for_each(|line| {
        // What the launcher says of it is no line of the command.
        if matches!(line.source, LogSource::Stdout | LogSource::Stderr) {
            steps.say(&line.text);
        }
        std::future::ready(())
    });
    tokio::pin!(exited);
    tokio::select! {
        exit = &mut exited => exit,
        () = lines => exited.await,
    }
}
