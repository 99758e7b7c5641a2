//! An engine on a store in memory whose only tool is at a tool server.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wharf_domain::grant::Keyring;
use wharf_domain::scope::WorldPath;
use wharf_domain::{
    Availability, Caller, Outcome, Policy, Progress, Resolution, Run, ToolDef, WorldSettings,
};
use wharf_engine::{
    Attempt, Dispatch, EngineOptions, Handle, HistoryItem, NewFile, NewRun, ProviderSink, RunRecord,
};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryState, MemoryStore};
use wharf_ports::{Store, SystemClock};
use wharf_run::link::{
    EndpointSource, FileAccess, ServerEndpoint, ServerLink, Settings, StopSignal,
};
use wharf_vocab::{AttemptId, Fault, NodeId, Object, RunKey, Seq, ToolId, WorldId};

pub(crate) const LONG: Duration = Duration::from_secs(60);
const TOOL: &str = "test/tool@1";

/// A running engine and the server it knows.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) objects: MemoryObjects,
    pub(crate) server: ServerLink,
    store: Arc<MemoryStore>,
    sink: Arc<Sink>,
    plan: Plan,
}

/// What a stage is made of, so that it can be made again after a kill.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) doors: Arc<dyn EndpointSource>,
    pub(crate) settings: Settings,
    pub(crate) side_effects: Option<bool>,
    /// Whether its tool has steps.
    pub(crate) durable: bool,
    pub(crate) files: FileAccess,
}

impl Plan {
    pub(crate) fn new(doors: impl EndpointSource) -> Self {
        let settings = Settings { apart_max: Duration::from_secs(5), ..Settings::default() };
        let (doors, files) = (Arc::new(doors), FileAccess::Addresses);
        Self { doors, settings, side_effects: None, durable: false, files }
    }

    pub(crate) fn with(mut self, adjust: impl FnOnce(&mut Settings)) -> Self {
        adjust(&mut self.settings);
        self
    }

    pub(crate) async fn open(self) -> Stage {
        let objects = MemoryObjects::new(Arc::new(SystemClock));
        Stage::on(MemoryState::new(&AuditKey::new([7; 32])), objects, self).await
    }
}

impl Stage {
    async fn on(state: MemoryState, objects: MemoryObjects, plan: Plan) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
        let keys = [("k1".to_owned(), [9; 32])].into_iter().collect();
        let options = EngineOptions {
            keyring: Keyring { current: "k1".to_owned(), keys },
            policy: Policy::default(),
            objects: Some(Arc::new(objects.clone())),
            origins: vec!["https://drop.example".to_owned()],
            ..EngineOptions::new(
                NodeId::new("test").expect("valid"),
                Arc::clone(&store) as Arc<dyn Store>,
                clock,
                1,
            )
        };
        let handle = Handle::start(options).await.expect("starts");
        // After a kill it is there already.
        let _ = handle.worlds().create(&owner(), world(), WorldSettings::default()).await;
        let server =
            ServerLink::new(handle.clone(), Arc::clone(&plan.doors), plan.settings.clone());
        let sink = Arc::new(Sink {
            handle: handle.clone(),
            server: server.clone(),
            files: plan.files.clone(),
            under_way: Mutex::default(),
        });
        let tool = ToolId::new(TOOL).expect("valid");
        let def = ToolDef {
            side_effects: plan.side_effects,
            durable: plan.durable,
            reattach: true,
            mock: true,
            ..ToolDef::new(tool.clone(), "A tool for tests.", json!({"type": "object"}))
        };
        let provider = tool.provider();
        handle
            .providers()
            .register(provider.clone(), vec![def], Arc::clone(&sink) as _)
            .await
            .expect("known");
        handle.providers().set_availability(provider, Availability::Up).await.expect("up");
        Self { handle, objects, server, store, sink, plan }
    }

    /// The stage as it would come back after a kill -9 at this moment.
    pub(crate) async fn killed(self) -> Self {
        for (_, (_, task)) in self.sink.under_way.lock().expect("sound").drain() {
            task.abort();
        }
        let state = self.store.state();
        Self::on(state, self.objects, self.plan).await
    }

    /// Tells every attempt to stop, as the engine does when a run is canceled.
    pub(crate) fn stop_all(&self, grace: Duration) {
        for (stop, _) in self.sink.under_way.lock().expect("sound").values() {
            stop.now(grace);
        }
    }

    pub(crate) async fn start(&self, inputs: Value) -> RunKey {
        self.start_with(inputs, json!({})).await
    }

    pub(crate) async fn start_with(&self, inputs: Value, outputs: Value) -> RunKey {
        let tool = ToolId::new(TOOL).expect("valid");
        let new = NewRun { outputs: object(outputs), ..NewRun::new(tool, object(inputs), world()) };
        self.handle.runs().create(&owner(), new).await.expect("accepted").run.key.clone()
    }

    pub(crate) async fn cancel(&self, key: &RunKey) {
        self.handle.runs().cancel(&owner(), key, "enough").await.expect("canceled");
    }

    pub(crate) async fn end_of(&self, key: &RunKey) -> Arc<Run> {
        let run = self.handle.runs().wait(key, LONG).await.expect("known");
        assert!(run.is_over(), "{key} is still {}", run.status());
        run
    }

    /// How a run failed.
    pub(crate) async fn fault_of(&self, key: &RunKey) -> Fault {
        match self.end_of(key).await.outcome.clone() {
            Some(Outcome::Failed { error }) => error,
            other => panic!("{other:?}"),
        }
    }

    /// What a run gave.
    pub(crate) async fn outputs_of(&self, key: &RunKey) -> Value {
        match self.end_of(key).await.outcome.clone() {
            Some(Outcome::Succeeded { outputs }) => Value::Object(outputs),
            other => panic!("{other:?}"),
        }
    }

    /// All that a run wrote, as the journal has it.
    pub(crate) async fn progress_of(&self, key: &RunKey) -> Vec<Progress> {
        let mut watch = self.handle.run_events().watch(key, Seq(0)).await.expect("known");
        let mut pieces = Vec::new();
        while let Some(event) = watch.next().await {
            pieces.extend(piece_of(event.expect("readable")));
        }
        pieces
    }

    /// Waits until the journal has a piece like this.
    pub(crate) async fn until_written(&self, key: &RunKey, wanted: impl Fn(&Progress) -> bool) {
        let mut watch = self.handle.run_events().watch(key, Seq(0)).await.expect("known");
        let found = async {
            while let Some(event) = watch.next().await {
                if piece_of(event.expect("readable")).is_some_and(|piece| wanted(&piece)) {
                    return;
                }
            }
            panic!("the run ended without it");
        };
        tokio::time::timeout(LONG, found).await.expect("it is written");
    }

    /// What a file of the world holds, if it is there.
    pub(crate) async fn file(&self, path: &str) -> Option<String> {
        let path = WorldPath::parse_any(path).expect("valid");
        let body = self.handle.files().read(&owner(), &world(), &path, None).await.ok()?;
        let pieces: Vec<_> = body.stream.try_collect().await.expect("readable");
        Some(String::from_utf8(pieces.concat()).expect("text"))
    }

    /// Puts a file into the world.
    pub(crate) async fn put(&self, path: &str, text: &str) {
        let path = WorldPath::parse(path).expect("valid");
        let new = NewFile { world: world(), path, media_type: None, bytes: None, b3: None };
        let body = futures::stream::iter([Ok(text.to_owned().into())]).boxed();
        self.handle.files().put(&owner(), new, body).await.expect("put");
    }
}

