//! Agents as the journal knows them. Whoever launches them knows how their processes fare.

use wharf_domain::{AuditRecord, Caller, Provider, ProviderInput, ProviderKind};
use wharf_vocab::{Code, Fault, ProviderId, StreamId};

use super::names::{Named, Place};
use super::{Handle, misfit};
use crate::shard::{Input, RecordInput};

impl Handle {
    /// Asks something of an agent and waits until it is committed.
    pub async fn change_agent(
        &self,
        caller: &Caller,
        id: &ProviderId,
        input: ProviderInput,
    ) -> Result<Provider, Fault> {
        let _place = match &input {
            ProviderInput::Add { manifest, .. } if !manifest.kind.is_launched() => {
                Some(self.name_operative(caller, id)?)
            }
            _ => None,
        };
        let input = match input {
            ProviderInput::Offer { tools } => {
                ProviderInput::Offer { tools: self.inner.redactor.tools(tools) }
            }
            other => other,
        };
        let input = RecordInput::Provider(id.clone(), Box::new(input));
        self.change(caller, input).await?.into_provider().ok_or_else(misfit)
    }

    /// A place among the names that operatives serve.
    fn name_operative(&self, caller: &Caller, id: &ProviderId) -> Result<Place<'_>, Fault> {
        let share = |agent: &Provider| {
            let is_operative = matches!(agent.manifest.kind, ProviderKind::Operative);
            let other = is_operative && !agent.removed && agent.id != *id;
            other.then(|| agent.makers.first().cloned())
        };
        let shares = self.inner.records.providers.find(share).into_iter();
        self.inner.names.take(Named::Operatives, caller, shares)
    }

    /// All agents that have not been removed.
    #[must_use]
    pub fn agents(&self) -> Vec<Provider> {
        self.inner.records.providers.all().into_iter().filter(|agent| !agent.removed).collect()
    }

    /// One agent.
    pub fn agent(&self, id: &ProviderId) -> Result<Provider, Fault> {
        let found = self.inner.records.providers.get(id).filter(|agent| !agent.removed);
        found.ok_or_else(|| Fault::new(Code::AgentNotFound, format!("There is no agent {id}.")))
    }

    /// Audits something that touches no run, world or ask; it is written in the order of calls.
    pub async fn record(&self, subject: &StreamId, record: AuditRecord) -> Result<(), Fault> {
        self.tell(subject.shard(), Input::Audit(vec![record])).await
    }
}
