//! Agents by script: the domain's own rules decide, tests say how the processes fare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use wharf_domain::provider::{
    AgentDetails, Entrypoint, Manifest, ProviderInput, ProviderKind, ProviderLimits, Serving,
    Terms, ToolServer,
};
use wharf_domain::{Caller, Provider, ToolDef};
use wharf_ports::launcher::{LogLine, LogSource};
use wharf_ports::providers::{
    Approve, DeclaredProvider, FoundProvider, ProviderControl, ProviderState, ProviderView, Scan,
    UsagePoint,
};
use wharf_vocab::{
    Code, Digest, Fault, Isolation, LaunchId, ProviderId, SandboxLevel, SeriesRange, Timestamp,
    ToolId,
};

/// A folder that makes whoever reads it fall over.
pub(crate) const BROKEN_FOLDER: &str = "/agents/c4nary-broken";

#[derive(Debug)]
pub(crate) struct ScriptedAgents {
    inner: Mutex<BTreeMap<ProviderId, Scripted>>,
    /// Stops that have reached the gate.
    pub(crate) at_gate: AtomicUsize,
    gate: Semaphore,
}

#[derive(Debug)]
struct Scripted {
    view: ProviderView,
    log: Vec<LogLine>,
    followers: Vec<mpsc::UnboundedSender<LogLine>>,
}

fn id(text: &str) -> ProviderId {
    ProviderId::new(text).expect("valid")
}

fn manifest(folder: &Path) -> Result<(ProviderId, Manifest), Fault> {
    assert_ne!(folder, Path::new(BROKEN_FOLDER), "c4nary");
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(name) = name.strip_prefix("tool.") {
        return Ok(served(name));
    }
    if !name.starts_with("dev.") {
        let message = "The manifest's field id is missing.";
        return Err(Fault::new(Code::AgentManifestInvalid, message));
    }
    let manifest = Manifest {
        name: "Hello".to_owned(),
        version: "0.1.0".to_owned(),
        description: "says hello".to_owned(),
        entrypoint: Entrypoint { program: "./hello".to_owned(), args: vec!["--fast".to_owned()] },
        permissions: vec!["network:egress:example.dev".to_owned(), "env:read:LANG".to_owned()],
        limits: ProviderLimits { calls_max: Some(4), ..ProviderLimits::default() },
        isolation: None,
        kind: ProviderKind::Agent(AgentDetails::default()),
    };
    Ok((id(name), manifest))
}

/// A tool server, whose tool stands in the namespace `text`.
fn served(name: &str) -> (ProviderId, Manifest) {
    let reference = format!("text/{name}@1");
    let tool = ToolId::new(&reference).expect("valid");
    let manifest = Manifest {
        name: reference.clone(),
        version: "1".to_owned(),
        description: "shouts".to_owned(),
        entrypoint: Entrypoint { program: "./handler.py".to_owned(), args: Vec::new() },
        permissions: vec!["secret:use:KEY".to_owned(), "env:read:LANG".to_owned()],
        limits: ProviderLimits { calls_max: Some(4), ..ProviderLimits::default() },
        isolation: None,
        kind: ProviderKind::ToolServer(Box::new(ToolServer {
            how: Serving::Handler { file: "handler.py".to_owned(), cold: false, function: None },
            tool: ToolDef::new(tool, "shouts", json!({"type": "object"})),
            token_secret: None,
            calls_max: Some(4),
            environment: None,
            required_outputs: Vec::new(),
            https_only: false,
            source: Default::default(),
            sandbox: None,
        })),
    };
    (id(&reference), manifest)
}

impl ScriptedAgents {
    /// No agents, and a gate that is open.
    pub(crate) fn new() -> Arc<Self> {
        Self::with_gate(Semaphore::MAX_PERMITS)
    }

    /// No agents, and a gate at which stops wait.
    pub(crate) fn closed() -> Arc<Self> {
        Self::with_gate(0)
    }

    fn with_gate(permits: usize) -> Arc<Self> {
        let gate = Semaphore::new(permits);
        Arc::new(Self { inner: Mutex::default(), at_gate: AtomicUsize::new(0), gate })
    }

    /// Opens the gate.
    pub(crate) fn open(&self) {
        self.gate.add_permits(1);
    }

