//! Steering providers: adding, approving, starting, stopping, looking.

mod approval;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::oneshot;
use wharf_domain::{Caller, Provider, ProviderInput, ProviderKind};
use wharf_engine::Handle;
use wharf_ports::launcher::LogLine;
use wharf_ports::logins::LoginControl;
use wharf_ports::providers::{
    Approve, DeclaredProvider, NewFolder, ProviderControl, ProviderView, Scan, Steering, UsagePoint,
};
use wharf_vocab::{Code, Fault, ProviderId, SeriesRange, ToolId};

use crate::files::ReadManifest;
use crate::host::{HostEntry, SupervisorOrder};
use crate::kind::HostedKind;
use crate::live::{IdleState, Live};
use crate::sink::HostingSink;
use crate::supervisor::Supervisor;
use crate::tasks::blocking;
use crate::{files, launch, meter, places};

/// Steers the providers of one kind. Cloning it is cheap.
#[derive(Clone)]
pub struct Control {
    kind: Arc<dyn HostedKind>,
}

impl Control {
    /// Takes up the providers of this kind that are known, and starts what is wanted.
    pub async fn start(kind: Arc<dyn HostedKind>) -> Result<Self, Fault> {
        meter::start(&kind);
        let control = Self { kind };
        for agent in control.handle().providers().list() {
            if !control.kind.owns(&agent) {
                continue;
            }
            if let Err(fault) = control.take_up(&agent).await {
                // One that cannot be taken up any more must not keep the core from starting.
                tracing::error!(provider = %agent.id, %fault, "a provider was not taken up");
                continue;
            }
            if agent.wanted {
                control.order(&agent.id, SupervisorOrder::Start).await?;
            }
        }
        Ok(control)
    }

    /// Ends all processes in order. Providers stay wanted, so the next core starts them again.
    pub async fn stop_all(&self) {
        let entries: Vec<_> =
            self.kind.host().with(|providers| providers.values().cloned().collect());
        let ends = entries.into_iter().map(|entry: HostEntry| async move {
            let (done, stopped) = oneshot::channel();
            let why = Fault::new(Code::ToolUnavailable, "the core stops");
            let stop = SupervisorOrder::Stop { why, again: false, done };
            if entry.orders.send(stop).await.is_ok() {
                // An error means that the supervisor has ended already.
                let _ = stopped.await;
            }
        });
        futures::future::join_all(ends).await;
        self.kind.host().finish().await;
    }

    fn handle(&self) -> &Handle {
        &self.kind.host().options().handle
    }

    /// Gives a provider its place: a supervisor, and its tools in the catalog.
    async fn take_up(&self, agent: &Provider) -> Result<(), Fault> {
        let (id, host) = (agent.id.clone(), self.kind.host());
        if host.live(&id).is_some() {
            return Ok(());
        }
        let live = Arc::new(Live::default());
        let orders = Supervisor::spawn(&self.kind, id.clone(), Arc::clone(&live));
        let sink = Arc::new(HostingSink::new(&self.kind, Arc::clone(&live)));
        let entry = HostEntry { live: Arc::clone(&live), orders };
        host.with(|providers| providers.insert(id.clone(), entry));
        let handle = self.handle();
        let (name, tools) = (id.clone(), agent.tools.clone());
        if let Err(fault) = handle.providers().register(name.clone(), tools, sink.clone()).await {
            // What it once offered may not be taken today; it can offer its tools again.
            tracing::warn!(provider = %id, %fault, "the tools of a provider were not taken");
            handle.providers().register(name, Vec::new(), sink).await?;
        }
        host.quarantine(agent);
        if !agent.wanted {
            live.rest(IdleState::Down(why_down(agent)), None);
            live.announce(handle, &id).await;
        }
        Ok(())
    }

    /// A provider of this kind.
    fn known(&self, id: &ProviderId) -> Result<Provider, Fault> {
        let agent = self.handle().providers().get(id);
        agent.ok().filter(|agent| self.kind.owns(agent)).ok_or_else(|| self.kind.unknown(id))
    }

