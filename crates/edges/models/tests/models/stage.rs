//! An engine with the model tools, and a vault in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use wharf_domain::grant::Keyring;
use wharf_domain::{Caller, Outcome, Progress, Run, WorldSettings};
use wharf_engine::{EngineOptions, Handle, HistoryItem, NewRun, RunRecord};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryState, MemoryStore};
use wharf_models::{Api, ModelOptions, ModelProvider, ModelProviders, Price, PriceTable};
use wharf_ports::vault::{KeptSecret, Secret, Vault};
use wharf_ports::{Store, SystemClock};
use wharf_vocab::{Code, Fault, Mode, NodeId, Object, RunKey, SecretName, Seq, ToolId, WorldId};

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// Secrets that are gone with the test.
#[derive(Default)]
pub(crate) struct MemoryVault(Mutex<BTreeMap<SecretName, Secret>>);

impl Vault for MemoryVault {
    fn set(&self, name: SecretName, secret: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        self.0.lock().insert(name, secret);
        async { Ok(()) }.boxed()
    }

    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        let found = self.0.lock().get(&name).cloned();
        let missing = Fault::new(Code::SecretNotFound, format!("There is no secret {name}."));
        async { found.ok_or(missing) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remove(&self, name: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        self.0.lock().remove(&name);
        async { Ok(()) }.boxed()
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        async { Err(Fault::new(Code::CoreInternal, "There is none.")) }.boxed()
    }

    fn rotate(&self, _drop_old: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        self.keyring()
    }
}

pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) vault: Arc<MemoryVault>,
    store: Arc<MemoryStore>,
}

impl Stage {
    pub(crate) async fn with(options: ModelOptions) -> Self {
        let clock = Arc::new(SystemClock);
        let state = MemoryState::new(&AuditKey::new([7; 32]));
        let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
        let keyring = Keyring {
            current: "k1".to_owned(),
            keys: [("k1".to_owned(), [9; 32])].into_iter().collect(),
        };
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let node = NodeId::new("test").expect("valid");
        let engine = EngineOptions {
            keyring,
            objects: Some(Arc::new(MemoryObjects::new(clock.clone()))),
            ..EngineOptions::new(node, shared, clock, 1)
        };
        let handle = Handle::start(engine).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        let vault = Arc::new(MemoryVault::default());
        let shared = Arc::clone(&vault) as Arc<dyn Vault>;
        wharf_models::register(&handle, shared, options).await.expect("registers");
        let stage = Self { handle, vault, store };
        stage.world("default", WorldSettings::default()).await;
        stage
    }

    /// A provider at this address with the key `TEST_KEY`, whose model `test` costs $1 for a
    /// million tokens that are read and $2 for those that are written.
    pub(crate) async fn facing(api: Api, base_url: &str) -> Self {
        let stage = Self::with(options(api, base_url)).await;
        stage.keep("TEST_KEY", KEY).await;
        stage
    }

    pub(crate) async fn keep(&self, name: &str, value: &str) {
        let name = SecretName::new(name).expect("valid");
        self.vault.set(name, Secret::new(value.as_bytes())).await.expect("kept");
    }

    pub(crate) async fn world(&self, name: &str, settings: WorldSettings) {
        let world = WorldId::new(name).expect("valid");
        self.handle.worlds().create(&Caller::owner(), world, settings).await.expect("made");
    }

    pub(crate) async fn start(&self, new: NewRun) -> Result<Arc<Run>, Fault> {
        self.handle.runs().create(&Caller::owner(), new).await.map(|accepted| accepted.run)
    }

    pub(crate) async fn chat(&self, inputs: Value) -> Arc<Run> {
        let run = self.start(new(inputs)).await.expect("accepted");
        self.end_of(&run.key).await
    }

    pub(crate) async fn pretend(&self, inputs: Value) -> Arc<Run> {
        let wanted = NewRun { mode: Mode::Mock, ..new(inputs) };
        let run = self.start(wanted).await.expect("accepted");
        self.end_of(&run.key).await
    }

    pub(crate) async fn end_of(&self, key: &RunKey) -> Arc<Run> {
        let run = self.handle.runs().wait(key, LONG).await.expect("known");
        assert!(run.is_over(), "{key} is still {}", run.status());
        run
    }

    /// Waits until a run is as wanted.
    pub(crate) async fn until(&self, key: &RunKey, what: &str, wanted: impl Fn(&Run) -> bool) {
        let deadline = tokio::time::Instant::now() + LONG;
        while !wanted(&self.handle.runs().get(key).await.expect("known")) {
            assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn events(&self, key: &RunKey) -> Vec<RunRecord> {
        let mut watch = self.handle.run_events().watch(key, Seq(0)).await.expect("known");
        let mut events = Vec::new();
        while let Some(event) = watch.next().await {
            events.push(event.expect("readable"));
        }
        events
    }

    /// The pieces of text that a run has streamed, and the lines of its log.
    pub(crate) async fn streamed(&self, key: &RunKey) -> (String, Vec<String>) {
        let (mut text, mut lines) = (String::new(), Vec::new());
        for event in self.events(key).await {
            match event.item {
                HistoryItem::Progress(Progress::Text { channel, text: piece }) => {
                    assert_eq!(channel, "text");
                    text.push_str(&piece);
                }
                HistoryItem::Progress(Progress::Log { text, .. }) => lines.push(text),
                _ => {}
            }
        }
        (text, lines)
    }

    /// Everything that is kept, shown or audited.
    pub(crate) async fn everything(&self, key: &RunKey) -> String {
        let audit = self.handle.audit().list(0, 10_000).await.expect("readable");
        let run = self.handle.runs().get(key).await.expect("known");
        format!("{:?} {:?} {run:?} {audit:?}", self.store.state(), self.events(key).await)
    }
}

/// Options with one provider, whose model has a price.
pub(crate) fn options(api: Api, base_url: &str) -> ModelOptions {
    let provider = ModelProvider::new("test", api, base_url).expect("fits");
    let key = SecretName::new("TEST_KEY").expect("valid");
    let provider = provider.with_key(key).with_models(vec!["test".to_owned()]);
    let price = Price::dollars(1.0, 2.0, Some(0.5), None).expect("a price");
    ModelOptions {
        providers: ModelProviders::new(vec![provider], None),
        prices: PriceTable::new([("test".to_owned(), price)].into_iter().collect()),
        ..ModelOptions::default()
    }
}

pub(crate) fn new(inputs: Value) -> NewRun {
    let world = WorldId::new("default").expect("valid");
    NewRun::new(ToolId::new(wharf_models::CHAT).expect("valid"), object(inputs), world)
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}

pub(crate) fn outputs_of(run: &Run) -> Value {
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Value::Object(outputs.clone()),
        other => panic!("{other:?}"),
    }
}

/// The error of a run: its code, its message, and whether its tool acted.
pub(crate) fn error_of(run: &Run) -> (String, String, String) {
    let fault = run.outcome.as_ref().and_then(Outcome::error).expect("an error");
    let executed = fault.details["executed"].as_str().expect("told").to_owned();
    (fault.code.to_string(), fault.message.clone(), executed)
}
