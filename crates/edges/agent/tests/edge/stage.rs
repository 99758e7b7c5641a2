//! An engine, the edge, and an agent's folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_agent::{AgentEdge, AgentEdgeOptions, AgentRule};
use wharf_domain::provider::ProviderLimits;
use wharf_domain::scope::WorldPath;
use wharf_domain::{AuditRecord, Caller, Run, WorldSettings};
use wharf_engine::{Handle, NewFile, NewRun};
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::SystemClock;
use wharf_ports::launcher::RestartPolicy;
use wharf_ports::providers::{Approve, ProviderControl as _, ProviderState, ProviderView};
use wharf_protocol::agent::CoreLimits;
use wharf_vocab::{Fault, NodeId, Object, ProviderId, RunKey, SandboxLevel, ToolId, WorldId};

use crate::agent::{Agent, LONG, tool};
use crate::launcher::{Launch, Played};
use crate::objects::Moody;
use crate::trust::{Doors, Kept};

/// Everything around one agent.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) edge: AgentEdge,
    pub(crate) launcher: Arc<Played>,
    pub(crate) doors: Arc<Doors>,
    pub(crate) vault: Arc<Kept>,
    pub(crate) objects: Arc<Moody>,
    store: Arc<MemoryStore>,
    launches: mpsc::Receiver<Launch>,
    pub(crate) dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut AgentEdgeOptions)) -> Self {
        Self::with_engine(|_| {}, adjust).await
    }

    /// The same on an engine with options of its own.
    pub(crate) async fn with_engine(
        engine: impl FnOnce(&mut wharf_engine::EngineOptions),
        adjust: impl FnOnce(&mut AgentEdgeOptions),
    ) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock));
        let dir = tempfile::tempdir().expect("a folder");
        let stage = Self::on(store, Arc::new(Moody::new()), dir, (engine, adjust)).await;
        stage.make_world("default").await;
        stage.write_manifest("0.1.0");
        stage
    }

    async fn on(
        store: Arc<MemoryStore>,
        objects: Arc<Moody>,
        dir: tempfile::TempDir,
        (adjust_engine, adjust): (
            impl FnOnce(&mut wharf_engine::EngineOptions),
            impl FnOnce(&mut AgentEdgeOptions),
        ),
    ) -> Self {
        let node = NodeId::new("test").expect("valid");
        let mut engine =
            wharf_engine::EngineOptions::new(node, store.clone(), Arc::new(SystemClock), 1);
        engine.objects = Some(objects.clone());
        adjust_engine(&mut engine);
        let handle = Handle::start(engine).await.expect("starts");
        let (launcher, launches) = Played::new();
        let (vault, doors) = (Arc::new(Kept::default()), Arc::new(Doors::default()));
        let mut options = options(&handle, dir.path());
        options.hosting.launcher = launcher.clone();
        options.hosting.vault = vault.clone();
        options.hosting.egress = doors.clone();
        adjust(&mut options);
        let edge = AgentEdge::start(options).await.expect("starts");
        Self { handle, edge, launcher, doors, vault, objects, store, launches, dir }
    }

    /// Stops the core and starts another one on what it has written.
    pub(crate) async fn restarted(self) -> Self {
        self.handle.stop(Duration::from_secs(1)).await;
        self.edge.stop().await;
        Self::on(self.store, self.objects, self.dir, (|_| {}, |_| {})).await
    }

    pub(crate) async fn make_world(&self, name: &str) {
        let world = WorldId::new(name).expect("valid");
        let made = self.handle.worlds().create(&owner(), world, WorldSettings::default()).await;
        made.expect("made");
    }

    pub(crate) fn write_manifest(&self, version: &str) {
        self.write_manifest_with(json!({"version": version}));
    }

    /// Writes the manifest, with these fields in place of the usual ones.
    pub(crate) fn write_manifest_with(&self, fields: Value) {
        let mut manifest = json!({
            "id": "dev.example.hello", "version": "0.1.0", "permissions": [],
            "entrypoint": {"type": "command", "value": "./hello", "args": ["agent.py"]},
        });
        for (name, value) in object(fields) {
            manifest[name] = value;
        }
        self.write("opensentience.agent.json", &manifest.to_string());
        for file in ["hello", "agent.py"] {
            if !self.folder().join(file).exists() {
                self.write(file, "as it was approved");
            }
        }
    }

    /// The agent's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    /// Writes a file of the agent's folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.folder()).expect("made");
        std::fs::write(self.folder().join(name), text).expect("writes");
    }

    /// Adds, approves and starts the agent; its first launch.
    pub(crate) async fn started(&mut self) -> Launch {
        self.started_with(Approve::default()).await
    }

    pub(crate) async fn started_with(&mut self, approve: Approve) -> Launch {
        self.edge.control().add(owner(), self.folder()).await.expect("added");
        self.edge.control().approve(owner(), id(), approve).await.expect("approved");
        self.edge.control().start(owner(), id()).await.expect("started");
        self.launch().await
    }

    /// The next launch.
    pub(crate) async fn launch(&mut self) -> Launch {
        let next = tokio::time::timeout(LONG, self.launches.recv()).await;
        next.expect("a launch comes").expect("the launcher lives")
    }

    /// Starts the agent, which joins and offers these tools.
    pub(crate) async fn joined(&mut self, tools: &[&str]) -> (Launch, Agent) {
        let launch = self.started().await;
        let mut agent = Agent::join(&launch, &["tools"]).await;
        let tools: Vec<Value> = tools.iter().map(|name| tool(name)).collect();
        agent.offer(&tools).await;
        self.until(|view| view.state == ProviderState::Running).await;
        (launch, agent)
    }

    /// The launch joins and offers these tools.
    pub(crate) async fn join(&self, launch: &Launch, tools: &[&str]) -> Agent {
        let mut agent = Agent::join(launch, &["tools"]).await;
        let tools: Vec<Value> = tools.iter().map(|name| tool(name)).collect();
        agent.offer(&tools).await;
        agent
    }

    /// How a run ended that must fail.
    pub(crate) async fn failure_of(&self, run: &Run) -> Fault {
        let run = self.end_of(&run.key).await;
        run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("failed").clone()
    }

    /// Starts a run in a world.
    pub(crate) async fn run_in(&self, world: &str, name: &str) -> Arc<Run> {
        let mut new = new(name, Object::new());
        new.world = WorldId::new(world).expect("valid");
        self.handle.runs().create(&owner(), new).await.expect("accepted").run
    }

    pub(crate) async fn run(&self, name: &str, inputs: Value) -> Result<Arc<Run>, Fault> {
        let new = new(name, object(inputs));
        self.handle.runs().create(&owner(), new).await.map(|accepted| accepted.run)
    }

    /// Starts a run that reads and writes files.
    pub(crate) async fn run_with(&self, name: &str, inputs: Value, outputs: Value) -> Arc<Run> {
        let mut new = new(name, object(inputs));
        new.outputs = object(outputs);
        self.handle.runs().create(&owner(), new).await.expect("accepted").run
    }

    /// Puts a file into the world.
    pub(crate) async fn put(&self, path: &str, content: impl Into<Bytes>) {
        let new = NewFile {
            world: world(),
            path: WorldPath::parse(path).expect("a path"),
            media_type: None,
            bytes: None,
            b3: None,
        };
        let body = futures::stream::iter([Ok(content.into())]).boxed();
        self.handle.files().put(&owner(), new, body).await.expect("put");
    }

    /// What a file of the world holds.
    pub(crate) async fn file(&self, path: &str) -> String {
        let path = WorldPath::parse_any(path).expect("a path");
        let body = self.handle.files().read(&owner(), &world(), &path, None).await.expect("there");
        let pieces: Vec<Bytes> = body.stream.try_collect().await.expect("readable");
        String::from_utf8(pieces.concat()).expect("text")
    }

    pub(crate) async fn end_of(&self, key: &RunKey) -> Arc<Run> {
        let run = self.handle.runs().wait(key, LONG).await.expect("known");
        assert!(run.is_over(), "{key} is still {}", run.status());
        run
    }

    /// Waits until a run is as wanted.
    pub(crate) async fn until_run(&self, key: &RunKey, wanted: impl Fn(&Run) -> bool) -> Arc<Run> {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let run = self.handle.runs().get(key).await.expect("known");
            if wanted(&run) {
                return run;
            }
            assert!(tokio::time::Instant::now() < deadline, "{run:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until the agent is as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&ProviderView) -> bool) -> ProviderView {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let view = self.edge.control().show(&id()).expect("known");
            if wanted(&view) {
                return view;
            }
            assert!(tokio::time::Instant::now() < deadline, "{view:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The audit's records of an event, waited for until there is one.
    pub(crate) async fn audited(&self, event: &str) -> Vec<AuditRecord> {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let all = self.handle.audit().list(0, 10_000).await.expect("readable");
            let records = all.into_iter().map(|sealed| sealed.record);
            let found: Vec<_> = records.filter(|record| record.event == event).collect();
            if !found.is_empty() {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "{event} was never audited");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// An edge as the tests set it up.
pub(crate) fn options(handle: &Handle, dir: &Path) -> AgentEdgeOptions {
    let hosting = wharf_hosting::HostingOptions {
        handle: handle.clone(),
        launcher: Played::new().0,
        folder: dir.join("agents"),
        sockets_dir: None,
        restart: RestartPolicy { pause_ms: 1, pause_max_ms: 2, ..RestartPolicy::default() },
        stop_grace: Duration::from_secs(2),
        connect_within: Duration::from_secs(60),
        vault: Arc::new(Kept::default()),
        egress: Arc::new(Doors::default()),
        user_home: Some(dir.join("user")),
        hidden: vec![dir.join("wharf")],
        sandbox: SandboxLevel::Standard,
        sandbox_min: None,
        limits: ProviderLimits::default(),
    };
    AgentEdgeOptions {
        hosting,
        transport: crate::transport(dir),
        instance: "test".into(),
        limits: CoreLimits::default(),
        storage_origin: None,
        rule: AgentRule::default(),
        rules: BTreeMap::new(),
    }
}

pub(crate) fn owner() -> Caller {
    Caller::owner()
}

pub(crate) fn id() -> ProviderId {
    ProviderId::new("dev.example.hello").expect("valid")
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}

fn world() -> WorldId {
    WorldId::new("default").expect("valid")
}

pub(crate) fn new(name: &str, inputs: Object) -> NewRun {
    let tool = ToolId::new(format!("dev.example.hello/{name}")).expect("valid");
    NewRun::new(tool, inputs, world())
}