    fn view(&self, agent: Provider) -> ProviderView {
        let usual = self.kind.host().options().usual();
        let (limits, wishes) = (usual.limits(&agent), usual.wishes(&agent));
        let view = match self.kind.host().live(&agent.id) {
            Some(live) => live.view(agent, limits),
            None => Live::default().view(agent, limits),
        };
        ProviderView { wishes, ..view }
    }

    /// Tells a supervisor something and waits until it is so.
    async fn order(
        &self,
        id: &ProviderId,
        order: impl FnOnce(oneshot::Sender<()>) -> SupervisorOrder,
    ) -> Result<(), Fault> {
        let entry = self.kind.host().entry(id).ok_or_else(|| self.kind.unknown(id))?;
        let gone = || Fault::new(Code::CoreStopping, "The core is stopping.");
        let (done, answered) = oneshot::channel();
        entry.orders.send(order(done)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }

    /// Lets a provider take nothing new; what is answered comes once all it had is finished and
    /// its processes are gone, or once somebody has decided otherwise.
    async fn begin_drain(
        &self,
        id: &ProviderId,
        reason: &str,
    ) -> Result<oneshot::Receiver<()>, Fault> {
        let entry = self.kind.host().entry(id).ok_or_else(|| self.kind.unknown(id))?;
        {
            let mut pool = entry.live.pool();
            let is_down = matches!(pool.rest, IdleState::Down(_) | IdleState::Unknown);
            if !(is_down && pool.slots.is_empty()) {
                // From now on, however much the supervisor has to do before.
                pool.draining = true;
            }
        }
        let (done, finished) = oneshot::channel();
        let why = Fault::new(Code::ToolUnavailable, reason);
        let order = SupervisorOrder::Drain { why, done };
        let gone = |_| Fault::new(Code::CoreStopping, "The core is stopping.");
        entry.orders.send(order).await.map_err(gone)?;
        Ok(finished)
    }

    async fn change(
        &self,
        caller: &Caller,
        id: &ProviderId,
        input: ProviderInput,
    ) -> Result<Provider, Fault> {
        self.known(id)?;
        self.handle().providers().change(caller, id, input).await
    }

    /// Takes up what a folder has, and lets go of what it had.
    async fn add_folder(
        &self,
        caller: &Caller,
        new: NewFolder,
    ) -> Result<Vec<ProviderView>, Fault> {
        let read = Arc::clone(&self.kind).read_folder(new).await?;
        let mut views = Vec::new();
        for one in &read.manifests {
            let agent = self.add_one(caller, &read.folder, one).await?;
            views.push(ProviderView { hints: read.hints.clone(), ..self.view(agent) });
        }
        for known in self.handle().providers().list() {
            if self.kind.owns(&known) && self.kind.is_dropped(&known, &read) {
                self.stop(caller.clone(), known.id.clone()).await?;
                self.remove(caller.clone(), known.id).await?;
            }
        }
        Ok(views)
    }

    async fn add_one(
        &self,
        caller: &Caller,
        folder: &Path,
        read: &ReadManifest,
    ) -> Result<Provider, Fault> {
        let input = ProviderInput::Add {
            folder: folder.display().to_string(),
            manifest_hash: read.hash.clone(),
            manifest: read.manifest.clone(),
        };
        let before = self.handle().providers().get(&read.id).ok();
        let agent = self.handle().providers().change(caller, &read.id, input).await?;
        self.take_up(&agent).await?;
        if let Some(before) = before.filter(|before| before.wanted && !agent.wanted)
            && let Some(live) = self.kind.host().live(&agent.id)
        {
            let id = &agent.id;
            let message = format!("{id} was added again with another manifest; approve it first.");
            live.supersede(before.approval, Fault::new(Code::AgentNotApproved, message));
        }
        Ok(agent)
    }

    async fn add_first(&self, caller: &Caller, folder: PathBuf) -> Result<ProviderView, Fault> {
        let views = self.add_folder(caller, folder.into()).await?;
        let none =
            || Fault::new(self.kind.manifest_file().invalid, "The folder has nothing to add.");
        views.into_iter().next().ok_or_else(none)
    }

    async fn declare_one(
        &self,
        caller: &Caller,
        declared: DeclaredProvider,
    ) -> Result<ProviderView, Fault> {
        let known = self.handle().providers().get(&declared.id);
        if let Ok(other) = known.as_ref()
            && !self.kind.owns(other)
        {
            let message = format!("{} is the name of another provider already.", declared.id);
            return Err(Fault::new(Code::ToolConflict, message));
        }
        let kind = Arc::clone(&self.kind);
        let folder = blocking(move || kind.declare(declared)).await?;
        self.add_first(caller, folder).await
    }

    async fn start_one(&self, caller: &Caller, id: &ProviderId) -> Result<ProviderView, Fault> {
        if let Ok(agent) = self.known(id)
            && agent.is_approved()
            && !agent.wanted
        {
            self.check_start(&agent).await?;
        }
        // What was blocked may still be on its way to its end.
        let is_blocked = || {
            let live = self.kind.host().live(id);
            live.is_some_and(|live| live.pool().blocked.is_some())
        };
        if self.known(id)?.is_approved() && is_blocked() {
            self.order(id, stop_for("it is started again")).await?;
        }
        let agent = self.change(caller, id, ProviderInput::Want).await?;
        self.order(id, SupervisorOrder::Start).await?;
        Ok(self.view(agent))
    }
}

/// A line of a log as people may see it: the launcher has cut secrets out of it, and here goes
/// what the owner's patterns match.
fn shown(handle: &Handle, line: LogLine) -> LogLine {
    match handle.trust().redacted(&line.text) {
        Some(text) => LogLine { text: text.into(), ..line },
        None => line,
    }
}

/// An order to stop, and why.
fn stop_for(reason: &str) -> impl FnOnce(oneshot::Sender<()>) -> SupervisorOrder {
    let why = Fault::new(Code::ToolUnavailable, reason);
    move |done| SupervisorOrder::Stop { why, again: false, done }
}

/// Why a provider that nobody wants to run is down.
fn why_down(provider: &Provider) -> Fault {
    if !provider.drift.is_empty() {
        return provider.manifest.kind.of().drifted(&provider.id, &provider.drift);
    }
    let reason = provider.stop_reason.clone();
    Fault::new(Code::ToolUnavailable, reason.unwrap_or_else(|| "it is not started".to_owned()))
}

impl ProviderControl for Control {
    fn list(&self) -> Vec<ProviderView> {
        let own =
            self.handle().providers().list().into_iter().filter(|agent| self.kind.owns(agent));
        own.map(|agent| self.view(agent)).collect()
    }

