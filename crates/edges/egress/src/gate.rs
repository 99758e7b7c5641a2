//! Decides who may go where, and goes there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::time::timeout;
use wharf_domain::permission::HostPattern;
use wharf_domain::{AuditRecord, ProviderType, Subject};
use wharf_vocab::{Code, ProviderId, Zone};

use crate::refusal::ProxyRefusal;
use crate::target::{Target, TargetHost};
use crate::{EgressLimits, ProxyState};

/// Most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// What one agent may reach.
pub(crate) struct Gate {
    agent: ProviderId,
    allowed: Vec<HostPattern>,
    /// Whether the machine's own settings name the hosts.
    is_own: bool,
    shared: Arc<ProxyState>,
}

/// How far an approved pattern reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To addresses outside only.
    Outside,
    /// To whatever address it names.
    Anywhere,
}

impl Gate {
    pub(crate) fn new(
        agent: ProviderId,
        allowed: Vec<HostPattern>,
        shared: Arc<ProxyState>,
    ) -> Self {
        Self { agent, allowed, is_own: false, shared }
    }

    /// The same for hosts that the machine's own settings name.
    pub(crate) fn own(self) -> Self {
        Self { is_own: true, ..self }
    }

    pub(crate) fn limits(&self) -> &EgressLimits {
        &self.shared.limits
    }

    pub(crate) fn agent(&self) -> &ProviderId {
        &self.agent
    }

    /// Connects to where an agent wants to go, if it may.
    pub(crate) async fn reach(&self, target: &Target) -> Result<TcpStream, ProxyRefusal> {
        let reach = self.reach_of(target).ok_or_else(|| self.not_approved(target))?;
        let mut addresses = self.addresses(&target.host).await?;
        if reach == Reach::Outside {
            addresses.retain(|address| Zone::of(*address) == Zone::Public);
            if addresses.is_empty() {
                return Err(self.leads_inside(target));
            }
        }
        addresses.truncate(ADDRESSES_MAX);
        let stream = connect(&addresses, target, self.limits()).await?;
        if reach == Reach::Outside && ends_here(&stream) {
            return Err(self.leads_inside(target));
        }
        Ok(stream)
    }

    fn reach_of(&self, target: &Target) -> Option<Reach> {
        let host = target.host.text();
        let fits = |pattern: &&HostPattern| pattern.matches(&host, target.port);
        let mut fitting = self.allowed.iter().filter(fits).peekable();
        fitting.peek()?;
        let literal = fitting.any(HostPattern::is_literal);
        // The owner has named the artifact store's host, so it may lie on networks of ours.
        let named = matches!(target.host, TargetHost::Name(_));
        let storage = named && self.shared.storage.as_ref() == Some(target);
        Some(if literal || storage || self.is_own { Reach::Anywhere } else { Reach::Outside })
    }

    async fn addresses(&self, host: &TargetHost) -> Result<Vec<IpAddr>, ProxyRefusal> {
        let name = match host {
            TargetHost::Address(address) => return Ok(vec![*address]),
            // This name means this machine, whatever a resolver says.
            TargetHost::Name(name) if name == "localhost" => {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            TargetHost::Name(name) => name,
        };
        let unknown = || unreachable(502, format!("The host {name} is not known."));
        match timeout(self.limits().resolve, self.shared.resolver.resolve(name.clone())).await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(_) => Err(unknown()),
            Err(_) => Err(unreachable(504, format!("Looking up the host {name} took too long."))),
        }
    }

    fn not_approved(&self, target: &Target) -> ProxyRefusal {
        self.audit(target, "not_approved");
        let permission = target.permission();
        let message = format!("The permission {permission} is missing or was not approved.");
        ProxyRefusal::new(Code::PermissionDenied, message)
    }

    fn leads_inside(&self, target: &Target) -> ProxyRefusal {
        self.audit(target, "inside_address");
        let message = format!(
            "{} leads to an address of this machine or its networks, for which the permission {} \
             is missing or was not approved: it must name the address itself.",
            target.host,
            target.permission()
        );
        ProxyRefusal::new(Code::PermissionDenied, message)
    }

    /// Writes down who was refused what and why, and nothing else of what they sent.
    fn audit(&self, target: &Target, reason: &str) {
        let known = self.shared.handle.providers().get(&self.agent);
        let of = known.map_or(ProviderType::Agent, |known| known.manifest.kind.of());
        let record = AuditRecord::denied(&self.agent, Subject::provider(of, &self.agent))
            .fact("host", target.host.to_string())
            .fact("port", target.port)
            .fact("permission", target.permission())
            .fact("reason", reason)
            .fact("error_code", Code::PermissionDenied.as_str());
        self.shared.handle.audit().denied(record);
    }
}

/// Connects to the first address that answers.
async fn connect(
    addresses: &[IpAddr],
    target: &Target,
    limits: &EgressLimits,
) -> Result<TcpStream, ProxyRefusal> {
    let mut late = false;
    let attempts = async {
        for address in addresses {
            let attempt = TcpStream::connect(SocketAddr::new(*address, target.port));
            match timeout(limits.connect, attempt).await {
                Ok(Ok(stream)) => return Some(stream),
                Ok(Err(_)) => late = false,
                Err(_) => late = true,
            }
        }
        None
    };
    let connected = match timeout(limits.connect_all, attempts).await {
        Ok(connected) => connected,
        Err(_) => {
            late = true;
            None
        }
    };
    connected.ok_or_else(|| match late {
        true => unreachable(504, format!("Connecting to {target} took too long.")),
        false => unreachable(502, format!("{target} cannot be reached.")),
    })
}

/// Whether a connection ends on this machine: it reaches its own public address from that address.
fn ends_here(stream: &TcpStream) -> bool {
    let ends = stream.local_addr().ok().zip(stream.peer_addr().ok());
    ends.is_none_or(|(own, peer)| own.ip() == peer.ip())
}

fn unreachable(status: u16, message: String) -> ProxyRefusal {
    ProxyRefusal::with_status(status, Code::EgressUnreachable, message)
}

/// Finds the addresses of a name.
pub(crate) trait Resolve: Send + Sync + 'static {
    /// The addresses of a name, best first.
    fn resolve(&self, name: String) -> BoxFuture<'_, io::Result<Vec<IpAddr>>>;
}

/// What the operating system knows.
pub(crate) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: String) -> BoxFuture<'_, io::Result<Vec<IpAddr>>> {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_to_this_machine_is_told_by_its_two_ends() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).await;
        assert!(ends_here(&stream.expect("connects")));
        // Another address of this machine stands for another machine.
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.2:0".parse().expect("an address")).expect("binds");
        let stream = socket.connect(listener.local_addr().expect("bound")).await;
        assert!(!ends_here(&stream.expect("connects")));
    }
}
