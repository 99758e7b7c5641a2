//! A core, from its start to its end.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::Handle;
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::{Clock, SteadyClock, Store, StoreError, StoreErrorKind};
use wharf_sdk::host::{Bridge, served};
use wharf_sdk::{Call, Data, Scope, TakesImplementation, Tool};
use wharf_store_sqlite::SqliteStore;
use wharf_vocab::{Code, Fault, NodeId, ToolId, WorldId};

use crate::desk;
use crate::home::{HomeFolder, random};
use crate::outside::{CoreTransport, OutsideCalls};
use crate::translate::{provider_id, tool_id, world_id};

/// The world of runs that name none.
const DEFAULT_WORLD: &str = "default";

/// How a core is set up. [`start`](Self::start) starts it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), wharf_sdk::Fault> {
/// use std::time::Duration;
/// use wharf_embedded::Options;
///
/// let options = Options::in_memory().model_tool("llm/chat").grace(Duration::from_secs(1));
/// options.start().await?.close().await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    folder: Option<PathBuf>,
    model_tool: Option<String>,
    grace: Duration,
}

impl Options {
    /// A core that forgets everything when the program ends.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { folder: None, model_tool: None, grace: Duration::from_secs(3) }
    }

    /// A core that keeps its runs in a folder, which is made if it is not there.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..Self::in_memory() }
    }

    /// The tool that completes what tools [sample](wharf_sdk::Cx::sample). It takes what the model
    /// tool of a core takes: `prompt` or `messages`, and gives `text` or `response`.
    #[must_use]
    pub fn model_tool(mut self, tool: impl Into<String>) -> Self {
        self.model_tool = Some(tool.into());
        self
    }

    /// How long tools that are at work may take to end when the core is closed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Starts the core, within a Tokio runtime. Runs that were open go on.
    pub async fn start(self) -> Result<Embedded, Fault> {
        let model_tool = self.model_tool.map(|tool| tool_id(&tool)).transpose()?;
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::system());
        let (store, kept) = match self.folder {
            None => {
                let key = AuditKey::new(random().map_err(|_| internal())?);
                (Arc::new(MemoryStore::new(&key, Arc::clone(&clock))) as Arc<dyn Store>, None)
            }
            Some(folder) => {
                let kept = HomeStore::open(folder, Arc::clone(&clock)).await?;
                (Arc::clone(&kept.store) as Arc<dyn Store>, Some(kept))
            }
        };
        // The folder's lock keeps others out, so the name can always be the same: what a core
        // that crashed had taken is its own again.
        let node = NodeId::new("embedded").map_err(|_| internal())?;
        let seed = u64::from_ne_bytes(random().map_err(|_| internal())?);
        let options = wharf_engine::EngineOptions::new(node, store, clock, seed);
        let handle = Handle::start(options).await.map_err(|error| fault_of(&error))?;
        let inner = EmbeddedState {
            handle,
            closing: CancellationToken::new(),
            kept: tokio::sync::Mutex::new(kept),
            grace: self.grace,
            root: Scope::root(),
            calls: Mutex::default(),
        };
        let core = Embedded { inner: Arc::new(inner) };
        match core.furnish(model_tool).await {
            Ok(()) => Ok(core),
            Err(fault) => {
                core.close().await?;
                Err(fault)
            }
        }
    }
}

/// A core inside this program. Cheap to clone; all clones are the same core.
///
/// One that is not [closed](Self::close) goes on until the runtime it was started on ends, which
/// then is like a crash.
#[derive(Clone)]
pub struct Embedded {
    pub(crate) inner: Arc<EmbeddedState>,
}

pub(crate) struct EmbeddedState {
    pub(crate) handle: Handle,
    /// Tools that are at work stop then.
    pub(crate) closing: CancellationToken,
    kept: tokio::sync::Mutex<Option<HomeStore>>,
    grace: Duration,
    /// The scope that typed calls are made in.
    root: Scope,
    /// For each definition that was called, the scope that leads to its tool.
    calls: Mutex<HashMap<(String, &'static str), Scope>>,
}

/// A folder and the store in it.
struct HomeStore {
    store: Arc<SqliteStore>,
    home: HomeFolder,
}

impl HomeStore {
    async fn open(folder: PathBuf, clock: Arc<dyn Clock>) -> Result<Self, Fault> {
        let open = move || {
            let home = HomeFolder::take(&folder)?;
            let store = SqliteStore::open(&home.database(), &home.audit_key()?, clock);
            Ok(Self { store: Arc::new(store.map_err(|error| fault_of(&error))?), home })
        };
        tokio::task::spawn_blocking(open).await.unwrap_or_else(|_| Err(internal()))
    }
}

impl Embedded {
    /// A core that forgets everything when the program ends.
    pub async fn in_memory() -> Result<Self, Fault> {
        Options::in_memory().start().await
    }

    /// A core that keeps its runs in a folder, which is made if it is not there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), wharf_sdk::Fault> {
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let folder = folder.path();
    /// use serde_json::json;
    /// use wharf_embedded::Embedded;
    ///
    /// let core = Embedded::open(folder).await?;
    /// let run = core.run("wharf/echo", json!({"a": 1})).start().await?;
    /// core.wait(&run).await?;
    /// core.close().await?;
    /// // Later, or after a crash:
    /// let core = Embedded::open(folder).await?;
    /// assert_eq!(core.wait(&run).await?, json!({"a": 1}));
    /// core.close().await
    /// # }
    /// ```
    pub async fn open(folder: impl Into<PathBuf>) -> Result<Self, Fault> {
        Options::open(folder).start().await
    }