    fn show(&self, id: &ProviderId) -> Result<ProviderView, Fault> {
        Ok(self.view(self.known(id)?))
    }

    fn add(&self, caller: Caller, folder: PathBuf) -> Steering<'_, ProviderView> {
        async move { self.add_first(&caller, folder).await }.boxed()
    }

    fn add_all(&self, caller: Caller, new: NewFolder) -> Steering<'_, Vec<ProviderView>> {
        async move { self.add_folder(&caller, new).await }.boxed()
    }

    fn declare(&self, caller: Caller, declared: DeclaredProvider) -> Steering<'_, ProviderView> {
        async move { self.declare_one(&caller, declared).await }.boxed()
    }

    fn approve(
        &self,
        caller: Caller,
        id: ProviderId,
        approve: Approve,
    ) -> Steering<'_, ProviderView> {
        async move {
            let approved = self.approve_one(&caller, &id, approve).await?;
            match &approved.manifest.kind {
                ProviderKind::ToolServer(server) => self.enable(&caller, &id, server).await,
                // Its tools are known only once it runs.
                ProviderKind::Mcp(_) => self.start_one(&caller, &id).await,
                ProviderKind::Agent(_) | ProviderKind::Operative => Ok(self.view(approved)),
            }
        }
        .boxed()
    }

    fn scan(&self, folder: PathBuf) -> Steering<'_, Scan> {
        let kind = Arc::clone(&self.kind);
        blocking(move || kind.scan(&folder)).boxed()
    }

    fn drift(&self, id: ProviderId) -> Steering<'_, Vec<String>> {
        async move {
            let (agent, file) = (self.known(&id)?, self.kind.manifest_file());
            blocking(move || Ok(files::differences(file, &agent))).await
        }
        .boxed()
    }

    fn revoke(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        async move { self.revoke_one(&caller, &id).await }.boxed()
    }

    fn approve_tools(
        &self,
        caller: Caller,
        id: ProviderId,
        tools: Vec<ToolId>,
    ) -> Steering<'_, ProviderView> {
        async move {
            let agent = self.change(&caller, &id, ProviderInput::ApproveTools { tools }).await?;
            self.kind.host().quarantine(&agent);
            Ok(self.view(agent))
        }
        .boxed()
    }

    fn start(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        async move { self.start_one(&caller, &id).await }.boxed()
    }

    fn stop(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        async move {
            let agent = self.change(&caller, &id, ProviderInput::Stop { reason: None }).await?;
            self.order(&id, stop_for("it was stopped")).await?;
            Ok(self.view(agent))
        }
        .boxed()
    }

    fn drain(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        async move {
            let agent = self.change(&caller, &id, ProviderInput::Stop { reason: None }).await?;
            // Whoever asked does not wait for it: a call may take for hours.
            drop(self.begin_drain(&id, "it was drained").await?);
            Ok(self.view(agent))
        }
        .boxed()
    }

    fn restart(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        async move {
            let why = Fault::new(Code::ToolUnavailable, "it is started again");
            self.order(&id, |done| SupervisorOrder::Stop { why, again: true, done }).await?;
            if self.known(&id)?.wanted {
                launch::approved(&self.kind, &id).await?;
            }
            self.start_one(&caller, &id).await
        }
        .boxed()
    }

    fn refresh(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        async move {
            if !self.known(&id)?.wanted {
                let message = format!("{id} is stopped; what it offers is read when it starts.");
                return Err(Fault::new(Code::RequestInvalid, message));
            }
            match Arc::clone(&self.kind).refresh(id.clone()).await? {
                true => Ok(self.view(self.known(&id)?)),
                false => self.restart(caller, id).await,
            }
        }
        .boxed()
    }

    fn remove(&self, caller: Caller, id: ProviderId) -> Steering<'_, ()> {
        async move {
            let agent = self.known(&id)?;
            self.change(&caller, &id, ProviderInput::Remove).await?;
            self.order(&id, stop_for("it was removed")).await?;
            self.kind.host().with(|providers| providers.remove(&id));
            self.handle().providers().remove(id).await?;
            let kind = Arc::clone(&self.kind);
            blocking(move || {
                kind.removed(&agent);
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn usage(&self, id: &ProviderId, range: SeriesRange) -> Result<Vec<UsagePoint>, Fault> {
        self.known(id)?;
        let live = self.kind.host().live(id);
        Ok(live.map_or_else(Vec::new, |live| live.usage().points(range)))
    }

    fn logs(&self, id: ProviderId, lines: usize) -> Steering<'_, Vec<LogLine>> {
        async move {
            self.known(&id)?;
            let options = self.kind.host().options();
            let found = options.launcher.tail(&places::log(&options.folder, &id), lines).await?;
            Ok(found.into_iter().map(|line| shown(&options.handle, line)).collect())
        }
        .boxed()
    }

    fn follow_logs(
        &self,
        id: ProviderId,
        lines: usize,
    ) -> Steering<'_, BoxStream<'static, LogLine>> {
        async move {
            self.known(&id)?;
            match self.kind.host().live(&id).and_then(|live| live.pool().last.clone()) {
                Some(launched) => {
                    let handle = self.handle().clone();
                    Ok(launched.follow(lines).map(move |line| shown(&handle, line)).boxed())
                }
                None => Ok(futures::stream::iter(self.logs(id, lines).await?).boxed()),
            }
        }
        .boxed()
    }

    fn logins(&self) -> Option<Arc<dyn LoginControl>> {
        Arc::clone(&self.kind).logins()
    }
}
