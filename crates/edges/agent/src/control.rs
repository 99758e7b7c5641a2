//! Steering agents: adding, approving, starting, stopping, looking.

mod approval;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wharf_domain::{Agent, AgentInput, Caller};
use wharf_engine::agents::{AgentControl, AgentView, Approve, Scan};
use wharf_engine::launcher::LogLine;
use wharf_vocab::{AgentId, Code, Fault, ToolId};

use crate::conn::provider;
use crate::fence::Ground;
use crate::launch;
use crate::listen::Listener;
use crate::live::{Live, Rest};
use crate::options::Options;
use crate::sink::Sink;
use crate::supervisor::{Order, Supervisor};
use crate::throttle::Gates;
use crate::tokens::Tokens;
use crate::{files, manifest, places, scan, throttle};

/// The edge that faces agents. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct AgentEdge {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

/// What connections and supervisors share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) tokens: Tokens,
    pub(crate) gates: Gates,
    /// Where agents connect, as they are told.
    pub(crate) address: String,
    agents: Mutex<BTreeMap<AgentId, Entry>>,
}

#[derive(Debug, Clone)]
struct Entry {
    live: Arc<Live>,
    orders: mpsc::Sender<Order>,
}

impl Shared {
    pub(crate) fn live(&self, id: &AgentId) -> Option<Arc<Live>> {
        self.with(|agents| agents.get(id).map(|entry| Arc::clone(&entry.live)))
    }

    /// What the permissions of an agent in this folder are judged against.
    pub(crate) fn ground(&self, folder: &str) -> Ground {
        Ground {
            user_home: self.options.user_home.clone(),
            hidden: self.options.hidden.clone(),
            folder: PathBuf::from(folder),
        }
    }

    /// Marks the tools of an agent that are not what was taken on.
    pub(crate) fn quarantine(&self, agent: &Agent) {
        let Ok(provider) = provider(&agent.id) else { return };
        let why = "its definition is not the one that was approved; compare and approve it again";
        let changed = agent.quarantined().map(|def| (def.tool.clone(), why.to_owned()));
        self.options.handle.set_quarantine(&provider, changed.collect());
    }

