//! An engine, the edge, and an agent's folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_agent::{AgentEdge, Options};
use wharf_domain::agent::AgentLimits;
use wharf_domain::{AuditRecord, Caller, Run, WorldSettings};
use wharf_engine::agents::{AgentControl as _, AgentState, AgentView, Approve};
use wharf_engine::launcher::RestartPolicy;
use wharf_engine::{Handle, NewRun};
use wharf_journal::audit::AuditKey;
use wharf_ports::SystemClock;
use wharf_ports::memory::MemoryStore;
use wharf_protocol::agent::CoreLimits;
use wharf_vocab::{AgentId, Fault, NodeId, Object, RunKey, SandboxLevel, ToolId, WorldId};

use crate::agent::{Agent, LONG, tool};
use crate::launcher::{Launch, Played};
use crate::trust::{Doors, Kept};

/// Everything around one agent.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) edge: AgentEdge,
    launches: mpsc::Receiver<Launch>,
    pub(crate) dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut Options)) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let engine = wharf_engine::Options::new(node, store, clock, 1);
        let handle = Handle::start(engine).await.expect("starts");
        handle.create_world(&owner(), world(), WorldSettings::default()).await.expect("made");
        let (launcher, launches) = Played::new();
        let mut options = Options { launcher, ..options(&handle, dir.path()) };
        adjust(&mut options);
        let edge = AgentEdge::start(options).await.expect("starts");
        let stage = Self { handle, edge, launches, dir };
        stage.write_manifest("0.1.0");
        stage
    }

    pub(crate) fn write_manifest(&self, version: &str) {
        let manifest = json!({
            "id": "dev.example.hello", "version": version, "permissions": [],
            "entrypoint": {"type": "command", "value": "./hello"},
        });
        let path = self.dir.path().join("opensentience.agent.json");
        std::fs::write(path, manifest.to_string()).expect("writes");
    }

    /// Adds, approves and starts the agent; its first launch.
    pub(crate) async fn started(&mut self) -> Launch {
        self.edge.add(owner(), self.dir.path().to_owned()).await.expect("added");
        self.edge.approve(owner(), id(), Approve::default()).await.expect("approved");
        self.edge.start(owner(), id()).await.expect("started");
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
        self.until(|view| view.state == AgentState::Running).await;
        (launch, agent)
    }

    pub(crate) async fn run(&self, name: &str, inputs: Value) -> Result<Arc<Run>, Fault> {
        let new = new(name, object(inputs));
        self.handle.create_run(&owner(), new).await.map(|accepted| accepted.run)
    }

    pub(crate) async fn end_of(&self, key: &RunKey) -> Arc<Run> {
        let run = self.handle.wait_run(key, LONG).await.expect("known");
        assert!(run.is_over(), "{key} is still {}", run.status());
        run
    }

    /// Waits until the agent is as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&AgentView) -> bool) -> AgentView {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let view = self.edge.show(&id()).expect("known");
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
            let all = self.handle.audit(0, 10_000).await.expect("readable");
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
pub(crate) fn options(handle: &Handle, dir: &Path) -> Options {
    Options {
        handle: handle.clone(),
        launcher: Played::new().0,
        agents_dir: dir.join("agents"),
        transport: crate::transport(dir),
        instance: "test".into(),
        limits: CoreLimits::default(),
        restart: RestartPolicy { pause_ms: 1, pause_max_ms: 2, ..RestartPolicy::default() },
        stop_grace: Duration::from_secs(2),
        token_life: Duration::from_secs(60),
        vault: Arc::new(Kept::default()),
        egress: Arc::new(Doors::default()),
        user_home: Some(dir.join("user")),
        hidden: vec![dir.join("wharf")],
        sandbox: SandboxLevel::Standard,
        sandbox_min: None,
        agent_limits: AgentLimits::default(),
    }
}

pub(crate) fn owner() -> Caller {
    Caller::owner()
}

pub(crate) fn id() -> AgentId {
    AgentId::new("dev.example.hello").expect("valid")
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
