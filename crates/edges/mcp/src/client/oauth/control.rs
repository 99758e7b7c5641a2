//! Logins as edges that face people steer them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use wharf_domain::provider::McpDetails;
use wharf_domain::{AuditEvent, AuditRecord, Caller};
use wharf_ports::logins::{LoginAnswer, LoginBegun, LoginControl, LoginEnd, LoginWay};
use wharf_ports::providers::Steering;
use wharf_vocab::{Fault, ProviderId, SecretName, StreamId};

use super::super::{McpServers, details_of, unknown};

/// How long whoever logged in waits for the server to be there.
const DIALED_WITHIN: Duration = Duration::from_secs(10);

/// Lets people log in to MCP servers.
pub(crate) struct LoginsOfServers(Arc<McpServers>);

impl LoginsOfServers {
    pub(crate) fn new(servers: Arc<McpServers>) -> Self {
        Self(servers)
    }

    fn details(&self, id: &ProviderId) -> Result<McpDetails, Fault> {
        let provider = self.0.handle().providers().get(id).map_err(|_| unknown(id))?;
        details_of(&provider).cloned()
    }

    /// Lets a server that was away be dialed with its new login, so that whoever logged in and looks
    /// at it next sees what came of that.
    async fn try_out(&self, id: &ProviderId) {
        let Some(reader) = self.0.reader(id) else { return };
        if tokio::time::timeout(DIALED_WITHIN, reader.dial_again()).await.is_err() {
            tracing::info!(provider = %id, "the server takes long to answer after a login");
        }
    }

    /// Writes down that a secret came or went; what it holds is nobody's business.
    async fn audit(
        &self,
        caller: &Caller,
        event: AuditEvent,
        name: &SecretName,
        id: &ProviderId,
    ) -> Result<(), Fault> {
        let subject = StreamId::Grant(caller.grant.clone());
        let record = AuditRecord::new(event, &caller.grant, name).fact("provider", id.as_str());
        self.0.handle().audit().record(&subject, record).await
    }
}

impl LoginControl for LoginsOfServers {
    fn begin_login(
        &self,
        caller: Caller,
        id: ProviderId,
        way: LoginWay,
    ) -> Steering<'_, LoginBegun> {
        async move {
            let details = self.details(&id)?;
            self.0.logins.begin(&id, &details, caller.grant, way).await
        }
        .boxed()
    }

    fn end_login(
        &self,
        caller: Caller,
        id: ProviderId,
        answer: LoginAnswer,
    ) -> Steering<'_, LoginEnd> {
        async move {
            self.details(&id)?;
            let (end, kept) = self.0.logins.end(&id, caller.grant.clone(), answer).await?;
            if let Some(name) = kept {
                self.audit(&caller, AuditEvent::SECRET_SET, &name, &id).await?;
                self.try_out(&id).await;
            }
            Ok(end)
        }
        .boxed()
    }

    fn forget_login(&self, caller: Caller, id: ProviderId) -> Steering<'_, ()> {
        async move {
            self.details(&id)?;
            for name in self.0.logins.forget(&id).await? {
                self.audit(&caller, AuditEvent::SECRET_REMOVED, &name, &id).await?;
            }
            Ok(())
        }
        .boxed()
    }
}