    /// Stops an agent that must not go on, without waiting for its end.
    pub(crate) fn halt(self: &Arc<Self>, id: &AgentId, reason: String) {
        let (shared, id) = (Arc::clone(self), id.clone());
        tokio::spawn(async move {
            let input = AgentInput::Stop { reason: None };
            let changed = shared.options.handle.change_agent(&Caller::core(), &id, input).await;
            if let Err(fault) = changed {
                tracing::warn!(agent = %id, code = %fault.code, "a stop was not recorded");
            }
            let entry = shared.with(|agents| agents.get(&id).cloned());
            // Somebody may have approved and started it again meanwhile.
            if let Some(entry) = entry.filter(|entry| entry.live.blocked().is_some()) {
                let stop = Order::Stop { reason, done: oneshot::channel().0 };
                // A supervisor that has ended has nothing to stop.
                let _ = entry.orders.send(stop).await;
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<AgentId, Entry>) -> T) -> T {
        work(&mut self.agents.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AgentEdge {
    /// Opens the socket and starts what is wanted.
    pub async fn start(options: Options) -> Result<Self, Fault> {
        let (listener, address) = Listener::bind(&options.transport).await?;
        launch::sweep(&options);
        let shared = Arc::new(Shared {
            options,
            tokens: Tokens::default(),
            gates: Gates::default(),
            address,
            agents: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let edge = Self { shared: Arc::clone(&shared), stop: stop.clone() };
        for agent in shared.options.handle.agents() {
            if let Err(fault) = edge.take_up(&agent).await {
                // One agent that cannot be taken up any more must not keep the core from starting.
                tracing::error!(agent = %agent.id, %fault, "an agent was not taken up");
                continue;
            }
            if agent.wanted {
                edge.order(&agent.id, Order::Start).await?;
            }
        }
        tokio::spawn(listener.run(shared, stop));
        Ok(edge)
    }

    /// Where agents connect: a path, or `tcp:` and an address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Ends all agents in order. They stay wanted, so the next core starts them again.
    pub async fn stop(&self) {
        self.stop.cancel();
        let entries = self.shared.with(|agents| agents.values().cloned().collect::<Vec<_>>());
        let ends = entries.into_iter().map(|entry| async move {
            let (done, stopped) = oneshot::channel();
            let stop = Order::Stop { reason: "the core stops".to_owned(), done };
            if entry.orders.send(stop).await.is_ok() {
                // An error means that the supervisor has ended already.
                let _ = stopped.await;
            }
        });
        futures::future::join_all(ends).await;
    }

    /// Gives an agent its place: a supervisor, and its tools in the catalog.
    async fn take_up(&self, agent: &Agent) -> Result<(), Fault> {
        let id = agent.id.clone();
        if self.shared.live(&id).is_some() {
            return Ok(());
        }
        let live = Arc::new(Live::default());
        let orders = Supervisor::spawn(&self.shared, id.clone(), Arc::clone(&live));
        let sink = Arc::new(Sink::new(&self.shared, id.clone(), Arc::clone(&live)));
        let entry = Entry { live: Arc::clone(&live), orders };
        self.shared.with(|agents| agents.insert(id.clone(), entry));
        let handle = &self.shared.options.handle;
        let (name, tools) = (provider(&id)?, agent.tools.clone());
        if let Err(fault) = handle.register(name.clone(), tools, sink.clone()).await {
            // What it once offered may not be taken today; it can offer its tools again.
            tracing::warn!(agent = %id, %fault, "the tools of an agent were not taken");
            handle.register(name, Vec::new(), sink).await?;
        }
        self.shared.quarantine(agent);
        if !agent.wanted {
            let reason = agent.stop_reason.clone();
            live.rest(Rest::Down(reason.unwrap_or_else(|| "it is not started".to_owned())), None);
            live.announce(handle, &id).await;
        }
        Ok(())
    }

    fn view(&self, agent: Agent) -> AgentView {
        let limits = throttle::limits(&agent, &self.shared.options.agent_limits);
        match self.shared.live(&agent.id) {
            Some(live) => live.view(agent, limits),
            None => Live::default().view(agent, limits),
        }
    }

    /// Tells a supervisor something and waits until it is so.
    async fn order(
        &self,
        id: &AgentId,
        order: impl FnOnce(oneshot::Sender<()>) -> Order,
    ) -> Result<(), Fault> {
        let entry = self.shared.with(|agents| agents.get(id).cloned());
        let entry = entry
            .ok_or_else(|| Fault::new(Code::AgentNotFound, format!("There is no agent {id}.")))?;
        let gone = || Fault::new(Code::CoreStopping, "The core is stopping.");
        let (done, answered) = oneshot::channel();
        entry.orders.send(order(done)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }

    async fn change(
        &self,
        caller: &Caller,
        id: &AgentId,
        input: AgentInput,
    ) -> Result<Agent, Fault> {
        self.shared.options.handle.change_agent(caller, id, input).await
    }

    async fn add_folder(&self, caller: &Caller, folder: PathBuf) -> Result<AgentView, Fault> {
        let canonical = tokio::fs::canonicalize(&folder).await.map_err(|_| {
            let message = format!("There is no folder {}.", folder.display());
            Fault::new(Code::AgentManifestInvalid, message)
        })?;
        let folder = canonical.clone();
        let read = blocking(move || manifest::read(&folder)).await?;
        let input = AgentInput::Add {
            folder: canonical.display().to_string(),
            manifest_hash: read.hash,
            manifest: read.manifest,
        };
        if self.shared.options.handle.agent(&read.id).is_ok_and(|known| known.wanted) {
            let message = format!("The agent {} is running; stop it first.", read.id);
            return Err(Fault::new(Code::AgentRunning, message));
        }
        let agent = self.change(caller, &read.id, input).await?;
        self.take_up(&agent).await?;
        Ok(self.view(agent))
    }

    async fn stop_agent(&self, caller: &Caller, id: &AgentId) -> Result<AgentView, Fault> {
        let agent = self.change(caller, id, AgentInput::Stop { reason: None }).await?;
        self.order(id, stop_for("it was stopped")).await?;
        Ok(self.view(agent))
    }

    async fn start_agent(&self, caller: &Caller, id: &AgentId) -> Result<AgentView, Fault> {
        if let Ok(agent) = self.shared.options.handle.agent(id)
            && agent.is_approved()
            && !agent.wanted
        {
            self.check_start(&agent).await?;
        }
        // What was blocked may still be on its way to its end.
        if self.shared.live(id).is_some_and(|live| live.blocked().is_some()) {
            self.order(id, stop_for("it is started again")).await?;
        }
        let agent = self.change(caller, id, AgentInput::Want).await?;
        self.order(id, Order::Start).await?;
        Ok(self.view(agent))
    }
}

/// An order to stop, and why.
fn stop_for(reason: &str) -> impl FnOnce(oneshot::Sender<()>) -> Order {
    let reason = reason.to_owned();
    move |done| Order::Stop { reason, done }
}

/// Does what waits for the disk on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let failed = || Fault::new(Code::CoreInternal, "Work on files came to no end.");
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(failed()))
}

impl AgentControl for AgentEdge {
    fn list(&self) -> Vec<AgentView> {
        self.shared.options.handle.agents().into_iter().map(|agent| self.view(agent)).collect()
    }

    fn show(&self, id: &AgentId) -> Result<AgentView, Fault> {
        Ok(self.view(self.shared.options.handle.agent(id)?))
    }

    fn add(&self, caller: Caller, folder: PathBuf) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move { self.add_folder(&caller, folder).await }.boxed()
    }

    fn approve(
        &self,
        caller: Caller,
        id: AgentId,
        approve: Approve,
    ) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move {
            let agent = self.approve_agent(&caller, &id, approve).await?;
            Ok(self.view(agent))
        }
        .boxed()
    }

    fn scan(&self, folder: PathBuf) -> BoxFuture<'_, Result<Scan, Fault>> {
        blocking(move || scan::scan(&folder, scan::Bounds::default())).boxed()
    }

    fn drift(&self, id: AgentId) -> BoxFuture<'_, Result<Vec<String>, Fault>> {
        async move {
            let agent = self.shared.options.handle.agent(&id)?;
            blocking(move || Ok(files::differences(&agent))).await
        }
        .boxed()
    }

    fn revoke(&self, caller: Caller, id: AgentId) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move { self.revoke_agent(&caller, &id).await }.boxed()
    }

    fn approve_tools(
        &self,
        caller: Caller,
        id: AgentId,
        tools: Vec<ToolId>,
    ) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move {
            let agent = self.change(&caller, &id, AgentInput::ApproveTools { tools }).await?;
            self.shared.quarantine(&agent);
            Ok(self.view(agent))
        }
        .boxed()
    }

