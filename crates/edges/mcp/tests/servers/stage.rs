//! An engine, the client half, and the folder of a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::provider::ProviderLimits;
use wharf_domain::{Caller, Outcome, Run, WorldSettings};
use wharf_engine::{CatalogTool, Handle, NewRun};
use wharf_hosting::{Control, HostingOptions};
use wharf_journal::audit::AuditKey;
use wharf_mcp::{McpClientOptions, McpNews};
use wharf_memory::{MemoryObjects, MemoryStore};
use wharf_ports::SystemClock;
use wharf_ports::launcher::RestartPolicy;
use wharf_ports::providers::{Approve, ProviderControl as _, ProviderView};
use wharf_vocab::{Fault, NodeId, Object, ProviderId, SandboxLevel, ToolId, WorldId};

use crate::launcher::Children;
use crate::surroundings::{Doors, Kept};

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Everything around one server.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) edge: Control,
    pub(crate) launcher: Arc<Children>,
    pub(crate) vault: Arc<Kept>,
    pub(crate) doors: Arc<Doors>,
    pub(crate) dir: tempfile::TempDir,
    store: Arc<MemoryStore>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut McpClientOptions)) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock));
        let dir = tempfile::tempdir().expect("a folder");
        let stage = Self::on(store, dir, adjust).await;
        for name in ["default", "other"] {
            let settings = WorldSettings::default();
            stage.handle.worlds().create(&owner(), world(name), settings).await.expect("made");
        }
        stage.write("server.py", include_str!("server.py"));
        stage.state(&json!({"tools": [tool("echo")]}));
        stage
    }

    async fn on(
        store: Arc<MemoryStore>,
        dir: tempfile::TempDir,
        adjust: impl FnOnce(&mut McpClientOptions),
    ) -> Self {
        let node = NodeId::new("test").expect("valid");
        let clock = Arc::new(SystemClock);
        let mut engine = wharf_engine::EngineOptions::new(node, store.clone(), clock.clone(), 1);
        engine.objects = Some(Arc::new(MemoryObjects::new(clock)));
        let handle = Handle::start(engine).await.expect("starts");
        let (launcher, vault, doors) =
            (Arc::<Children>::default(), Arc::<Kept>::default(), Arc::<Doors>::default());
        let hosting = HostingOptions {
            handle: handle.clone(),
            launcher: Arc::clone(&launcher) as _,
            folder: dir.path().join("mcp"),
            sockets_dir: Some(dir.path().join("run")),
            restart: RestartPolicy { pause_ms: 1, pause_max_ms: 2, ..RestartPolicy::default() },
            stop_grace: Duration::from_secs(2),
            connect_within: LONG,
            vault: Arc::clone(&vault) as _,
            egress: Arc::clone(&doors) as _,
            user_home: None,
            hidden: vec![dir.path().join("wharf")],
            sandbox: SandboxLevel::Standard,
            sandbox_min: None,
            limits: ProviderLimits::default(),
        };
        let mut options = McpClientOptions::new(hosting, McpNews::default());
        adjust(&mut options);
        let edge = wharf_mcp::start(options).await.expect("starts");
        Self { handle, edge, launcher, vault, doors, dir, store }
    }

    /// Stops the core and starts another one on what it has written.
    pub(crate) async fn restarted(self) -> Self {
        self.handle.stop(Duration::from_millis(1)).await;
        self.edge.stop_all().await;
        Self::on(self.store, self.dir, |_| {}).await
    }

    /// The server's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("server")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.folder()).expect("made");
        std::fs::write(self.folder().join(name), text).expect("written");
    }

    fn state_file(&self) -> PathBuf {
        self.dir.path().join("state.json")
    }

    /// What the server offers from now on.
    pub(crate) fn state(&self, state: &Value) {
        std::fs::write(self.state_file(), state.to_string()).expect("written");
    }

    /// How often processes of the server came to something.
    pub(crate) fn marks(&self, name: &str) -> usize {
        let file = format!("{}.{name}", self.state_file().display());
        std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
    }

    /// Writes a manifest of a program in this mood, with these lines besides.
    pub(crate) fn manifest(&self, mood: &str, more: &str) {
        let state = self.state_file().display().to_string();
        let command = format!(r#"command = ["python3", "server.py", "{mood}", "{state}"]"#);
        self.write("wharf.mcp.toml", &format!("name = \"srv\"\n{command}\n{more}\n"));
    }

    pub(crate) async fn add(&self) -> Result<ProviderView, Fault> {
        self.edge.add(owner(), self.folder()).await
    }

    pub(crate) async fn approve(&self) -> Result<ProviderView, Fault> {
        self.edge.approve(owner(), id(), Approve::default()).await
    }

    /// Adds and approves a server in this mood and waits until its tools are there.
    pub(crate) async fn ready(self, mood: &str, more: &str) -> Self {
        self.manifest(mood, more);
        self.add().await.expect("added");
        self.approve().await.expect("approved");
        self.settled().await;
        self
    }

    /// Waits until what the server offers was taken on.
    pub(crate) async fn settled(&self) {
        self.until(|view| view.provider.settled).await;
    }

    /// Waits until the server fares as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&ProviderView) -> bool) -> ProviderView {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let view = self.edge.show(&id()).expect("known");
            if wanted(&view) {
                return view;
            }
            let log = self.launcher.log();
            assert!(tokio::time::Instant::now() < deadline, "{view:?}\n{log}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until something else is so.
    pub(crate) async fn until_so(&self, wanted: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + LONG;
        while !wanted(self) {
            assert!(tokio::time::Instant::now() < deadline, "{}", self.launcher.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A tool of the server, as the catalog has it.
    pub(crate) fn tool(&self, name: &str) -> Option<CatalogTool> {
        self.handle.providers().tool(&tool_id(name)).ok()
    }

    /// The names of the server's tools that a list shows.
    pub(crate) fn names(&self) -> Vec<String> {
        let all = self.handle.providers().tools().into_iter();
        let own = all.filter(|tool| tool.def.tool.provider() == id() && !tool.def.hidden);
        own.map(|tool| tool.def.tool.name().to_owned()).collect()
    }

    pub(crate) async fn start_run(&self, name: &str, inputs: Value) -> Result<Arc<Run>, Fault> {
        self.start_run_in("default", name, inputs).await
    }

    pub(crate) async fn start_run_in(
        &self,
        of: &str,
        name: &str,
        inputs: Value,
    ) -> Result<Arc<Run>, Fault> {
        let new = NewRun::new(tool_id(name), object(inputs), world(of));
        Ok(self.handle.runs().create(&owner(), new).await?.run)
    }

    pub(crate) async fn end_of(&self, run: &Run) -> Arc<Run> {
        let ended = self.handle.runs().wait(&run.key, LONG).await.expect("known");
        assert!(ended.is_over(), "{} is still {}", run.key, ended.status());
        ended
    }

    /// What the server's tool says, as JSON.
    pub(crate) async fn call(&self, name: &str, inputs: Value) -> Value {
        let run = self.start_run(name, inputs).await.expect("accepted");
        self.said(&run).await
    }

    pub(crate) async fn said(&self, run: &Run) -> Value {
        let ended = self.end_of(run).await;
        let Some(Outcome::Succeeded { outputs }) = &ended.outcome else {
            panic!("{:?}\n{}", ended.outcome, self.launcher.log())
        };
        let text = outputs["content"][0]["text"].as_str().expect("text");
        serde_json::from_str(text).expect("JSON")
    }

    /// Why a call fails.
    pub(crate) async fn fault(&self, name: &str, inputs: Value) -> Fault {
        match self.start_run(name, inputs).await {
            Err(fault) => fault,
            Ok(run) => {
                let ended = self.end_of(&run).await;
                let error = ended.outcome.as_ref().and_then(Outcome::error);
                error.expect("it does not succeed").clone()
            }
        }
    }
}

/// A tool without anything special.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

pub(crate) fn owner() -> Caller {
    Caller::owner()
}

pub(crate) fn id() -> ProviderId {
    ProviderId::new("srv").expect("valid")
}

pub(crate) fn tool_id(name: &str) -> ToolId {
    ToolId::new(format!("srv/{name}")).expect("valid")
}

pub(crate) fn world(name: &str) -> WorldId {
    WorldId::new(name).expect("valid")
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}