fn piece_of(event: RunRecord) -> Option<Progress> {
    match event.item {
        HistoryItem::Progress(piece) => Some(piece),
        HistoryItem::Entry(_) => None,
    }
}

/// The texts of the log, in order.
pub(crate) fn lines(pieces: &[Progress]) -> Vec<&str> {
    pieces.iter().filter_map(line).collect()
}

fn line(piece: &Progress) -> Option<&str> {
    match piece {
        Progress::Log { text, .. } => Some(text),
        _ => None,
    }
}

/// The engine's side of the server.
struct Sink {
    handle: Handle,
    server: ServerLink,
    files: FileAccess,
    under_way: Mutex<HashMap<AttemptId, (StopSignal, JoinHandle<()>)>>,
}

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let (id, stop) = (dispatch.attempt_id.clone(), StopSignal::default());
        let attempt = Attempt::new(self.handle.clone(), dispatch);
        let (server, files, stopped) = (self.server.clone(), self.files.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let report = server.drive(&attempt, &files, &stopped).await;
            let _ = attempt.ended(report).await;
        });
        self.under_way.lock().expect("sound").insert(id, (stop, task));
        Ok(())
    }

    fn cancel(&self, attempt_id: &AttemptId, _reason: &str, grace_ms: u64) {
        if let Some((stop, _)) = self.under_way.lock().expect("sound").get(attempt_id) {
            stop.now(Duration::from_millis(grace_ms));
        }
    }

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

/// Doors that a test can move.
#[derive(Clone)]
pub(crate) struct Moving(pub(crate) Arc<Mutex<Result<ServerEndpoint, Fault>>>);

impl Moving {
    pub(crate) fn to(endpoint: ServerEndpoint) -> Self {
        Self(Arc::new(Mutex::new(Ok(endpoint))))
    }

    pub(crate) fn set(&self, endpoint: Result<ServerEndpoint, Fault>) {
        *self.0.lock().expect("sound") = endpoint;
    }
}

impl fmt::Debug for Moving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Moving")
    }
}

impl EndpointSource for Moving {
    fn endpoint(&self) -> BoxFuture<'_, Result<ServerEndpoint, Fault>> {
        Box::pin(std::future::ready(self.0.lock().expect("sound").clone()))
    }
}

pub(crate) fn owner() -> Caller {
    Caller::owner()
}

pub(crate) fn world() -> WorldId {
    WorldId::new("default").expect("valid")
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}
