//! Providers: as the journal knows them, and as the catalog has them with their tools. Whoever
//! launches them knows how their processes fare.

use std::sync::Arc;

use tokio::sync::watch;
use wharf_domain::provider::RESERVED_IDS;
use wharf_domain::{Availability, Caller, Provider, ProviderInput, ProviderKind, ToolDef};
use wharf_ports::ProviderSink;
use wharf_vocab::{Code, Fault, ProviderId, ToolId};

use super::names::{NameKind, NameReservation};
use super::{ProviderCalls, stopped};
use crate::catalog::{CatalogTool, not_found};
use crate::shell::ShellMessage;

/// Tells that the catalog changed: tools came or went, may be called or not, their providers can
/// take attempts or not.
#[derive(Debug)]
pub struct CatalogChanges(watch::Receiver<u64>);

impl CatalogChanges {
    /// Waits for the next change; `None` once the engine has ended.
    pub async fn next(&mut self) -> Option<()> {
        self.0.changed().await.ok()
    }

    /// Forgets the changes so far: whoever reads the catalog now sees them.
    pub fn seen(&mut self) {
        self.0.mark_unchanged();
    }
}

impl<'a> ProviderCalls<'a> {
    /// Adds a provider with its tools; it can take attempts once it is said to be up. A name that
    /// is taken stays with whoever has it.
    pub async fn register(
        self,
        provider: ProviderId,
        tools: Vec<ToolDef>,
        sink: Arc<dyn ProviderSink>,
    ) -> Result<(), Fault> {
        let tools = self.0.inner.redactor.tools(tools);
        self.0.inner.catalog.register(&provider, tools, sink)?;
        self.set_availability(provider, Availability::Coming).await
    }

    /// Makes these the tools of a provider that was added, and no others.
    pub fn set_tools(self, provider: &ProviderId, tools: Vec<ToolDef>) -> Result<(), Fault> {
        self.0.inner.catalog.set_tools(provider, self.0.inner.redactor.tools(tools))
    }

    /// Marks which of a provider's tools may not be called, and why; all others may.
    pub fn set_quarantine(self, provider: &ProviderId, tools: Vec<(ToolId, String)>) {
        self.0.inner.catalog.set_quarantine(provider, tools);
    }

    /// Forgets a provider and its tools; its runs that wait end as if it were down.
    /// The core's own tools stay.
    pub async fn remove(self, provider: ProviderId) -> Result<(), Fault> {
        if RESERVED_IDS.contains(&provider.as_str()) {
            let message = format!("The tools of {provider} belong to the core and stay.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        let down = Availability::down("its provider was removed");
        self.set_availability(provider.clone(), down).await?;
        self.0.inner.catalog.remove(&provider);
        Ok(())
    }

    /// Says whether a provider can take attempts.
    pub async fn set_availability(
        self,
        provider: ProviderId,
        availability: Availability,
    ) -> Result<(), Fault> {
        self.0.inner.catalog.set_availability(&provider, availability.clone());
        self.0.inner.hub.changes.provider(&provider, &availability, self.0.inner.clock.now());
        let message = ShellMessage::Provider { provider, availability };
        self.0.inner.messages.send(message).await.map_err(|_| stopped())
    }

    /// Changes of the catalog from now on.
    pub fn changes(self) -> CatalogChanges {
        CatalogChanges(self.0.inner.catalog.changes())
    }

    /// How often the catalog has changed: what was read under the same number is still so.
    pub fn changed(self) -> u64 {
        *self.0.inner.catalog.changes().borrow()
    }

    /// All tools.
    pub fn tools(self) -> Vec<CatalogTool> {
        self.0.inner.catalog.tools()
    }

    /// One tool.
    pub fn tool(self, id: &ToolId) -> Result<CatalogTool, Fault> {
        self.0.inner.catalog.tool(id).ok_or_else(|| not_found(id))
    }

    /// Asks something of an agent and waits until it is committed.
    pub async fn change(
        self,
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
                ProviderInput::Offer { tools: self.0.inner.redactor.tools(tools) }
            }
            other => other,
        };
        self.0.change(caller, id.clone(), input).await
    }

    /// A place among the names that operatives serve.
    fn name_operative(
        self,
        caller: &Caller,
        id: &ProviderId,
    ) -> Result<NameReservation<'a>, Fault> {
        let share = |agent: &Provider| {
            let is_operative = matches!(agent.manifest.kind, ProviderKind::Operative);
            let other = is_operative && !agent.removed && agent.id != *id;
            other.then(|| agent.makers.first().cloned())
        };
        let shares = self.0.inner.records.providers.find(share).into_iter();
        self.0.inner.names.take(NameKind::Operatives, caller, shares)
    }

    /// All agents that have not been removed.
    pub fn list(self) -> Vec<Provider> {
        self.0.inner.records.providers.all().into_iter().filter(|agent| !agent.removed).collect()
    }

    /// Whether there is a provider of this name: one with a record, or one that offers a tool. A
    /// record is not copied for that; it holds all tools of its provider.
    pub fn is_known(self, id: &ProviderId) -> bool {
        let there = self.0.inner.records.providers.look(id, |provider| !provider.removed);
        there.unwrap_or(false) || self.0.inner.catalog.has_tools_of(id)
    }

    /// One agent.
    pub fn get(self, id: &ProviderId) -> Result<Provider, Fault> {
        let found = self.0.inner.records.providers.get(id).filter(|agent| !agent.removed);
        found.ok_or_else(|| Fault::new(Code::AgentNotFound, format!("There is no agent {id}.")))
    }
}
