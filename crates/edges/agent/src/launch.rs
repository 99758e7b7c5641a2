//! What a launch needs around it: folders, socket, environment, secrets, a way out, a fence.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use wharf_domain::{Agent, AgentInput, Caller};
use wharf_engine::egress::EgressDoor;
use wharf_engine::launcher::{Fence, LaunchSpec, Launched, LogSpec, Secret};
use wharf_vocab::{AgentId, Code, Digest, Fault, LaunchId, SandboxLevel, SecretName};

use crate::admit::Own;
use crate::control::{Shared, blocking};
use crate::fence::{self, Given};
use crate::live::Live;
use crate::options::{Options, Transport};
use crate::places::{self, FOLDER_NAME_CHARS, Places, short};
use crate::{files, listen, remove, throttle};

/// Longest path of a socket that every system takes.
const SOCKET_BYTES_MAX: usize = 103;

/// A process that was started, and what must stay as long as it lives.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) launched: Arc<dyn Launched>,
    /// What was approved and could not be given, one sentence each.
    pub(crate) notes: Vec<String>,
    _around: Around,
}

/// What is made for one launch alone; it goes with it.
#[derive(Debug, Default)]
struct Around {
    folder: Option<PathBuf>,
    door: Option<Arc<dyn EgressDoor>>,
    listening: Option<DropGuard>,
}

impl Drop for Around {
    fn drop(&mut self) {
        if let Some((base, name)) = self.folder.as_deref().and_then(parts) {
            // Sockets only; if they are gone already, all the better.
            let _ = remove::entry(base, name);
        }
    }
}

fn parts(path: &Path) -> Option<(&Path, &OsStr)> {
    path.parent().zip(path.file_name())
}

/// Starts a launch of an agent, if its files are still those that were approved.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    live: &Live,
    id: &AgentId,
    launch: &LaunchId,
) -> Result<Running, Fault> {
    let agent = approved(shared, id).await?;
    let (ground, permissions) = (shared.ground(&agent.folder), agent.permissions());
    let (mut given, hidden) = blocking(move || {
        let given = fence::derive(&permissions, &ground);
        Ok((given, ground.canonical().hidden))
    })
    .await?;
    if agent.approval.as_ref().is_some_and(|approval| !files::is_whole(approval)) {
        let note = "only the files that its command names are pinned: its folder is too large";
        given.notes.push(note.to_owned());
    }
    let mut around = Around::default();
    let places = live
        .settle(launch, |isolation| Places::new(&shared.options.agents_dir, id, launch, isolation));
    let entrypoint = &agent.manifest.entrypoint;
    let log = LogSpec::at(&places.log);
    let mut spec = LaunchSpec::new(launch.clone(), &entrypoint.program, &agent.folder, log);
    spec.args.clone_from(&entrypoint.args);
    spec.stop_grace = shared.options.stop_grace;
    spec.env = environment(shared, id, launch, &places, &given);
    spec.private_dirs = vec![places.home.clone(), places.tmp.clone(), places.data.clone()];
    spec.given_dirs = vec![places.given.clone()];
    spec.fence = fence(shared, &agent, &given);
    spec.fence.hidden = hidden;
    connect(shared, &agent, &mut spec, &mut around)?;
    let opened = async {
        give_secrets(shared, &given, &mut spec).await?;
        open_door(shared, &agent, &given, &mut spec, &mut around).await
    };
    let launched = match opened.await {
        Ok(()) => shared.options.launcher.launch(spec).await,
        Err(fault) => Err(fault),
    };
    match launched {
        Ok(launched) => {
            live.launched(&launched, &given.notes);
            Ok(Running { launched, notes: given.notes, _around: around })
        }
        Err(fault) => {
            shared.tokens.revoke(launch);
            Err(fault)
        }
    }
}

/// The agent, if it is approved and its files are those that were approved. Files that are not
/// are written down.
pub(crate) async fn approved(shared: &Arc<Shared>, id: &AgentId) -> Result<Agent, Fault> {
    let agent = shared.options.handle.agent(id)?;
    if !agent.is_approved() && agent.drift.is_empty() {
        let message = format!("The agent {id} is not approved.");
        return Err(Fault::new(Code::AgentNotApproved, message));
    }
    if !agent.drift.is_empty() {
        return Err(drifted(id, &agent.drift));
    }
    let look = agent.clone();
    let difference = blocking(move || Ok(files::differences(&look))).await?;
    if difference.is_empty() {
        return Ok(agent);
    }
    Err(record_drift(shared, id, difference).await)
}

