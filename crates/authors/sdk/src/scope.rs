//! Scopes: where implementations, layers and transports hold, and what ends together.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use futures::future::{BoxFuture, join_all};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_vocab::Fault;

use crate::call::Halt;
use crate::chain::Handler;
use crate::error::Error;
use crate::exposed::Exposed;
use crate::layer::{FromFn, Lane, Layer, Next};
use crate::tables::{Provided, Tables};
use crate::tool::TakesImplementation;
use crate::transport::Transport;
use crate::{Cx, Data, Tool};

/// A place in the tree of scopes, which calls are made from.
///
/// Layers, implementations and transports hold in the scope where they were added and in all
/// below it. Closing a scope ends everything that was begun in it and below; dropping it does the
/// same without waiting.
pub struct Scope {
    owner: Arc<Owner>,
}

/// Whoever keeps a scope open.
struct Owner(Arc<Inner>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.signal();
    }
}

/// Where a call can be made: a scope, an agent, or a tool that is working.
pub trait Within {
    /// The place.
    fn place(&self) -> Place;
}

/// Where a call is made.
#[derive(Clone)]
pub struct Place(pub(crate) Arc<Inner>);

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

/// A scope as calls hold it.
pub(crate) struct Inner {
    pub(crate) parent: Option<Arc<Inner>>,
    /// The agent whose scope this is.
    pub(crate) agent: Option<&'static str>,
    /// Rises with every change anywhere in the tree, so that nothing stale is used.
    pub(crate) version: Arc<AtomicU64>,
    pub(crate) tables: RwLock<Tables>,
    pub(crate) cache: RwLock<HashMap<&'static str, (u64, Arc<dyn Any + Send + Sync>)>>,
    config: Option<Arc<dyn Any + Send + Sync>>,
    stop: CancellationToken,
    closed: AtomicBool,
    tasks: TaskTracker,
    calls: Mutex<Calls>,
    children: Mutex<HashMap<u64, Weak<Inner>>>,
    /// Its number among the children of its parent.
    number: u64,
}

/// Calls that are under way.
#[derive(Default)]
struct Calls {
    next: u64,
    live: HashMap<u64, Arc<dyn Halt>>,
}

/// Numbers of scopes.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Scope {
    /// A scope without a parent.
    #[must_use]
    pub fn root() -> Self {
        Self::made(None, None, None)
    }

    /// A scope below this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::below(&self.owner.0)
    }

    pub(crate) fn below(parent: &Arc<Inner>) -> Self {
        Self::made(Some(parent), None, None)
    }

    /// A scope with a transport from the beginning. Nobody has seen it yet, so nothing that is
    /// known elsewhere is stale.
    pub(crate) fn below_over(parent: &Arc<Inner>, transport: Arc<dyn Transport>) -> Self {
        let scope = Self::below(parent);
        let mut tables = scope.owner.0.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.transport = Some(transport);
        drop(tables);
        scope
    }

    /// The scope of an agent.
    pub(crate) fn of_agent(
        parent: &Arc<Inner>,
        agent: &'static str,
        config: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self::made(Some(parent), Some(agent), Some(config))
    }

    /// The scope of one call that is served, with where its cost goes.
    pub(crate) fn serving(parent: &Arc<Inner>, meter: Arc<dyn Any + Send + Sync>) -> Self {
        Self::made(Some(parent), None, Some(meter))
    }

    fn made(
        parent: Option<&Arc<Inner>>,
        agent: Option<&'static str>,
        config: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let stop = parent.map_or_else(CancellationToken::new, |parent| parent.stop.child_token());
        let version = parent.map_or_else(Arc::default, |parent| Arc::clone(&parent.version));
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let inner = Arc::new(Inner {
            parent: parent.cloned(),
            agent,
            version,
            tables: RwLock::default(),
            cache: RwLock::default(),
            config,
            closed: AtomicBool::new(stop.is_cancelled()),
            stop,
            tasks: TaskTracker::new(),
            calls: Mutex::default(),
            children: Mutex::default(),
            number,
        });
        if let Some(parent) = parent {
            lock(&parent.children).insert(number, Arc::downgrade(&inner));
        }
        Self { owner: Arc::new(Owner(inner)) }
    }

    /// Gives a tool an implementation in this scope and below. A scope gives a tool one
    /// implementation; a child may give it another.
    pub fn provide<I, O, P, S, F, Fut>(
        &self,
        tool: &Tool<I, O, P, S>,
        implementation: F,
    ) -> Result<(), Error>
    where
        I: Data,
        O: Data,
        P: Data,
        S: TakesImplementation,
        F: Fn(I, Cx<P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        let exposed = Exposed::of(tool)?;
        let handler: Arc<Handler<I, O, P>> =
            Arc::new(move |input, cx| Box::pin(implementation(input, cx)));
        self.change(|tables| {
            tables.provide(tool.name(), Provided::Local(Arc::new(handler)), exposed)
        })
    }

    /// Lets a tool with an implementation of its own be served from this scope.
    pub fn offer<I: Data, O: Data, P: Data>(
        &self,
        tool: &Tool<I, O, P, crate::Implemented>,
    ) -> Result<(), Error> {
        let exposed = Exposed::of(tool)?;
        self.change(|tables| tables.provide(tool.name(), Provided::Own, exposed))
    }

    /// Lets a tool be called elsewhere, from this scope and below: over this transport, or over
    /// that of the nearest scope.
    pub fn remote<I: Data, O: Data, P: Data, S>(
        &self,
        tool: &Tool<I, O, P, S>,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<(), Error>
    where
        S: TakesImplementation,
    {
        let exposed = Exposed::of(tool)?;
        self.change(|tables| tables.provide(tool.name(), Provided::Remote(transport), exposed))
    }

    /// Where tools without an implementation are called, from this scope and below.
    pub fn set_transport(&self, transport: impl Transport) {
        let transport: Arc<dyn Transport> = Arc::new(transport);
        let set = |tables: &mut Tables| {
            tables.transport = Some(transport);
            Ok(())
        };
        // Nothing can be wrong with setting it.
        let _ = self.change(set);
    }

    /// The same scope with a transport.
    #[must_use]
    pub fn with_transport(self, transport: impl Transport) -> Self {
        self.set_transport(transport);
        self
    }

    /// Puts a layer around calls of a tool that are made from this scope or below, whether they
    /// are executed here or elsewhere. It makes no difference whether the tool is in use already.
    pub fn around<I, O, P, S, F, Fut>(&self, tool: &Tool<I, O, P, S>, layer: F)
    where
        I: Data,
        O: Data,
        P: Data,
        F: Fn(I, Next<I, O, P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        self.layer(Lane::Outer, tool, FromFn(layer));
    }

    /// The same as [`around`](Self::around), next to whoever executes the tool.
    pub fn around_inner<I, O, P, S, F, Fut>(&self, tool: &Tool<I, O, P, S>, layer: F)
    where
        I: Data,
        O: Data,
        P: Data,
        F: Fn(I, Next<I, O, P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        self.layer(Lane::Inner, tool, FromFn(layer));
    }

    /// Puts a ready-made layer around calls of a tool.
    pub fn layer<I: Data, O: Data, P: Data, S>(
        &self,
        lane: Lane,
        tool: &Tool<I, O, P, S>,
        layer: impl Layer<I, O, P>,
    ) {
        self.layer_of(None, lane, tool, layer);
    }

    pub(crate) fn layer_of<I: Data, O: Data, P: Data, S>(
        &self,
        agent: Option<&'static str>,
        lane: Lane,
        tool: &Tool<I, O, P, S>,
        layer: impl Layer<I, O, P>,
    ) {
        let layer: Arc<dyn Layer<I, O, P>> = Arc::new(layer);
        let added = self.change(|tables| {
            tables.layer(tool.name(), agent, lane, Arc::new(layer));
            Ok(())
        });
        // Nothing can be wrong with adding one.
        let _ = added;
    }

    /// Lets something go on beside, until it ends or the scope is closed.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let inner = &self.owner.0;
        let stop = inner.stop.clone();
        inner.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    /// Whether the scope is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.owner.0.is_closed()
    }

    /// Closes the scope and all below it: calls that are under way are called off, tasks are
    /// stopped, and this waits until all of them have cleaned up. What was added is gone.
    pub async fn close(&self) {
        self.owner.0.signal();
        let scopes = self.owner.0.tree();
        join_all(scopes.iter().map(|scope| async {
            scope.tasks.close();
            scope.tasks.wait().await;
        }))
        .await;
    }

    fn change(&self, change: impl FnOnce(&mut Tables) -> Result<(), Error>) -> Result<(), Error> {
        let inner = &self.owner.0;
        let mut tables = inner.tables.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut tables);
        drop(tables);
        inner.version.fetch_add(1, Ordering::Release);
        changed
    }

    /// The tools that were provided here, for whoever serves them.
    pub(crate) fn exposed(&self) -> Vec<Arc<Exposed>> {
        let tables = self.owner.0.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.exposed.clone()
    }
}

