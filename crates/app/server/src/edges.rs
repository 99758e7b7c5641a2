//! What faces providers, callers and operators beside the HTTP edge: started together, mounted
//! behind it, ended in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_agent::AgentEdge;
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::Handle;
use wharf_graphql::{Seat, SeatDirectory};
use wharf_hosting::Control;
use wharf_http::{CoreStatus, Doctor, Mount, OwnerToken, Steering};
use wharf_mcp::{McpClientOptions, McpEdge, McpEdgeOptions, McpNews};
use wharf_notify::{NotifyEdge, NotifyOptions};
use wharf_operator::OperatorEdge;
use wharf_ports::vault::Vault;
use wharf_tool::ToolEdge;
use wharf_vocab::{Code, Fault, ToolId, WorldId};

use crate::agents::{Surroundings, hosting};
use crate::core::internal;
use crate::settings::Settings;
use crate::{Home, agents, tools};

/// What faces providers, callers and operators beside the HTTP edge.
pub(crate) struct Edges {
    pub(crate) hosted: Hosted,
    operators: OperatorEdge,
    peers: ToolEdge,
    mcp: McpEdge,
    notify: NotifyEdge,
    vault: Arc<dyn Vault>,
}

/// What steers the providers that the core launches, or dials.
pub(crate) struct Hosted {
    pub(crate) agents: AgentEdge,
    pub(crate) tools: Control,
    pub(crate) mcp: Control,
}

/// What edges are started with.
pub(crate) struct EdgeParts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) settings: &'a Settings,
    pub(crate) handle: &'a Handle,
    pub(crate) vault: &'a Arc<dyn Vault>,
}

impl EdgeParts<'_> {
    /// Gives the engine its built-in tools and a world, and starts the edges around it.
    pub(crate) async fn edges(
        &self,
        shim: Option<PathBuf>,
        origin: String,
        url: &str,
    ) -> Result<Edges, Fault> {
        furnish(self.handle, self.settings.model_tool.clone()).await?;
        let models = self.settings.models.clone();
        wharf_models::register(self.handle, Arc::clone(self.vault), models).await?;
        let mcp = mcp_edge(self.settings, self.handle)?;
        let hosted = self.host(shim, origin, mcp.news()).await?;
        let operators = self.operators(url).await?;
        let peers = ToolEdge::start(wharf_tool::ToolEdgeOptions::new(self.handle.clone())).await;
        let notify = NotifyEdge::start(NotifyOptions {
            handle: self.handle.clone(),
            vault: Arc::clone(self.vault),
            console: self.settings.operators.base_url.clone().unwrap_or_else(|| url.to_owned()),
        });
        let vault = Arc::clone(self.vault);
        Ok(Edges { hosted, operators, peers, mcp, notify, vault })
    }

    /// The edges that launch: agents, tool servers and MCP servers.
    async fn host(
        &self,
        shim: Option<PathBuf>,
        origin: String,
        news: McpNews,
    ) -> Result<Hosted, Fault> {
        let Self { home, settings, handle, vault } = *self;
        let launcher = agents::launcher(shim.clone())?;
        let around = Surroundings { launcher, vault: Arc::clone(vault), origin };
        let agents = agents::start(home, settings, handle, around.clone()).await?;
        let tools = match tools::start(home, settings, handle, around.clone(), shim).await {
            Ok(tools) => tools,
            Err(fault) => {
                agents.stop().await;
                return Err(fault);
            }
        };
        match mcp_servers(home, settings, handle, around, news).await {
            Ok(mcp) => Ok(Hosted { agents, tools, mcp }),
            Err(fault) => {
                tokio::join!(agents.stop(), tools.stop_all());
                Err(fault)
            }
        }
    }

    /// The edge that faces operators, as it is set.
    async fn operators(&self, url: &str) -> Result<OperatorEdge, Fault> {
        let set = &self.settings.operators;
        let base_url = set.base_url.clone().unwrap_or_else(|| url.to_owned());
        let mut options = wharf_operator::OperatorEdgeOptions::new(self.handle.clone(), base_url);
        if let Some(directive) = &set.directive {
            options.directive.clone_from(directive);
        }
        if let Some(hours) = set.away_hours {
            options.away_max = Duration::from_secs(hours.saturating_mul(60 * 60));
        }
        OperatorEdge::start(options).await
    }
}

/// The seats of operators, for GraphQL, which does not see their edge.
struct Seats(OperatorEdge);

impl SeatDirectory for Seats {
    fn list(&self, caller: &Caller) -> Result<Vec<Seat>, Fault> {
        self.0.seats_seen_by(caller)
    }

    fn show(&self, caller: &Caller, sid: &str) -> Result<Seat, Fault> {
        self.0.seat_seen_by(caller, sid)
    }
}

