//! How a launched process is fenced in: what it sees, what it reaches, what it may use up, and the
//! way out to the hosts it was approved for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use wharf_domain::permission::HostPattern;
use wharf_domain::provider::Usage;
use wharf_vocab::{Fault, Keeping, ProviderId, SandboxLevel};

/// How a process is to be fenced in. What is not named here it neither sees nor reaches, as far
/// as the level goes: its working directory can be read, its private folders can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fence {
    /// How firmly.
    pub level: SandboxLevel,
    /// The least it must be; below it the launch is refused.
    pub minimum: SandboxLevel,
    /// Files and folders it may read.
    pub read: Vec<PathBuf>,
    /// Files and folders it may read and write.
    pub write: Vec<PathBuf>,
    /// Unix sockets it may connect to.
    pub sockets: Vec<PathBuf>,
    /// The Unix socket of a proxy through which it reaches hosts; without one it has no network.
    /// The process is told a loopback address in `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY`.
    pub egress: Option<PathBuf>,
    /// A loopback TCP port of the core that it must reach. It then shares the machine's network
    /// and may connect to nothing but this port.
    pub tcp_port: Option<u16>,
    /// A server inside the fence that the core wants to reach.
    pub inbound: Option<Inbound>,
    /// A folder of the core that the program finds as `/artifacts`, to read and to write, also
    /// what the core puts there later. It is made if it is not there. It takes namespaces; without
    /// them nothing is shown there, and [`FenceReport::notes`] says so. What lies in it counts as
    /// the program's own, whoever put it there.
    pub artifacts: Option<PathBuf>,
    /// Folders and files that it must never see, whatever else is granted: nothing of them, and
    /// nothing they lie in, is shown. The paths have no links in them.
    pub hidden: Vec<PathBuf>,
    /// What it may use up.
    pub usage: Usage,
}

impl Default for Fence {
    /// No fence beyond a clean environment and nothing left behind.
    fn default() -> Self {
        Self {
            level: SandboxLevel::Basic,
            minimum: SandboxLevel::None,
            read: Vec::new(),
            write: Vec::new(),
            sockets: Vec::new(),
            egress: None,
            tcp_port: None,
            inbound: None,
            artifacts: None,
            hidden: Vec::new(),
            usage: Usage::default(),
        }
    }
}

/// A way in: whoever connects to the socket outside is connected to the port inside.
///
/// It is open from before the program begins until the launch has ended, whatever the fence. As
/// long as nobody listens on the port, a connection is closed as soon as it was made. Where the
/// program has a network of its own, any port is free and only this way leads to it. Where it
/// shares the machine's, the port must be a free one of the machine, and others on the machine can
/// connect to it, too; [`FenceReport::notes`] says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// The Unix socket outside, which only this user may connect to. Nothing may be there yet;
    /// it is removed when the launch has ended.
    pub socket: PathBuf,
    /// The loopback TCP port on which the program listens. It may listen there, and where a fence
    /// says on which ports it may, only there.
    pub port: u16,
}

/// How firmly a process is fenced in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceReport {
    /// The level.
    pub level: SandboxLevel,
    /// What is missing or done in another way, one sentence each.
    pub notes: Vec<String>,
    /// How each limit is kept, by its name in an API. Of a launch these are the limits that it
    /// has, of a machine all that there are.
    pub limits: BTreeMap<&'static str, Keeping>,
}

impl FenceReport {
    /// A level of which nothing more is known.
    pub fn at(level: SandboxLevel) -> Self {
        Self { level, notes: Vec::new(), limits: BTreeMap::new() }
    }
}

/// Opens ways out.
pub trait Egress: Send + Sync + 'static {
    /// Opens a proxy for an agent on a Unix socket at this path. It lets through what one of the
    /// patterns fits, refuses the rest with a clear error and audits it.
    fn open(
        &self,
        agent: ProviderId,
        socket: PathBuf,
        allowed: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>>;

    /// The same for hosts that the machine's own settings name, not an agent: they are reached
    /// wherever their names lead, also on the machine's own networks.
    fn open_own(
        &self,
        agent: ProviderId,
        socket: PathBuf,
        allowed: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>> {
        self.open(agent, socket, allowed)
    }
}

/// A way out; dropping the last reference closes it and every connection through it.
pub trait EgressDoor: Send + Sync + 'static {
    /// How many bytes went out and came in through it.
    fn bytes(&self) -> (u64, u64);
}