    fn inner(&self) -> MutexGuard<'_, BTreeMap<ProviderId, Scripted>> {
        self.inner.lock().expect("unpoisoned")
    }

    /// Says how an agent fares.
    pub(crate) fn set(&self, agent: &str, change: impl FnOnce(&mut ProviderView)) {
        change(&mut self.inner().get_mut(&id(agent)).expect("known").view);
    }

    /// Writes a line to an agent's log.
    pub(crate) fn say(&self, agent: &str, source: LogSource, text: &str) {
        let line = LogLine { at: Timestamp(1_763_164_800_007), source, text: text.into() };
        let mut inner = self.inner();
        let scripted = inner.get_mut(&id(agent)).expect("known");
        scripted.log.push(line.clone());
        scripted.followers.retain(|follower| follower.send(line.clone()).is_ok());
    }

    /// Ends an agent's process, and so the following of its log.
    pub(crate) fn end_launch(&self, agent: &str) {
        self.inner().get_mut(&id(agent)).expect("known").followers.clear();
    }

    /// How many readers follow an agent's log.
    pub(crate) fn followers(&self, agent: &str) -> usize {
        let mut inner = self.inner();
        let followers = &mut inner.get_mut(&id(agent)).expect("known").followers;
        followers.retain(|follower| !follower.is_closed());
        followers.len()
    }

    fn change(
        &self,
        caller: &Caller,
        id: &ProviderId,
        input: &ProviderInput,
    ) -> Result<ProviderView, Fault> {
        let mut inner = self.inner();
        let known = inner.get(id).map(|scripted| scripted.view.provider.clone());
        let decided = Provider::decide(known.as_ref(), id, input, &caller.to_ref())?;
        let agent = match decided {
            Some((entry, _)) => Provider::apply(known, id, Timestamp(0), &entry),
            None => known,
        };
        let agent = agent.expect("an agent");
        let state = match (agent.wanted, agent.is_approved()) {
            (true, _) => ProviderState::Starting,
            (false, _) if matches!(input, ProviderInput::Stop { .. }) => ProviderState::Stopped,
            (false, true) => ProviderState::Approved,
            (false, false) => ProviderState::Added,
        };
        let view = ProviderView {
            state,
            reason: None,
            pid: None,
            launch: agent.wanted.then(|| LaunchId::new("l1").expect("valid")),
            last_heartbeat: None,
            health: None,
            fence: None,
            instances: usize::from(agent.wanted),
            limits: match &agent.approval {
                Some(approval) => agent.manifest.limits.stricter(&approval.terms.limits),
                None => agent.manifest.limits.clone(),
            },
            wishes: Vec::new(),
            hints: Vec::new(),
            provider: agent,
        };
        if view.provider.removed {
            inner.remove(id);
            return Ok(view);
        }
        let (log, followers) =
            inner.remove(id).map_or_else(Default::default, |old| (old.log, old.followers));
        inner.insert(id.clone(), Scripted { view: view.clone(), log, followers });
        Ok(view)
    }

    fn tail(&self, id: &ProviderId, lines: usize) -> Result<Vec<LogLine>, Fault> {
        self.show(id)?;
        let log = self.inner()[id].log.clone();
        Ok(log[log.len().saturating_sub(lines)..].to_vec())
    }
}

impl ProviderControl for ScriptedAgents {
    fn list(&self) -> Vec<ProviderView> {
        // The edge must not rely on an order.
        self.inner().values().rev().map(|scripted| scripted.view.clone()).collect()
    }

    fn show(&self, id: &ProviderId) -> Result<ProviderView, Fault> {
        let unknown = || Fault::new(Code::AgentNotFound, format!("There is no agent {id}."));
        self.inner().get(id).map(|scripted| scripted.view.clone()).ok_or_else(unknown)
    }

