//! The way of a launch to the core: an open connection, a socket of its own, or the core's
//! loopback address.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use wharf_domain::{Provider, ProviderKind};
use wharf_hosting::{LaunchGuard, Places, Sockets, bind_unix};
use wharf_ports::launcher::LaunchSpec;
use wharf_vocab::Fault;

use crate::admit::OwnLaunch;
use crate::listen;
use crate::options::Transport;
use crate::shared::AgentHub;

/// What every agent finds in its environment.
pub(crate) fn environment(
    shared: &AgentHub,
    agent: &Provider,
    places: &Places,
    spec: &LaunchSpec,
) -> [(&'static str, String); 5] {
    let interval = shared.options.limits.heartbeat_interval_ms.to_string();
    [
        ("OPENSENTIENCE_AGENT_ID", agent.id.to_string()),
        ("OPENSENTIENCE_RUN_ID", spec.launch.to_string()),
        ("OPENSENTIENCE_PROTOCOL_VERSIONS", "1".to_owned()),
        ("OPENSENTIENCE_HEARTBEAT_INTERVAL_MS", interval),
        ("OPENSENTIENCE_HOME", places.data.display().to_string()),
    ]
}

/// Gives the launch its way to the core; what must stay as long as the launch.
pub(crate) fn connect(
    shared: &Arc<AgentHub>,
    agent: &Provider,
    spec: &mut LaunchSpec,
    sockets: &mut Sockets,
) -> Result<LaunchGuard, Fault> {
    let own =
        |inherited| OwnLaunch { agent: agent.id.clone(), launch: spec.launch.clone(), inherited };
    let inherits = match &agent.manifest.kind {
        ProviderKind::Agent(details) => details.inherits_connection,
        ProviderKind::ToolServer(_) | ProviderKind::Mcp(_) | ProviderKind::Operative => false,
    };
    if inherits {
        let (ours, theirs) = pair().map_err(|error| sockets.unusable(&error))?;
        listen::serve_inherited(shared, ours, own(true));
        spec.connection = Some(Arc::new(theirs));
        spec.env.insert("OPENSENTIENCE_SOCKET".to_owned(), "fd:3".to_owned());
        return Ok(None);
    }
    let token =
        shared.tokens.issue(&agent.id, &spec.launch, shared.options.hosting.connect_within)?;
    let mut kept: LaunchGuard = None;
    let address = match &shared.options.transport {
        Transport::Tcp(_) => {
            let port = shared.address.rsplit(':').next().and_then(|port| port.parse().ok());
            spec.fence.tcp_port = port;
            shared.address.clone()
        }
        Transport::Unix(_) => {
            let path = sockets.folder()?.join("s");
            let listener = bind_unix(&path).map_err(|error| sockets.unusable(&error))?;
            let over = CancellationToken::new();
            kept = Some(Box::new(over.clone().drop_guard()));
            let listening = listen::run_own(Arc::clone(shared), listener, own(false), over);
            shared.host.tasks().spawn("accepting connections", listening);
            spec.fence.sockets.push(path.clone());
            path.display().to_string()
        }
    };
    spec.env.insert("OPENSENTIENCE_SOCKET".to_owned(), address);
    spec.env.insert("OPENSENTIENCE_SESSION_TOKEN".to_owned(), token.clone());
    spec.secrets.push(token);
    Ok(kept)
}

fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}