impl Inner {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Waits until the scope is closed.
    pub(crate) async fn ended(&self) {
        self.stop.cancelled().await;
    }

    /// This scope and all below it.
    fn tree(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let mut found = vec![Arc::clone(self)];
        let mut at = 0;
        while let Some(scope) = found.get(at).cloned() {
            let children = lock(&scope.children);
            found.extend(children.values().filter_map(Weak::upgrade));
            at += 1;
        }
        found
    }

    /// Closes this scope and all below it without waiting.
    fn signal(self: &Arc<Self>) {
        self.stop.cancel();
        for scope in self.tree() {
            scope.closed.store(true, Ordering::Release);
            let live = std::mem::take(&mut lock(&scope.calls).live);
            live.values().for_each(|call| call.halt());
            *scope.tables.write().unwrap_or_else(PoisonError::into_inner) = Tables::default();
            scope.cache.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Remembers a call; `None` if the scope is closed.
    pub(crate) fn add_call(&self, call: Arc<dyn Halt>) -> Option<u64> {
        let mut calls = lock(&self.calls);
        // Looked at under the lock, so that closing misses no call.
        if self.is_closed() {
            return None;
        }
        let id = calls.next;
        calls.next += 1;
        calls.live.insert(id, call);
        Some(id)
    }

    /// A call is over.
    pub(crate) fn over(&self, id: u64) {
        lock(&self.calls).live.remove(&id);
    }

    /// Does what was to be done at the end of a call. Outside a runtime nobody can.
    pub(crate) fn clean_up(&self, work: Vec<BoxFuture<'static, ()>>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            for work in work {
                self.tasks.spawn_on(work, &runtime);
            }
        }
    }

    /// The configuration of the nearest agent that has one of this type.
    pub(crate) fn config<C: Send + Sync + 'static>(&self) -> Option<Arc<C>> {
        let own = self.config.clone().and_then(|config| config.downcast().ok());
        own.or_else(|| self.parent.as_ref().and_then(|parent| parent.config()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(parent) = &self.parent {
            lock(&parent.children).remove(&self.number);
        }
    }
}

impl Within for Scope {
    fn place(&self) -> Place {
        Place(Arc::clone(&self.owner.0))
    }
}

impl Within for Place {
    fn place(&self) -> Place {
        self.clone()
    }
}

impl Clone for Scope {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("agent", &self.owner.0.agent).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
