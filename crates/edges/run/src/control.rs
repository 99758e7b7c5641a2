//! The edge as others hold it: tool servers are steered through [`ProviderControl`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use wharf_domain::{Caller, Provider, ProviderInput};
use wharf_engine::launcher::LogLine;
use wharf_engine::providers::{Approve, ProviderControl, ProviderView, Scan};
use wharf_hosting::{Control, Kind};
use wharf_vocab::{Fault, ProviderId, ToolId};

use crate::options::Options;
use crate::tools::{Tools, server_of};

/// What a launch may take beyond the time its server has to get well.
const CONNECT_SLACK: Duration = Duration::from_secs(10);

/// The edge that faces tool servers. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct RunEdge {
    tools: Arc<Tools>,
    control: Control,
}

impl RunEdge {
    /// Takes up the tool servers that are known. None is started before a run needs it.
    pub async fn start(mut options: Options) -> Result<Self, Fault> {
        options.hosting.connect_within = options.healthy_within + CONNECT_SLACK;
        let tools = Arc::new(Tools::new(options));
        let control = Control::start(Arc::clone(&tools) as Arc<dyn Kind>).await?;
        Ok(Self { tools, control })
    }

    /// Ends all servers in order. They stay enabled, so the next core takes them up again.
    pub async fn stop(&self) {
        self.control.stop_all().await;
        self.tools.host.finish().await;
    }

    /// Approves a server, puts its tool into the catalog and enables it.
    async fn approve_one(
        &self,
        caller: Caller,
        id: ProviderId,
        approve: Approve,
    ) -> Result<ProviderView, Fault> {
        let approved = self.control.approve(caller.clone(), id.clone(), approve).await?;
        self.offer(&approved.provider).await?;
        self.control.start(caller, id).await
    }

    /// Takes the one tool on that the manifest describes.
    async fn offer(&self, agent: &Provider) -> Result<(), Fault> {
        let (host, tools) = (&self.tools.host, [server_of(agent)?.offered()]);
        let handle = &host.options().handle;
        let input = ProviderInput::Offer { tools: tools.to_vec() };
        handle.change_agent(&Caller::core(), &agent.id, input).await?;
        // The manifest that was approved is the tool's definition.
        let input = ProviderInput::ApproveTools { tools: vec![tools[0].tool.clone()] };
        let known = handle.change_agent(&Caller::core(), &agent.id, input).await?;
        // What changed is set apart before it can be seen.
        host.quarantine(&known);
        handle.set_tools(&agent.id, tools.to_vec())
    }
}

impl ProviderControl for RunEdge {
    fn list(&self) -> Vec<ProviderView> {
        self.control.list()
    }

    fn show(&self, id: &ProviderId) -> Result<ProviderView, Fault> {
        self.control.show(id)
    }

    fn add(&self, caller: Caller, folder: PathBuf) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.add(caller, folder)
    }

    fn scan(&self, folder: PathBuf) -> BoxFuture<'_, Result<Scan, Fault>> {
        self.control.scan(folder)
    }

    fn drift(&self, id: ProviderId) -> BoxFuture<'_, Result<Vec<String>, Fault>> {
        self.control.drift(id)
    }

    fn approve(
        &self,
        caller: Caller,
        id: ProviderId,
        approve: Approve,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.approve_one(caller, id, approve).boxed()
    }

    fn revoke(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.revoke(caller, id)
    }

    fn approve_tools(
        &self,
        caller: Caller,
        id: ProviderId,
        tools: Vec<ToolId>,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.approve_tools(caller, id, tools)
    }

    fn start(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.start(caller, id)
    }

    fn stop(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        ProviderControl::stop(&self.control, caller, id)
    }

    fn restart(
        &self,
        caller: Caller,
        id: ProviderId,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.restart(caller, id)
    }

    fn remove(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<(), Fault>> {
        self.control.remove(caller, id)
    }

    fn logs(&self, id: ProviderId, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        self.control.logs(id, lines)
    }

    fn follow_logs(
        &self,
        id: ProviderId,
        lines: usize,
    ) -> BoxFuture<'_, Result<BoxStream<'static, LogLine>, Fault>> {
        self.control.follow_logs(id, lines)
    }
}
