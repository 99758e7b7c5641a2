//! Whoever steers providers of one kind each, taken together: one provider is found, shown and
//! drained without knowing of which kind it is.

use std::sync::Arc;

use wharf_domain::Caller;
use wharf_engine::Handle;
use wharf_ports::providers::{ProviderControl, ProviderState, ProviderView};
use wharf_vocab::{Code, Fault, ProviderId, SeriesRange, Verb};
use wharf_wire::rest_v1 as wire;

use crate::provider::{all_providers, launches, provider, provider_usage};
use crate::without_internals;

/// Whoever steers providers; a core without one has no such providers.
#[derive(Clone, Default)]
pub struct Steering {
    /// Who steers agents.
    pub agents: Option<Arc<dyn ProviderControl>>,
    /// Who steers tool servers.
    pub tools: Option<Arc<dyn ProviderControl>>,
    /// Who steers MCP servers.
    pub mcp: Option<Arc<dyn ProviderControl>>,
}

/// Which providers are wanted.
#[derive(Debug, Clone, Default)]
pub struct ProviderFilter {
    /// Only of this kind, which is one of [`Self::KINDS`].
    pub kind: Option<String>,
    /// Only in this state.
    pub state: Option<ProviderState>,
    /// Only with this text in the id or the name.
    pub q: Option<String>,
}

impl ProviderFilter {
    /// The kinds there are.
    pub const KINDS: [&'static str; 6] =
        ["agent", "tool_server", "mcp_server", "operative", "operator", "builtin"];

    /// Whether a provider is wanted.
    #[must_use]
    pub fn wants(&self, it: &wire::Provider) -> bool {
        let q = self.q.as_deref().map(str::to_lowercase);
        let has = |text: &str| q.as_ref().is_none_or(|q| text.to_lowercase().contains(q));
        self.kind.as_ref().is_none_or(|kind| it.kind == *kind)
            && self.state.is_none_or(|state| it.state == state)
            && (has(&it.provider_id) || has(&it.name))
    }
}

/// A provider as a caller may see it.
#[must_use]
pub fn seen_by(caller: &Caller, view: ProviderView) -> ProviderView {
    match caller.rights.check_verb(Verb::Admin) {
        Ok(()) => view,
        Err(_) => without_internals(view),
    }
}

fn unknown(id: &ProviderId) -> Fault {
    Fault::new(Code::AgentNotFound, format!("There is no provider {id}."))
}

impl Steering {
    fn controls(&self) -> impl Iterator<Item = &Arc<dyn ProviderControl>> {
        [&self.agents, &self.tools, &self.mcp].into_iter().flatten()
    }

    /// Who steers a provider; nobody steers one that connects by itself.
    pub fn of(&self, id: &ProviderId) -> Result<&Arc<dyn ProviderControl>, Fault> {
        self.controls().find(|control| control.show(id).is_ok()).ok_or_else(|| unknown(id))
    }

    /// All providers there are, by id, as a caller may see them.
    #[must_use]
    pub fn list(&self, handle: &Handle, caller: &Caller) -> Vec<wire::Provider> {
        let steered = self.controls().flat_map(|control| control.list());
        let steered: Vec<_> = steered.map(|view| seen_by(caller, view)).collect();
        all_providers(handle, &steered)
    }

    /// One provider, as a caller may see it.
    pub async fn show(
        &self,
        handle: &Handle,
        caller: &Caller,
        id: &ProviderId,
    ) -> Result<wire::Provider, Fault> {
        let Ok(control) = self.of(id) else { return otherwise(handle, id) };
        let mut view = control.show(id)?;
        if view.provider.approval.is_some() {
            // What has drifted is looked at now, not when it was last started.
            view.provider.drift = control.drift(id.clone()).await?;
        }
        Ok(provider(&seen_by(caller, view)))
    }

    /// The latest starts of a provider's process, newest first.
    pub async fn launches(
        handle: &Handle,
        id: &ProviderId,
    ) -> Result<Vec<wire::ProviderLaunch>, Fault> {
        let known = handle.providers().get(id).map_err(|_| unknown(id))?;
        launches(handle, &known).await
    }

    /// What a provider's processes used lately; nothing of one that nobody here launches.
    pub fn usage(
        &self,
        handle: &Handle,
        id: &ProviderId,
        range: SeriesRange,
    ) -> Result<wire::ProviderUsage, Fault> {
        let points = match self.controls().find_map(|control| control.usage(id, range).ok()) {
            Some(points) => points,
            None => otherwise(handle, id).map(|_| Vec::new())?,
        };
        Ok(provider_usage(range, &points))
    }

    /// Lets a provider finish what is under way and stops it then. It does not wait for that.
    pub async fn drain(
        &self,
        handle: &Handle,
        caller: &Caller,
        id: ProviderId,
    ) -> Result<wire::Provider, Fault> {
        let Ok(control) = self.of(&id) else {
            otherwise(handle, &id)?;
            let message = format!("The core does not launch {id}; stop it where it was started.");
            return Err(Fault::new(Code::RequestInvalid, message));
        };
        let view = control.drain(caller.clone(), id).await?;
        Ok(provider(&seen_by(caller, view)))
    }
}

/// A provider among those that nobody here steers.
fn otherwise(handle: &Handle, id: &ProviderId) -> Result<wire::Provider, Fault> {
    let mut all = all_providers(handle, &[]).into_iter();
    all.find(|it| it.provider_id == id.as_str()).ok_or_else(|| unknown(id))
}