    fn start(&self, caller: Caller, id: AgentId) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move { self.start_agent(&caller, &id).await }.boxed()
    }

    fn stop(&self, caller: Caller, id: AgentId) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move { self.stop_agent(&caller, &id).await }.boxed()
    }

    fn restart(&self, caller: Caller, id: AgentId) -> BoxFuture<'_, Result<AgentView, Fault>> {
        async move {
            self.order(&id, stop_for("it is started again")).await?;
            if self.shared.options.handle.agent(&id)?.wanted {
                launch::approved(&self.shared, &id).await?;
            }
            self.start_agent(&caller, &id).await
        }
        .boxed()
    }

    fn remove(&self, caller: Caller, id: AgentId) -> BoxFuture<'_, Result<(), Fault>> {
        async move {
            self.change(&caller, &id, AgentInput::Remove).await?;
            self.order(&id, stop_for("it was removed")).await?;
            self.shared.with(|agents| agents.remove(&id));
            self.shared.options.handle.remove_provider(provider(&id)?).await
        }
        .boxed()
    }

    fn logs(&self, id: AgentId, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        async move {
            self.shared.options.handle.agent(&id)?;
            let log = places::log(&self.shared.options.agents_dir, &id);
            self.shared.options.launcher.tail(&log, lines).await
        }
        .boxed()
    }

    fn follow_logs(
        &self,
        id: AgentId,
        lines: usize,
    ) -> BoxFuture<'_, Result<BoxStream<'static, LogLine>, Fault>> {
        async move {
            self.shared.options.handle.agent(&id)?;
            match self.shared.live(&id).and_then(|live| live.last_launched()) {
                Some(launched) => Ok(launched.follow(lines)),
                None => Ok(futures::stream::iter(self.logs(id, lines).await?).boxed()),
            }
        }
        .boxed()
    }
}
