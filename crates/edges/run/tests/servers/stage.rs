//! An engine, the edge, and the folder of a tool server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use wharf_domain::provider::ProviderLimits;
use wharf_domain::scope::WorldPath;
use wharf_domain::{Caller, Outcome, Run, WorldSettings};
use wharf_engine::{Handle, NewFile, NewRun};
use wharf_hosting::Control;
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryStore};
use wharf_ports::SystemClock;
use wharf_ports::launcher::RestartPolicy;
use wharf_ports::providers::{Approve, ProviderControl as _, ProviderView};
use wharf_run::{RunEdgeOptions, Storage};
use wharf_vocab::{Fault, NodeId, Object, ProviderId, RunKey, SandboxLevel, ToolId, WorldId};

use crate::launcher::Children;
use crate::trust::{Kept, NoWayOut};

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const REFERENCE: &str = "test/tool@1";

/// Everything around one tool server.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) edge: Control,
    pub(crate) launcher: Arc<Children>,
    pub(crate) vault: Arc<Kept>,
    pub(crate) dir: tempfile::TempDir,
    store: Arc<MemoryStore>,
    objects: MemoryObjects,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut RunEdgeOptions)) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let dir = tempfile::tempdir().expect("a folder");
        let stage = Self::on(store, MemoryObjects::new(clock), dir, adjust).await;
        let settings = WorldSettings::default();
        stage.handle.worlds().create(&owner(), world("default"), settings).await.expect("made");
        stage.write("server.py", include_str!("server.py"));
        stage
    }

    async fn on(
        store: Arc<MemoryStore>,
        objects: MemoryObjects,
        dir: tempfile::TempDir,
        adjust: impl FnOnce(&mut RunEdgeOptions),
    ) -> Self {
        let node = NodeId::new("test").expect("valid");
        let clock = Arc::new(SystemClock);
        let mut engine = wharf_engine::EngineOptions::new(node, store.clone(), clock, 1);
        engine.objects = Some(Arc::new(objects.clone()));
        let handle = Handle::start(engine).await.expect("starts");
        let (launcher, vault) = (Arc::new(Children::default()), Arc::new(Kept::default()));
        let mut options = options(&handle, dir.path(), &launcher, &vault);
        adjust(&mut options);
        let edge = wharf_run::start(options).await.expect("starts");
        Self { handle, edge, launcher, vault, dir, store, objects }
    }

    /// Stops the core and starts another one on what it has written.
    pub(crate) async fn restarted(self) -> Self {
        self.handle.stop(Duration::from_millis(1)).await;
        self.edge.stop_all().await;
        Self::on(self.store, self.objects, self.dir, |_| {}).await
    }

    /// The server's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("tool")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.folder()).expect("made");
        std::fs::write(self.folder().join(name), text).expect("written");
    }

    /// Writes a manifest of a program in this mood, with these lines besides.
    pub(crate) fn write_manifest(&self, mood: &str, more: &str) {
        let exec = format!(r#"exec = ["python3", "server.py", "{{port}}", "{mood}"]"#);
        self.write_manifest_of(&format!("{exec}\n{more}"));
    }

    pub(crate) fn write_manifest_of(&self, lines: &str) {
        let head = format!("ref = \"{REFERENCE}\"\ndescription = \"A tool of the tests\"\n");
        self.write("wharf.tool.toml", &format!("{head}{lines}\n"));
    }

    pub(crate) async fn add(&self) -> Result<ProviderView, Fault> {
        self.edge.add(owner(), self.folder()).await
    }

    /// Adds and approves a server whose manifest was written.
    pub(crate) async fn approved(&self) -> ProviderView {
        self.add().await.expect("added");
        self.approve(Approve::default()).await.expect("approved")
    }

    pub(crate) async fn approve(&self, approve: Approve) -> Result<ProviderView, Fault> {
        self.edge.approve(owner(), id(), approve).await
    }

    /// A server that is approved and well.
    pub(crate) async fn ready(more: &str) -> Self {
        let stage = Self::new().await;
        stage.write_manifest("well", more);
        stage.approved().await;
        stage
    }

    pub(crate) async fn run(&self, inputs: Value) -> Arc<Run> {
        self.run_with(inputs, json!({})).await
    }

    pub(crate) async fn run_with(&self, inputs: Value, outputs: Value) -> Arc<Run> {
        let mut new = NewRun::new(tool(), object(inputs), world("default"));
        new.outputs = object(outputs);
        self.handle.runs().create(&owner(), new).await.expect("accepted").run
    }

    pub(crate) async fn end_of(&self, key: &RunKey) -> Arc<Run> {
        let run = self.handle.runs().wait(key, LONG).await.expect("known");
        assert!(run.is_over(), "{key} is still {}", run.status());
        run
    }

    /// The outputs of a run that must succeed.
    pub(crate) async fn outputs(&self, run: &Run) -> Object {
        let run = self.end_of(&run.key).await;
        match run.outcome.as_ref() {
            Some(Outcome::Succeeded { outputs, .. }) => outputs.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// The fault of a run that must not succeed.
    pub(crate) async fn fault(&self, run: &Run) -> Fault {
        let run = self.end_of(&run.key).await;
        run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("failed").clone()
    }

    pub(crate) async fn until(&self, wanted: impl Fn(&ProviderView) -> bool) -> ProviderView {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let view = self.edge.show(&id()).expect("known");
            if wanted(&view) {
                return view;
            }
            assert!(tokio::time::Instant::now() < deadline, "{view:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn put(&self, path: &str, content: &'static str) {
        let new = NewFile {
            world: world("default"),
            path: WorldPath::parse(path).expect("a path"),
            media_type: None,
            bytes: None,
            b3: None,
        };
        let body = futures::stream::iter([Ok(Bytes::from_static(content.as_bytes()))]).boxed();
        self.handle.files().put(&owner(), new, body).await.expect("put");
    }

    pub(crate) async fn file(&self, path: &str) -> Result<String, Fault> {
        let path = WorldPath::parse_any(path).expect("a path");
        let body = self.handle.files().read(&owner(), &world("default"), &path, None).await?;
        let pieces: Vec<Bytes> = body.stream.try_collect().await.expect("readable");
        Ok(String::from_utf8(pieces.concat()).expect("text"))
    }
}

fn options(
    handle: &Handle,
    dir: &Path,
    launcher: &Arc<Children>,
    vault: &Arc<Kept>,
) -> RunEdgeOptions {
    RunEdgeOptions {
        hosting: wharf_hosting::HostingOptions {
            handle: handle.clone(),
            launcher: Arc::clone(launcher) as _,
            folder: dir.join("tools"),
            sockets_dir: Some(dir.join("run")),
            restart: RestartPolicy { pause_ms: 1, pause_max_ms: 2, ..RestartPolicy::default() },
            stop_grace: Duration::from_secs(2),
            connect_within: Duration::from_secs(60),
            vault: Arc::clone(vault) as _,
            egress: Arc::new(NoWayOut),
            user_home: None,
            hidden: vec![dir.join("wharf")],
            sandbox: SandboxLevel::Standard,
            sandbox_min: None,
            limits: ProviderLimits::default(),
        },
        program: "wharf".into(),
        container: Vec::new(),
        storage: Storage { origin: "http://127.0.0.1:7421".into(), is_public: false },
        environments: dir.join("envs"),
        search: std::env::split_paths(wharf_hosting::PATH).collect(),
        idle: LONG,
        healthy_within: LONG,
    }
}

pub(crate) fn owner() -> Caller {
    Caller::owner()
}

pub(crate) fn id() -> ProviderId {
    ProviderId::new(REFERENCE).expect("valid")
}

pub(crate) fn tool() -> ToolId {
    ToolId::new(REFERENCE).expect("valid")
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