    fn add(&self, caller: Caller, folder: PathBuf) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move {
            let (id, manifest) = manifest(&folder)?;
            let folder = folder.display().to_string();
            let manifest_hash = Digest::of(&[b"manifest"]);
            self.change(&caller, &id, &ProviderInput::Add { folder, manifest_hash, manifest })
        }
        .boxed()
    }

    fn declare(
        &self,
        caller: Caller,
        declared: DeclaredProvider,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move {
            let DeclaredProvider { id, manifest, .. } = declared;
            let folder = format!("/mcp-servers/{id}");
            let manifest_hash = Digest::of(&[b"manifest"]);
            self.change(&caller, &id, &ProviderInput::Add { folder, manifest_hash, manifest })
        }
        .boxed()
    }

    fn refresh(
        &self,
        caller: Caller,
        id: ProviderId,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.restart(caller, id)
    }

    /// It finds the folder itself, and one below it that is not right.
    fn scan(&self, folder: PathBuf) -> BoxFuture<'_, Result<Scan, Fault>> {
        async move {
            let found = [folder.clone(), folder.join("broken")].map(|folder| {
                let manifest = manifest(&folder);
                FoundProvider { folder, manifest }
            });
            Ok(Scan { found: found.to_vec(), cut_short: Some("It looked at 2 folders.".into()) })
        }
        .boxed()
    }

    fn drift(&self, id: ProviderId) -> BoxFuture<'_, Result<Vec<String>, Fault>> {
        async move { Ok(self.show(&id)?.provider.drift) }.boxed()
    }

    fn approve(
        &self,
        caller: Caller,
        id: ProviderId,
        approve: Approve,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move {
            let all = self.show(&id)?.provider.manifest.permissions;
            let permissions = approve.permissions.unwrap_or(all);
            let files = BTreeMap::from([("hello".to_owned(), Digest::of(&[b"hello"]))]);
            let terms = Terms {
                sandbox: approve.sandbox.unwrap_or(SandboxLevel::Standard),
                isolation: approve.isolation.unwrap_or(Isolation::Shared),
                limits: approve.limits,
                only_tightened: true,
            };
            let manifest_hash = approve.manifest_hash;
            let input = ProviderInput::Approve { manifest_hash, permissions, files, terms };
            self.change(&caller, &id, &input)
        }
        .boxed()
    }

    fn revoke(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move { self.change(&caller, &id, &ProviderInput::Revoke) }.boxed()
    }

    fn approve_tools(
        &self,
        caller: Caller,
        id: ProviderId,
        tools: Vec<ToolId>,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move { self.change(&caller, &id, &ProviderInput::ApproveTools { tools }) }.boxed()
    }

    fn start(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move { self.change(&caller, &id, &ProviderInput::Want) }.boxed()
    }

    fn stop(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move {
            self.at_gate.fetch_add(1, Ordering::SeqCst);
            let _open = self.gate.acquire().await;
            self.change(&caller, &id, &ProviderInput::Stop { reason: None })
        }
        .boxed()
    }

    fn drain(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move {
            self.change(&caller, &id, &ProviderInput::Stop { reason: None })?;
            self.set(id.as_str(), |view| view.state = ProviderState::Draining);
            self.show(&id)
        }
        .boxed()
    }

    fn restart(
        &self,
        caller: Caller,
        id: ProviderId,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        async move {
            self.stop(caller.clone(), id.clone()).await?;
            self.start(caller, id).await
        }
        .boxed()
    }

    fn remove(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<(), Fault>> {
        async move { self.change(&caller, &id, &ProviderInput::Remove).map(drop) }.boxed()
    }

    fn usage(&self, id: &ProviderId, range: SeriesRange) -> Result<Vec<UsagePoint>, Fault> {
        self.show(id)?;
        let point = |n: u64| UsagePoint {
            at: Timestamp(1_763_164_800_000 + n * range.step_ms()),
            memory_bytes: 10 + n,
            cpu_ms: n,
            processes: 1,
        };
        Ok((0..2).map(point).collect())
    }

    fn logs(&self, id: ProviderId, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        async move { self.tail(&id, lines) }.boxed()
    }

    fn follow_logs(
        &self,
        id: ProviderId,
        lines: usize,
    ) -> BoxFuture<'_, Result<BoxStream<'static, LogLine>, Fault>> {
        async move {
            let tail = self.tail(&id, lines)?;
            let (follower, new) = mpsc::unbounded_channel();
            self.inner().get_mut(&id).expect("known").followers.push(follower);
            let new = stream::unfold(new, |mut new: mpsc::UnboundedReceiver<LogLine>| async {
                let line = new.recv().await?;
                Some((line, new))
            });
            Ok(stream::iter(tail).chain(new).boxed())
        }
        .boxed()
    }
}