/// Writes down that an agent's files are not those that were approved.
pub(crate) async fn record_drift(
    shared: &Arc<Shared>,
    id: &AgentId,
    difference: Vec<String>,
) -> Fault {
    let fault = drifted(id, &difference);
    let input = AgentInput::Drift { difference };
    if let Err(fault) = shared.options.handle.change_agent(&Caller::core(), id, input).await {
        tracing::warn!(agent = %id, code = %fault.code, "an agent's drift was not recorded");
    }
    fault
}

fn drifted(id: &AgentId, difference: &[String]) -> Fault {
    let message = format!(
        "The files of {id} are not the ones that were approved: {}. Look at it and approve it \
         again.",
        difference.join("; ")
    );
    Fault::new(Code::AgentDrifted, message)
}

/// Exactly this, and nothing of the core's own environment but what was approved by name.
fn environment(
    shared: &Shared,
    id: &AgentId,
    launch: &LaunchId,
    places: &Places,
    given: &Given,
) -> BTreeMap<String, String> {
    let interval = shared.options.limits.heartbeat_interval_ms.to_string();
    let zone = std::env::var("TZ").unwrap_or_else(|_| "UTC".to_owned());
    let fixed = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOME", places.home.display().to_string()),
        ("TMPDIR", places.tmp.display().to_string()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", zone),
        ("OPENSENTIENCE_AGENT_ID", id.to_string()),
        ("OPENSENTIENCE_RUN_ID", launch.to_string()),
        ("OPENSENTIENCE_PROTOCOL_VERSIONS", "1".to_owned()),
        ("OPENSENTIENCE_HEARTBEAT_INTERVAL_MS", interval),
        ("OPENSENTIENCE_HOME", places.data.display().to_string()),
    ];
    let approved = given.env.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        (!name.starts_with("OPENSENTIENCE_")).then(|| (name.clone(), value))
    });
    // What is fixed comes last, so that nothing approved takes its place.
    approved.chain(fixed.map(|(name, value)| (name.to_owned(), value))).collect()
}

fn fence(shared: &Shared, agent: &Agent, given: &Given) -> Fence {
    let terms = agent.approval.as_ref().map(|approval| &approval.terms);
    let level = terms.map_or(SandboxLevel::Standard, |terms| terms.sandbox);
    let mut fence = Fence::default();
    fence.level = level;
    fence.minimum = shared.options.sandbox_min.unwrap_or(level);
    fence.read.clone_from(&given.read);
    fence.write.clone_from(&given.write);
    fence.usage = throttle::limits(agent, &shared.options.agent_limits).usage;
    fence
}

/// Gives the launch its way to the core: an open connection, a socket of its own, or the core's
/// loopback address.
fn connect(
    shared: &Arc<Shared>,
    agent: &Agent,
    spec: &mut LaunchSpec,
    around: &mut Around,
) -> Result<(), Fault> {
    let own = |inherited| Own { agent: agent.id.clone(), launch: spec.launch.clone(), inherited };
    if agent.manifest.inherits_connection {
        let (ours, theirs) = pair().map_err(|error| unusable(&error))?;
        listen::serve_inherited(shared, ours, own(true));
        spec.connection = Some(Arc::new(theirs));
        spec.env.insert("OPENSENTIENCE_SOCKET".to_owned(), "fd:3".to_owned());
        return Ok(());
    }
    let token = shared.tokens.issue(&agent.id, &spec.launch, shared.options.token_life)?;
    let address = match &shared.options.transport {
        Transport::Tcp(_) => {
            let port = shared.address.rsplit(':').next().and_then(|port| port.parse().ok());
            spec.fence.tcp_port = port;
            shared.address.clone()
        }
        Transport::Unix(_) => {
            let path = around.folder(shared, &spec.launch)?.join("s");
            let listener = listen::bind_unix(&path).map_err(|error| unusable(&error))?;
            let over = CancellationToken::new();
            around.listening = Some(over.clone().drop_guard());
            tokio::spawn(listen::run_own(Arc::clone(shared), listener, own(false), over));
            spec.fence.sockets.push(path.clone());
            path.display().to_string()
        }
    };
    spec.env.insert("OPENSENTIENCE_SOCKET".to_owned(), address);
    spec.env.insert("OPENSENTIENCE_SESSION_TOKEN".to_owned(), token.clone());
    spec.secrets.push(token);
    Ok(())
}

fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// A secret that an agent is to get; one that is not there is named.
pub(crate) async fn secret(shared: &Shared, name: &SecretName) -> Result<Secret, Fault> {
    shared.options.vault.get(name.clone()).await.map_err(|fault| {
        if fault.is(Code::SecretNotFound) {
            let message = format!("The secret {name}, which the agent uses, is not set.");
            return Fault::new(Code::SecretNotFound, message).with("secret", name.as_str());
        }
        fault
    })
}

/// Takes approved secrets out of the vault. One that is not there fails the start.
async fn give_secrets(shared: &Shared, given: &Given, spec: &mut LaunchSpec) -> Result<(), Fault> {
    for name in &given.secrets {
        let secret = secret(shared, name).await?;
        // Each line of it, since logs are written line by line.
        if let Ok(text) = std::str::from_utf8(secret.expose()) {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            spec.secrets.extend(lines.map(str::to_owned));
        }
        spec.secret_files.insert(name.clone(), secret);
    }
    Ok(())
}

/// Opens the way out to approved hosts, which is there as long as the launch.
async fn open_door(
    shared: &Shared,
    agent: &Agent,
    given: &Given,
    spec: &mut LaunchSpec,
    around: &mut Around,
) -> Result<(), Fault> {
    if given.hosts.is_empty() {
        return Ok(());
    }
    let socket = around.folder(shared, &spec.launch)?.join("e");
    let door = shared.options.egress.open(agent.id.clone(), socket.clone(), given.hosts.clone());
    around.door = Some(door.await?);
    spec.fence.egress = Some(socket);
    Ok(())
}

impl Around {
    /// The folder for the launch's sockets; made when it is first needed.
    fn folder(&mut self, shared: &Shared, launch: &LaunchId) -> Result<PathBuf, Fault> {
        if let Some(folder) = &self.folder {
            return Ok(folder.clone());
        }
        let base = sockets_dir(&shared.options);
        let folder = base.join(short(launch));
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&base);
        made.and_then(|()| check_ours(&base))
            .and_then(|()| std::fs::DirBuilder::new().mode(0o700).create(&folder))
            .map_err(|error| unusable(&error))?;
        self.folder = Some(folder.clone());
        Ok(folder)
    }
}

/// Removes what launches of an earlier core have left that was killed. Only a core that has the
/// home for itself comes here.
pub(crate) fn sweep(options: &Options) {
    let sockets = sockets_dir(options);
    let is_left = |name: &str| {
        let is_short = name.len() == FOLDER_NAME_CHARS;
        is_short && name.bytes().all(|b| b.is_ascii_hexdigit()) || remove::is_on_its_way(name)
    };
    let Ok(entries) = std::fs::read_dir(&sockets) else { return places::sweep(options) };
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name().to_str().is_some_and(is_left) {
            remove::later(&entry.path());
        }
    }
    places::sweep(options);
}

/// A folder that others can change is no place for sockets.
fn check_ours(folder: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(folder)?;
    let ours = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && ours && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("{} is not a folder of ours alone", folder.display())))
}

/// Where sockets of launches lie: beside the core's own, or where paths are short. It is the
/// real path, since a launcher follows no link.
fn sockets_dir(options: &Options) -> PathBuf {
    let beside = match &options.transport {
        Transport::Unix(path) => path.parent().map(fence::real),
        Transport::Tcp(_) => options.agents_dir.parent().map(|home| fence::real(&home.join("run"))),
    };
    let name_bytes = FOLDER_NAME_CHARS + "//s".len();
    beside.filter(|dir| dir.as_os_str().len() + name_bytes <= SOCKET_BYTES_MAX).unwrap_or_else(
        || {
            let digest = Digest::of(&[options.agents_dir.as_os_str().as_encoded_bytes()]);
            let user = rustix::process::getuid().as_raw();
            let name = format!("wharf-{user}-{}", &digest.as_str()[..16]);
            fence::real(&std::env::temp_dir()).join(name)
        },
    )
}

fn unusable(error: &io::Error) -> Fault {
    let message = format!("The agent cannot be given a way to the core: {error}.");
    Fault::new(Code::AgentStartFailed, message)
}
