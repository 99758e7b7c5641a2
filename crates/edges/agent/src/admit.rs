//! Who may come in: the token, the process that shows it, the agent it stands for.
//!
//! Whoever is turned away learns nothing about why; only the audit is told which check failed.

use std::sync::Arc;
use std::time::Duration;

use wharf_hosting::{HostedKind as _, Inbox, Live, Places};
use wharf_protocol::agent::{AdmissionRefusal, HelloReceived};
use wharf_vocab::{LaunchId, ProviderId};

use crate::shared::AgentHub;

/// How long a hello waits for the launch it belongs to: a process can be faster than the word of
/// its start.
const LAUNCH_PATIENCE: Duration = Duration::from_secs(5);

/// Where a connection comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The process at the other end; unknown over TCP.
    pub(crate) process: Option<PeerProcess>,
    /// The launch whose own socket it came by.
    pub(crate) launch: Option<OwnLaunch>,
}

/// A process as the system names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerProcess {
    pub(crate) uid: u32,
    pub(crate) pid: Option<u32>,
}

/// A launch that a connection can only belong to.
#[derive(Debug, Clone)]
pub(crate) struct OwnLaunch {
    pub(crate) agent: ProviderId,
    pub(crate) launch: LaunchId,
    /// Whether the process has the connection from its start, which proves who it is.
    pub(crate) inherited: bool,
}

/// Who was let in.
pub(crate) struct AdmittedAgent {
    pub(crate) agent: ProviderId,
    pub(crate) launch: LaunchId,
    pub(crate) live: Arc<Live>,
    pub(crate) places: Arc<Places>,
    pub(crate) inbox: Inbox,
}

/// A refusal, and the check that failed.
type HelloRefusal = (AdmissionRefusal, &'static str);

/// Checks token, process, agent, manifest and that nobody else is connected in its name.
pub(crate) async fn admit(
    shared: &AgentHub,
    origin: &Origin,
    hello: &HelloReceived,
) -> Result<AdmittedAgent, HelloRefusal> {
    let launch = match &origin.launch {
        Some(own) if own.inherited => {
            if own.agent.as_str() != hello.agent_id {
                return Err((AdmissionRefusal::Unauthorized, "connection of another agent"));
            }
            own.launch.clone()
        }
        _ => by_token(shared, origin, hello).await?,
    };
    let unknown = (AdmissionRefusal::Unauthorized, "agent unknown");
    let agent = ProviderId::new(&hello.agent_id).map_err(|_| unknown)?;
    let known = shared.handle.providers().get(&agent).map_err(|_| unknown)?;
    if !shared.owns(&known) {
        return Err(unknown);
    }
    if let Some(hash) = &hello.manifest_hash
        && hash.strip_prefix("sha256:").unwrap_or(hash) != known.manifest_hash.as_str()
    {
        return Err((AdmissionRefusal::ManifestDrift, "manifest hash"));
    }
    let live = shared.host.live(&agent).ok_or(unknown)?;
    let handle = &shared.handle;
    let connected =
        live.places(&launch).and_then(|places| Some((places, live.connect(&launch, handle)?)));
    let Some((places, inbox)) = connected else {
        return Err((AdmissionRefusal::Conflict, "connected already"));
    };
    Ok(AdmittedAgent { agent, launch, live, places, inbox })
}

/// The launch that a token was made for, if the right process shows it. A token that a stranger
/// shows is not spent, so that strangers cannot keep an agent out.
async fn by_token(
    shared: &AgentHub,
    origin: &Origin,
    hello: &HelloReceived,
) -> Result<LaunchId, HelloRefusal> {
    let unfit = |check| (AdmissionRefusal::Unauthorized, check);
    let launch =
        shared.tokens.find(&hello.token, &hello.agent_id).map_err(|why| unfit(why.as_str()))?;
    if origin.launch.as_ref().is_some_and(|own| own.launch != launch) {
        return Err(unfit("token of another launch"));
    }
    if let Some(process) = origin.process {
        if process.uid != rustix::process::geteuid().as_raw() {
            return Err(unfit("process of another user"));
        }
        let live = ProviderId::new(&hello.agent_id).ok().and_then(|agent| shared.host.live(&agent));
        let launched = match live {
            Some(live) => live.process(&launch, LAUNCH_PATIENCE).await,
            None => None,
        };
        let owned = launched.zip(process.pid).is_some_and(|(launched, pid)| launched.owns(pid));
        if !owned {
            return Err(unfit("process outside the launch"));
        }
    }
    shared.tokens.redeem(&hello.token, &hello.agent_id).map_err(|why| unfit(why.as_str()))
}