    async fn furnish(&self, model_tool: Option<ToolId>) -> Result<(), Fault> {
        let handle = &self.inner.handle;
        wharf_builtin::register_with(handle, wharf_builtin::BuiltinOptions { model_tool }).await?;
        self.make_world(DEFAULT_WORLD).await
    }

    /// Makes a world, unless it is there.
    pub async fn make_world(&self, world: &str) -> Result<(), Fault> {
        let (caller, settings) = (Caller::owner(), WorldSettings::default());
        match self.inner.handle.worlds().create(&caller, world_id(world)?, settings).await {
            Err(fault) if !fault.is(Code::WorldExists) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Offers the tools of an agent or a scope under the name of a provider: `search` of the
    /// provider `flight` is the tool `flight/search`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use wharf_embedded::Embedded;
    /// use wharf_sdk::{Cx, Fault, Scope, Tool};
    ///
    /// // A run that a crash interrupts is tried again.
    /// const HALF: Tool<u32, u32> = Tool::new("half", "Half as much.").side_effects(false);
    ///
    /// let root = Scope::root();
    /// root.provide(&HALF, |n: u32, _cx: Cx| async move { Ok::<_, Fault>(n / 2) })?;
    /// let core = Embedded::in_memory().await?;
    /// core.offer("math", &root).await?;
    /// assert_eq!(core.call(&HALF, "math", 8).await?, 4);
    /// # core.close().await?;
    /// # Ok(()) }
    /// ```
    pub async fn offer(&self, provider: &str, agent: impl Into<Scope>) -> Result<(), Fault> {
        desk::offer(&self.inner.handle, &self.inner.closing, provider, served(agent)).await
    }

    /// Takes back what was offered under a name. Runs that wait for it end.
    pub async fn withdraw(&self, provider: &str) -> Result<(), Fault> {
        self.inner.handle.providers().remove(provider_id(provider)?).await
    }

    /// The ids of all tools, those of the core included.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolId> {
        self.inner
            .handle
            .providers()
            .tools()
            .into_iter()
            .map(|tool| tool.def.tool.clone())
            .collect()
    }

    /// Calls a tool of a provider by its definition. The call is a run in the world `default`;
    /// dropping it cancels the run.
    pub fn call<I: Data, O: Data, P: Data, S: TakesImplementation>(
        &self,
        tool: &Tool<I, O, P, S>,
        provider: &str,
        input: I,
    ) -> Call<O, P> {
        let mut calls = self.inner.calls.lock();
        let scope = calls.entry((provider.to_owned(), tool.name())).or_insert_with(|| {
            let outside = OutsideCalls::new(self.inner.handle.clone(), default_world());
            let outside = outside.reaches(tool, format!("{provider}/{}", tool.name()));
            self.inner.root.child().with_transport(Bridge::new(Arc::new(outside)))
        });
        tool.call(scope, input)
    }

    /// A transport to the tools of this core, for scopes of the same program. Calls are runs in
    /// this world. A tool is found by its name if only one tool has it; where several do,
    /// [`CoreTransport::reaches`] says which is meant.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serde_json::{Value, json};
    /// use wharf_embedded::Embedded;
    /// use wharf_sdk::{Scope, Tool};
    ///
    /// const ECHO: Tool<Value, Value> = Tool::new("echo", "Gives back what it got.");
    ///
    /// let core = Embedded::in_memory().await?;
    /// let scope = Scope::root().with_transport(core.transport("default")?);
    /// assert_eq!(ECHO.call(&scope, json!({"a": 1})).await?, json!({"a": 1}));
    /// # core.close().await?;
    /// # Ok(()) }
    /// ```
    pub fn transport(&self, world: &str) -> Result<CoreTransport, Fault> {
        Ok(CoreTransport::new(OutsideCalls::new(self.inner.handle.clone(), world_id(world)?)))
    }

    /// Closes the core: it takes no new runs; tools that are at work get some time to end, then
    /// they are called off. Runs that are kept and have not ended are taken up at the next start.
    pub async fn close(&self) -> Result<(), Fault> {
        let inner = &self.inner;
        inner.handle.stop(inner.grace).await;
        inner.closing.cancel();
        inner.root.close().await;
        match inner.kept.lock().await.take() {
            None => Ok(()),
            Some(HomeStore { store, home }) => {
                let closed = store.close().await;
                // Whoever opens it next finds it whole.
                drop(home);
                closed.map_err(|error| fault_of(&error))
            }
        }
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}

pub(crate) fn default_world() -> WorldId {
    WorldId::new(DEFAULT_WORLD).expect("a valid name")
}

fn fault_of(error: &StoreError) -> Fault {
    let code = match error.kind {
        StoreErrorKind::Full => Code::StoreFull,
        StoreErrorKind::Unavailable => Code::StoreUnavailable,
        StoreErrorKind::Newer => Code::StoreNewer,
        StoreErrorKind::Corrupt => Code::StoreCorrupt,
    };
    Fault::new(code, format!("The runs cannot be kept: {}.", error.message.trim_end_matches('.')))
}

fn internal() -> Fault {
    Fault::new(Code::CoreInternal, "Something inside the core went wrong.")
}
