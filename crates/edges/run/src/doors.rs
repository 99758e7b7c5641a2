//! The way to one start of a tool server, as long as that lasts.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use wharf_domain::permission::Permission;
use wharf_hosting::HostedKind as _;
use wharf_ports::vault::Secret;
use wharf_vocab::{Code, Fault, ProviderId, SecretName};

use crate::link::{self, ServerEndpoint};
use crate::tools::{ToolServers, server_of};

/// The way to one start of a tool server.
pub(crate) struct LaunchEndpoint {
    tools: Arc<ToolServers>,
    id: ProviderId,
    endpoint: ServerEndpoint,
    /// The secret that holds its bearer token.
    token: Option<SecretName>,
    /// Why it leads nowhere any more.
    closed: watch::Sender<Option<String>>,
}

impl LaunchEndpoint {
    pub(crate) fn new(
        tools: Arc<ToolServers>,
        id: ProviderId,
        endpoint: ServerEndpoint,
        token: Option<SecretName>,
    ) -> Self {
        Self { tools, id, endpoint, token, closed: watch::Sender::new(None) }
    }

    /// The server is gone for good.
    pub(crate) fn close(&self, why: String) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert(why);
            first
        });
    }

    /// The token that the server asks for, if the owner lets the server have it.
    async fn bearer(&self) -> Result<Option<Secret>, Fault> {
        let Some(name) = &self.token else { return Ok(None) };
        let agent = self.tools.host.options().handle.providers().get(&self.id)?;
        server_of(&agent)?;
        let given = agent.permissions();
        let allows = |permission: &Permission| matches!(permission, Permission::Secret(allowed) if allowed == name);
        if !given.iter().any(allows) {
            let message = format!("The secret {name} was not approved for {}.", self.id);
            return Err(Fault::new(Code::PermissionDenied, message).with("secret", name.as_str()));
        }
        wharf_hosting::secret(&*self.tools, name).await.map(|secret| Some(trimmed(&secret)))
    }
}

/// A token without the line's end that files have.
fn trimmed(secret: &Secret) -> Secret {
    Secret::new(secret.expose().trim_ascii())
}

impl link::EndpointSource for LaunchEndpoint {
    fn endpoint(&self) -> BoxFuture<'_, Result<ServerEndpoint, Fault>> {
        async move {
            if let Some(why) = self.closed.borrow().clone() {
                let message = format!("The {} went away: {why}.", self.tools.word());
                return Err(Fault::new(Code::ToolWorkerLost, message));
            }
            let endpoint = self.endpoint.clone();
            Ok(match self.bearer().await? {
                // A launch is shown what it was told to ask for.
                None => endpoint,
                bearer => endpoint.with_bearer(bearer),
            })
        }
        .boxed()
    }
}