impl Edges {
    /// Whoever steers providers, of each kind.
    pub(crate) fn steering(&self) -> Steering {
        Steering {
            agents: Some(Arc::new(self.hosted.agents.control().clone())),
            tools: Some(Arc::new(self.hosted.tools.clone())),
            mcp: Some(Arc::new(self.hosted.mcp.clone())),
        }
    }

    /// Other edges on the listener of the HTTP edge.
    pub(crate) fn mounts(
        &self,
        handle: &Handle,
        owner: &OwnerToken,
        status: &Arc<CoreStatus>,
        doctor: Doctor,
    ) -> Vec<Mount> {
        use wharf_operator::document as operator;
        use wharf_tool::document as tool;
        // A browser names itself on a WebSocket of GraphQL only once that is open.
        let (known, owner) = (handle.clone(), owner.clone());
        let bearer =
            move |token: &str| owner.bearer(token, |token| known.trust().authenticate(token));
        let graphql = wharf_graphql::router(wharf_graphql::GraphqlOptions {
            providers: self.steering(),
            operators: Some(Arc::new(Seats(self.operators.clone()))),
            doctor: Some(doctor),
            status: Some(Arc::clone(status)),
            vault: Some(Arc::clone(&self.vault)),
            ..wharf_graphql::GraphqlOptions::new(handle.clone(), Arc::new(bearer))
        });
        let graphql = Mount { own_doors: true, ..Mount::new("/graphql", graphql) };
        let seats =
            Mount { own_doors: true, ..Mount::new("/v1/operators", self.operators.seats()) };
        let workers = Mount::new("/v1/worker", self.operators.workers());
        let workers = Mount { own_doors: true, streams: true, ..workers };
        let connections = Mount { events: true, ..Mount::new("/v1/tool", self.peers.peers()) };
        // Tokens of an authorization server elsewhere are for the edge itself to look at.
        let clients = Mount { own_doors: true, ..Mount::new("/mcp", self.mcp.clients()) };
        // What says who lets people in must be readable for those who are not in.
        let resource = Mount::new(wharf_mcp::WELL_KNOWN, self.mcp.well_known());
        let resource = Mount { own_doors: true, ..resource };
        vec![
            graphql.described(wharf_graphql::DOCUMENT),
            seats.described(operator::SEATS),
            Mount::new("/v1/tasks", self.operators.tasks()).described(operator::TASKS),
            workers.described(operator::WORKERS),
            connections.described(tool::PEERS),
            Mount::new("/v1/operatives", self.peers.operatives()).described(tool::OPERATIVES),
            clients.described(wharf_mcp::DOCUMENT),
            resource.described(wharf_mcp::WELL_KNOWN_DOCUMENT),
        ]
    }

    /// Tells whoever calls over a connection to go; whoever executes may finish first.
    pub(crate) async fn drain(&self) {
        self.peers.drain().await;
    }

    /// Ends all of them, once the engine takes nothing new.
    pub(crate) async fn stop(&self) {
        self.notify.stop();
        tokio::join!(self.operators.stop(), self.peers.stop(), self.mcp.stop());
        // What launched providers still do is taken up again at the next start, or given up there.
        let Hosted { agents, tools, mcp } = &self.hosted;
        tokio::join!(agents.stop(), tools.stop_all(), mcp.stop_all());
    }
}

/// Gives an engine what every core has: the built-in tools and a world to begin with.
async fn furnish(handle: &Handle, model_tool: Option<ToolId>) -> Result<(), Fault> {
    wharf_builtin::register_with(handle, wharf_builtin::BuiltinOptions { model_tool }).await?;
    let world = WorldId::new("default").map_err(|_| internal())?;
    let made = handle.worlds().create(&Caller::owner(), world, WorldSettings::default()).await;
    match made {
        Err(fault) if !fault.is(Code::WorldExists) => Err(fault),
        _ => Ok(()),
    }
}

/// The edge that clients of MCP come to, as it is set.
fn mcp_edge(settings: &Settings, handle: &Handle) -> Result<McpEdge, Fault> {
    let (server, oauth) = (settings.mcp.server(), settings.mcp.oauth()?);
    Ok(McpEdge::start(McpEdgeOptions { server, oauth, ..McpEdgeOptions::new(handle.clone()) }))
}

/// Takes up the servers of MCP that the core knows. What they say reaches clients by `news`.
async fn mcp_servers(
    home: &Home,
    settings: &Settings,
    handle: &Handle,
    around: Surroundings,
    news: McpNews,
) -> Result<Control, Fault> {
    let hosting = hosting(home, settings, handle, "mcp", around)?;
    let set = &settings.mcp;
    wharf_mcp::start(McpClientOptions {
        idle: set.idle_s.map_or(McpClientOptions::IDLE, Duration::from_secs),
        sampling: set.sampling,
        ..McpClientOptions::new(hosting, news)
    })
    .await
}
