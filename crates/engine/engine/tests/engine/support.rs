//! An engine on a store in memory, for the tests of this folder.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use wharf_domain::grant::Keyring;
use wharf_domain::scope::WorldPath;
use wharf_domain::{AuditRecord, Caller, Outcome, Policy, Run, WorldSettings};
use wharf_engine::{
    AcceptedRun, AttemptOutputs, ByteStream, EngineOptions, FileQuery, Handle, HistoryItem,
    NewFile, NewRun, ObjectBody, RunRecord, UploadRef, WrittenFile,
};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryState, MemoryStore};
use wharf_ports::{Clock, ManualClock, Store, SystemClock};
use wharf_vocab::{Code, Fault, NodeId, Object, RunKey, Seq, ToolId, WorldId};

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A running engine, its store and its files.
pub(crate) struct Bench {
    pub(crate) handle: Handle,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) objects: MemoryObjects,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::on(MemoryState::new(&AuditKey::new([7; 32]))).await
    }

    /// An engine on what another store held: what a core finds after kill -9.
    pub(crate) async fn on(state: MemoryState) -> Self {
        Self::with(state, Arc::new(SystemClock), Policy::default()).await
    }

    /// An engine with rules about approvals.
    pub(crate) async fn under(policy: Policy) -> Self {
        Self::with(MemoryState::new(&AuditKey::new([7; 32])), Arc::new(SystemClock), policy).await
    }

    pub(crate) async fn with(state: MemoryState, clock: Arc<dyn Clock>, policy: Policy) -> Self {
        let objects = MemoryObjects::new(Arc::clone(&clock));
        Self::of(state, objects, clock, policy).await
    }

    /// An engine whose clock is moved by hand.
    pub(crate) async fn at(clock: &Arc<ManualClock>) -> Self {
        let clock = Arc::clone(clock) as Arc<dyn Clock>;
        Self::with(MemoryState::new(&AuditKey::new([7; 32])), clock, Policy::default()).await
    }

    async fn of(
        state: MemoryState,
        objects: MemoryObjects,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let keyring = Keyring {
            current: "k1".to_owned(),
            keys: [("k1".to_owned(), [9; 32])].into_iter().collect(),
        };
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let options = EngineOptions {
            keyring,
            policy,
            objects: Some(Arc::new(objects.clone())),
            origins: vec!["https://drop.example".to_owned()],
            ..EngineOptions::new(node, shared, clock, 1)
        };
        let handle = Handle::start(options).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        match handle.worlds().create(&owner(), default_world(), WorldSettings::default()).await {
            Ok(_) => {}
            Err(fault) => assert!(fault.is(Code::WorldExists), "{fault}"),
        }
        Self { handle, store, objects }
    }

    /// The engine as it would come back after a kill -9 at this moment.
    pub(crate) async fn killed(self) -> Self {
        let state = self.store.state();
        Self::of(state, self.objects, Arc::new(SystemClock), Policy::default()).await
    }

    /// Everything the audit holds.
    pub(crate) async fn audit(&self) -> Vec<AuditRecord> {
        let sealed = self.handle.audit().list(0, 10_000).await.expect("readable");
        sealed.into_iter().map(|sealed| sealed.record).collect()
    }

    /// Waits until the audit holds a record like this.
    pub(crate) async fn audited(&self, wanted: impl Fn(&AuditRecord) -> bool) -> AuditRecord {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            if let Some(found) = self.audit().await.into_iter().rev().find(|it| wanted(it)) {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "it is not audited");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) async fn start(&self, tool: &str, inputs: Value) -> Result<Arc<Run>, Fault> {
        let accepted: AcceptedRun = self.handle.runs().create(&owner(), new(tool, inputs)).await?;
        Ok(accepted.run)
    }

    pub(crate) async fn finish(&self, tool: &str, inputs: Value) -> Arc<Run> {
        let run = self.start(tool, inputs).await.expect("accepted");
        self.end_of(&run.key).await
    }

    pub(crate) async fn end_of(&self, key: &RunKey) -> Arc<Run> {
        let run = self.handle.runs().wait(key, LONG).await.expect("known");
        assert!(run.is_over(), "{key} is still {}", run.status());
        run
    }

    /// Waits until the run satisfies the condition.
    pub(crate) async fn until(&self, key: &RunKey, wanted: impl Fn(&Run) -> bool) -> Arc<Run> {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let run = self.handle.runs().get(key).await.expect("known");
            if wanted(&run) {
                return run;
            }
            assert!(tokio::time::Instant::now() < deadline, "{key} is {}", run.status());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// All events of a run behind `after`.
    pub(crate) async fn events(&self, key: &RunKey, after: u64) -> Vec<RunRecord> {
        let mut watch = self.handle.run_events().watch(key, Seq(after)).await.expect("known");
        let mut events = Vec::new();
        while let Some(event) = watch.next().await {
            events.push(event.expect("readable"));
        }
        events
    }
}

