//! The agent edge as a core sets it up: launcher, socket, folders.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wharf_agent::{AgentEdge, AgentEdgeOptions, CoreLimits, Transport};
use wharf_egress::EgressProxy;
use wharf_engine::Handle;
use wharf_launcher::ProcessLauncher;
use wharf_ports::launcher::{Launcher, RestartPolicy};
use wharf_ports::vault::Vault;
use wharf_vocab::{Code, Digest, Fault, limits};

use crate::settings::Settings;
use crate::{Home, files};

/// A socket's path may have 107 bytes.
const SOCKET_PATH_BYTES_MAX: usize = 100;
/// How long an agent may take to connect, and its token is good.
const CONNECT_WITHIN: Duration = Duration::from_secs(60);

pub(crate) async fn start(
    home: &Home,
    settings: &Settings,
    handle: &Handle,
    around: Surroundings,
) -> Result<AgentEdge, Fault> {
    let storage_origin = Some(around.origin.clone());
    let mut hosting = hosting(home, settings, handle, "agents", around)?;
    hosting.restart = settings.agent_rules.all.restart.unwrap_or_default();
    let mut session_limits = CoreLimits::default();
    if let Some(interval) = settings.agents_heartbeat_ms {
        session_limits.heartbeat_interval_ms = interval;
    }
    AgentEdge::start(AgentEdgeOptions {
        transport: transport(&hosting.hidden[0], settings.agents_tcp),
        hosting,
        instance: format!("core-{}", std::process::id()),
        limits: session_limits,
        rule: settings.agent_rules.all,
        rules: settings.agent_rules.only.clone(),
        storage_origin,
    })
    .await
}

/// What agents and tool servers share.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) vault: Arc<dyn Vault>,
    /// Where addresses of files lead.
    pub(crate) origin: String,
}

/// How providers of one kind are launched, with this folder in the home for their own.
pub(crate) fn hosting(
    home: &Home,
    settings: &Settings,
    handle: &Handle,
    folder: &str,
    around: Surroundings,
) -> Result<wharf_hosting::HostingOptions, Fault> {
    let unwritable = |error: std::io::Error| home.unwritable(&error);
    files::make_private_folder(&home.path().join(folder)).map_err(unwritable)?;
    // A fence follows no links, so processes are told of places as they are without any.
    let real_home = home.path().canonicalize().map_err(unwritable)?;
    Ok(wharf_hosting::HostingOptions {
        handle: handle.clone(),
        launcher: around.launcher,
        folder: real_home.join(folder),
        sockets_dir: Some(sockets_dir(&real_home, folder)),
        restart: RestartPolicy::default(),
        stop_grace: Duration::from_millis(limits::STOP_GRACE_MS),
        connect_within: CONNECT_WITHIN,
        vault: around.vault,
        egress: Arc::new(EgressProxy::with_storage(handle.clone(), &around.origin)),
        user_home: user_home(),
        hidden: vec![real_home],
        sandbox: settings.sandbox,
        sandbox_min: settings.sandbox_min,
        limits: settings.agent_limits.clone(),
    })
}

/// Where sockets of one kind of providers lie. Each kind has its own place, because it removes what
/// an earlier core left there while another kind may be launching already; its name is a letter,
/// because paths of sockets are short.
fn sockets_dir(home: &Path, folder: &str) -> PathBuf {
    home.join("run").join(folder.chars().take(1).collect::<String>())
}

/// Who starts the processes of this core.
pub(crate) fn launcher(shim: Option<PathBuf>) -> Result<Arc<dyn Launcher>, Fault> {
    let options = wharf_launcher::LauncherOptions { shim_program: shim };
    let launcher = ProcessLauncher::start(options).map_err(|error| {
        let message = format!("Processes cannot be launched: {error}.");
        Fault::new(Code::CoreInternal, message)
    })?;
    Ok(Arc::new(launcher))
}

/// What `~` stands for in permissions.
fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The socket lies in the home, unless the home's path is too long for a socket.
fn transport(home: &Path, tcp: Option<SocketAddr>) -> Transport {
    if let Some(addr) = tcp {
        return Transport::Tcp(addr);
    }
    let inside = home.join("run").join("agents.sock");
    if inside.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return Transport::Unix(inside);
    }
    let digest = Digest::of(&[home.as_os_str().as_bytes()]);
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("wharf-{user}-{}", &digest.as_str()[..16]));
    Transport::Unix(folder.join("agents.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_home_gets_a_short_socket() {
        let short = transport(Path::new("/home/me/wharf"), None);
        assert_eq!(short, Transport::Unix("/home/me/wharf/run/agents.sock".into()));
        let deep = PathBuf::from("/x".repeat(100));
        let Transport::Unix(path) = transport(&deep, None) else { panic!("not a path") };
        assert!(path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX, "{}", path.display());
        assert_ne!(transport(&deep.join("y"), None), Transport::Unix(path));
    }

    #[test]
    fn no_kind_of_providers_has_its_sockets_where_another_sweeps() {
        let kinds = ["agents", "tools", "mcp"].map(|kind| sockets_dir(Path::new("/h"), kind));
        for (at, one) in kinds.iter().enumerate() {
            assert!(!kinds[..at].contains(one), "{}", one.display());
        }
    }
}