pub(crate) fn owner() -> Caller {
    Caller::owner()
}

pub(crate) fn default_world() -> WorldId {
    WorldId::new("default").expect("valid")
}

pub(crate) fn upload_of(file: &NewFile, id: &str) -> UploadRef {
    UploadRef { world: file.world.clone(), path: file.path.clone(), id: id.to_owned() }
}

/// Outputs of a provider that has written some of them to their places itself.
pub(crate) fn written(values: Value, names: &[&str]) -> AttemptOutputs {
    let files = names.iter().map(|name| ((*name).to_owned(), WrittenFile::default()));
    AttemptOutputs { values: object(values), written: files.collect() }
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}

pub(crate) fn new(tool: &str, inputs: Value) -> NewRun {
    NewRun::new(ToolId::new(tool).expect("valid"), object(inputs), default_world())
}

/// The text that events added to a channel.
pub(crate) fn text_of(events: &[RunRecord], wanted: &str) -> String {
    let mut all = String::new();
    for event in events {
        if let HistoryItem::Progress(wharf_domain::Progress::Text { channel, text }) = &event.item
            && channel == wanted
        {
            all.push_str(text);
        }
    }
    all
}

/// A path within a world, or of a local file of a run.
pub(crate) fn path(text: &str) -> WorldPath {
    WorldPath::parse_any(text).expect("valid")
}

/// A stream of these bytes.
pub(crate) fn stream(bytes: impl Into<Bytes>) -> ByteStream {
    futures::stream::iter([Ok(bytes.into())]).boxed()
}

/// All that a stream has.
pub(crate) async fn all(body: ObjectBody) -> Vec<u8> {
    let pieces: Vec<Bytes> = body.stream.try_collect().await.expect("readable");
    pieces.concat()
}

impl Bench {
    /// Puts a file into the default world.
    pub(crate) async fn put(&self, at: &str, text: &str) {
        let new = new_file(default_world(), at);
        let body = stream(text.to_owned());
        self.handle.files().put(&owner(), new, body).await.expect("put");
    }

    /// What a file of the default world holds, if it is there.
    pub(crate) async fn get(&self, at: &str) -> Option<String> {
        match self.handle.files().read(&owner(), &default_world(), &path(at), None).await {
            Ok(body) => Some(String::from_utf8(all(body).await).expect("text")),
            Err(fault) if fault.is(Code::ArtifactNotFound) => None,
            Err(fault) => panic!("{fault}"),
        }
    }

    /// The paths that a list of the default world's files shows.
    pub(crate) async fn listed(&self) -> Vec<String> {
        let query = FileQuery { locals: true, ..FileQuery::new(default_world(), 100) };
        let page = self.handle.files().list(&owner(), query).await.expect("lists");
        page.files.iter().map(|file| file.artifact.path.to_string()).collect()
    }

    /// Starts a run of the default world with these inputs and outputs.
    pub(crate) async fn start_with(
        &self,
        tool: &str,
        inputs: Value,
        outputs: Value,
    ) -> Result<Arc<Run>, Fault> {
        let wanted = NewRun { outputs: object(outputs), ..new(tool, inputs) };
        self.handle.runs().create(&owner(), wanted).await.map(|accepted| accepted.run)
    }
}

/// A file that somebody wants to put somewhere.
pub(crate) fn new_file(world: WorldId, at: &str) -> NewFile {
    NewFile { world, path: path(at), media_type: None, bytes: None, b3: None }
}

/// What a run gave.
pub(crate) fn outputs_of(run: &Run) -> Value {
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Value::Object(outputs.clone()),
        other => panic!("{other:?}"),
    }
}

/// A world's removal, with its files or only if it has none.
pub(crate) fn removal(force: bool) -> wharf_engine::WorldRemoval {
    wharf_engine::WorldRemoval { force, purge_runs: false }
}
