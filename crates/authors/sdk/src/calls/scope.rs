//! Scopes: where implementations, layers and transports hold, and what ends together.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::any_layer::AnyLayer;
use super::chain::Handler;
use super::exposed::ErasedTool;
use super::job::Job;
use super::layer::{FromFn, Lane, Layer, LayerFn};
use super::life::Identity;
pub(crate) use super::life::ScopeState;
use super::tables::{Executor, LayerEntry, LayerTarget, Tables};
use super::tool::{Named, TakesImplementation, ToolFn};
use crate::error::Error;
use crate::transport::Transport;
use crate::{Active, Data, Implemented, Tool};

/// A place in the tree of scopes, which calls are made from.
///
/// Layers, implementations and transports hold in the scope where they were added and in all
/// below it. Closing a scope ends everything that was begun in it and below; dropping it (and its
/// clones) does the same without waiting.
///
/// A layer or an implementation that holds the very scope it was added to keeps that scope open:
/// let it use its [`Cx`](crate::Cx) or a [`Place`] instead.
///
/// ```
/// use wharf_sdk::{Scope, Tool};
///
/// const HALF: Tool<f64, f64> = Tool::new("half", "Half of a number.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let root = Scope::root();
/// root.provide(&HALF, |n, _cx| async move { Ok(n / 2.0) })?;
/// root.around(&HALF, |n, next| async move { next.run(n.abs()).await });
///
/// let child = root.child();
/// assert_eq!(HALF.call(&child, -3.0).await?, 1.5);
/// root.close().await;
/// assert!(child.is_closed());
/// # Ok(()) }
/// ```
pub struct Scope {
    owner: Arc<ScopeOwner>,
}

/// Whoever keeps a scope open.
struct ScopeOwner(Arc<ScopeState>);

impl Drop for ScopeOwner {
    fn drop(&mut self) {
        self.0.signal();
    }
}

impl Scope {
    /// A scope without a parent.
    #[must_use]
    pub fn root() -> Self {
        Self::of(ScopeState::below(None, None, None))
    }

    /// A scope below this one: what holds here holds there, and not the other way round.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::below(&self.owner.0)
    }

    pub(crate) fn below(parent: &Arc<ScopeState>) -> Self {
        Self::of(ScopeState::below(Some(parent), None, None))
    }

    /// The scope of one call that is served by a host, over which tools go that it lacks.
    pub(crate) fn serving(
        parent: &Arc<ScopeState>,
        host: Arc<dyn Any + Send + Sync>,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let inner = ScopeState::below(Some(parent), None, Some(host));
        // Nobody has worked out anything for the new scope, so nothing can be stale.
        inner.tables.write().transport = Some(transport);
        Self::of(inner)
    }

    /// The scope of an agent.
    pub(crate) fn of_agent(
        parent: &Arc<ScopeState>,
        agent: Identity,
        config: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self::of(ScopeState::below(Some(parent), Some(agent), Some(config)))
    }

    fn of(inner: Arc<ScopeState>) -> Self {
        Self { owner: Arc::new(ScopeOwner(inner)) }
    }

    /// Gives a tool an implementation in this scope and below. A scope gives a tool one
    /// implementation; a child may give it another, and this one stays as it is.
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool};
    ///
    /// const GREET: Tool<String, String> = Tool::new("greet", "Greets somebody.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Scope::root();
    /// scope.provide(&GREET, |name, _cx| async move { Ok(format!("Hello, {name}!")) })?;
    /// let child = scope.child();
    /// child.provide(&GREET, |name, _cx| async move { Ok(format!("Hi, {name}!")) })?;
    ///
    /// assert_eq!(GREET.call(&child, "Ada".to_owned()).await?, "Hi, Ada!");
    /// assert_eq!(GREET.call(&scope, "Ada".to_owned()).await?, "Hello, Ada!");
    /// # Ok(()) }
    /// ```
    pub fn provide<I: Data, O: Data, P: Data, S: TakesImplementation>(
        &self,
        tool: &Tool<I, O, P, S>,
        implementation: impl ToolFn<I, O, P>,
    ) -> Result<(), Error> {
        let handler: Arc<Handler<I, O, P>> =
            Arc::new(move |input, cx| Box::pin(implementation(input, cx)));
        self.add(tool, Executor::Local(Arc::new(handler)))
    }

    /// Lets a tool with an implementation of its own be served from this scope.
    pub fn offer<I: Data, O: Data, P: Data>(
        &self,
        tool: &Tool<I, O, P, Implemented>,
    ) -> Result<(), Error> {
        self.add(tool, Executor::Own)
    }

    /// Lets a tool be called elsewhere, from this scope and below: over this transport, or over
    /// that of the nearest scope.
    pub fn remote<I: Data, O: Data, P: Data, S: TakesImplementation>(
        &self,
        tool: &Tool<I, O, P, S>,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<(), Error> {
        self.add(tool, Executor::Remote(transport))
    }

    fn add<I: Data, O: Data, P: Data, S>(
        &self,
        tool: &Tool<I, O, P, S>,
        provided: Executor,
    ) -> Result<(), Error> {
        let exposed = Arc::new(ErasedTool::of(tool)?);
        // What is not taken is dropped outside of the lock.
        let mut provided = Some(provided);
        let added = self.change(|tables| {
            if tables.is_provided(tool.key()) {
                return Err(Error::SameName { name: tool.name().to_owned() });
            }
            if let Some(provided) = provided.take() {
                tables.provide(tool.key(), provided, exposed);
            }
            Ok(())
        });
        added.unwrap_or(Err(Error::Closed))
    }

    /// Where tools without an implementation are called, from this scope and below.
    pub fn set_transport(&self, transport: impl Transport) {
        let transport: Arc<dyn Transport> = Arc::new(transport);
        let former = self.change(|tables| tables.transport.replace(transport));
        drop(former);
    }

    /// The same scope with a transport.
    #[must_use]
    pub fn with_transport(self, transport: impl Transport) -> Self {
        self.set_transport(transport);
        self
    }

    /// Puts a layer around calls of a tool that are made from this scope or below, whether they
    /// are executed here or elsewhere. It makes no difference whether the tool is in use already.
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool};
    ///
    /// const DIVIDE: Tool<(i32, i32), i32> = Tool::new("divide", "Divides whole numbers.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Scope::root();
    /// scope.provide(&DIVIDE, |(a, b), _cx| async move { Ok(a / b) })?;
    /// scope.around(&DIVIDE, |(a, b), next| async move {
    ///     if b == 0 { Ok(0) } else { next.run((a, b)).await }
    /// });
    /// assert_eq!(DIVIDE.call(&scope, (7, 2)).await?, 3);
    /// assert_eq!(DIVIDE.call(&scope, (7, 0)).await?, 0);
    /// # Ok(()) }
    /// ```
    pub fn around<I: Data, O: Data, P: Data, S>(
        &self,
        tool: &Tool<I, O, P, S>,
        layer: impl LayerFn<I, O, P>,
    ) {
        self.layer(Lane::Outer, tool, FromFn(layer));
    }

    /// The same as [`around`](Self::around), next to whoever executes the tool.
    pub fn around_inner<I: Data, O: Data, P: Data, S>(
        &self,
        tool: &Tool<I, O, P, S>,
        layer: impl LayerFn<I, O, P>,
    ) {
        self.layer(Lane::Inner, tool, FromFn(layer));
    }

    /// Puts a ready-made layer around calls of a tool; see [`layers`](crate::layers).
    pub fn layer<I: Data, O: Data, P: Data, S>(
        &self,
        lane: Lane,
        tool: &Tool<I, O, P, S>,
        layer: impl Layer<I, O, P>,
    ) {
        self.put(None, lane, LayerTarget::one(tool, layer));
    }

    /// Puts one layer around calls of every tool, built-ins excepted.
    ///
    /// ```
    /// use wharf_sdk::Scope;
    /// use wharf_sdk::layers::{Concurrency, Timeout, Trace};
    ///
    /// let scope = Scope::root();
    /// scope.around_all(Trace::new());
    /// scope.around_all(Timeout::after_secs(30));
    /// scope.around_all(Concurrency::of(16));
    /// ```
    pub fn around_all(&self, layer: impl AnyLayer) {
        self.put(None, Lane::Outer, LayerTarget::all(layer));
    }

    /// Puts one layer around calls of several tools.
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool};
    /// use wharf_sdk::layers::Concurrency;
    ///
    /// const READ: Tool<String, String> = Tool::new("read", "Reads a file.");
    /// const WRITE: Tool<(String, String), ()> = Tool::new("write", "Writes a file.");
    ///
    /// let scope = Scope::root();
    /// // One reader or one writer at a time.
    /// scope.around_each(&[&READ, &WRITE], Concurrency::of(1));
    /// ```
    pub fn around_each(&self, tools: &[&dyn Named], layer: impl AnyLayer) {
        self.put(None, Lane::Outer, LayerTarget::each(tools, layer));
    }

    pub(crate) fn put(&self, agent: Option<Identity>, lane: Lane, target: LayerTarget) {
        let mut added = Some(LayerEntry { agent, lane, target });
        // One that comes too late is dropped outside of the lock.
        let _ = self.change(|tables| tables.layers.extend(added.take()));
    }

    /// Lets something go on beside, until it ends or the scope is closed. Calls that it makes from
    /// a [`Place`] of this scope meet the layers of this scope.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let job: Arc<Job<(), ()>> = Arc::new(Job::new("", Arc::clone(&self.owner.0)));
        job.begin(Box::pin(async move {
            work.await;
            Ok(())
        }));
        tokio::spawn(std::future::poll_fn(move |cx| job.poll(cx).map(drop)));
    }

    /// Whether the scope is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.owner.0.is_closed()
    }

    /// Closes the scope and all below it: calls that are under way are called off, tasks are
    /// stopped, and this waits until all of them have cleaned up. What was added is gone, and
    /// nothing more can be called.
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool};
    ///
    /// const WAIT: Tool<(), ()> = Tool::new("wait", "Waits for ever.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Scope::root();
    /// scope.provide(&WAIT, |_, _cx| std::future::pending())?;
    /// let call = tokio::spawn(WAIT.call(&scope, ()));
    /// tokio::task::yield_now().await;
    /// scope.close().await;
    /// assert_eq!(call.await?.unwrap_err().code.as_str(), "tool.canceled");
    /// # Ok(()) }
    /// ```
    pub async fn close(&self) {
        self.owner.0.signal();
        self.owner.0.settled().await;
    }

    /// `None` if the scope is closed.
    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> Option<T> {
        let inner = &self.owner.0;
        let changed = {
            let mut tables = inner.tables.write();
            // Looked at under the lock, so that nothing stays in a closed scope.
            (!inner.is_closed()).then(|| change(&mut tables))
        };
        inner.changed();
        changed
    }

    /// The tools that were provided here, for whoever serves them.
    pub(crate) fn exposed(&self) -> Vec<Arc<ErasedTool>> {
        self.owner.0.tables.read().exposed.clone()
    }
}

/// Where a call can be made: a [`Scope`](crate::Scope), an [`Active`](crate::Active) agent, a [`Place`], or a
/// tool that is working, by its [`Cx`](crate::Cx).
///
/// ```
/// use wharf_sdk::{Fault, Scope, Tool, Within};
///
/// const ROLL: Tool<u8, u8> = Tool::new("roll", "Rolls a die.");
///
/// // Works wherever calls can be made.
/// async fn twice(within: &impl Within) -> Result<u8, Fault> {
///     Ok(ROLL.call(within, 6).await? + ROLL.call(within, 6).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&ROLL, |sides, _cx| async move { Ok(sides) })?;
/// assert_eq!(twice(&scope).await?, 12);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a call cannot be made from `{Self}`",
    label = "neither a scope, nor an agent, nor the `Cx` of a tool",
    note = "pass `&scope`, an activated agent, or the `&cx` that the tool was given"
)]
pub trait Within {
    /// The place.
    fn place(&self) -> Place;
}

/// Where a call is made. Unlike a [`Scope`](crate::Scope) it keeps nothing open, so a task can hold it.
///
/// ```
/// use wharf_sdk::{Scope, Tool, Within};
///
/// const NEXT: Tool<u8, u8> = Tool::new("next", "One more.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&NEXT, |n, _cx| async move { Ok(n + 1) })?;
/// let place = scope.place();
/// scope.spawn(async move {
///     assert_eq!(NEXT.call(&place, 1).await, Ok(2));
/// });
/// # scope.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Place(pub(crate) Arc<ScopeState>);

debug_only!(Place:);

impl Within for Place {
    fn place(&self) -> Place {
        self.clone()
    }
}

impl Within for Scope {
    fn place(&self) -> Place {
        Place(Arc::clone(&self.owner.0))
    }
}

impl From<&Scope> for Scope {
    fn from(scope: &Scope) -> Self {
        scope.clone()
    }
}

impl<C> From<&Active<C>> for Scope {
    fn from(agent: &Active<C>) -> Self {
        agent.scope().clone()
    }
}

impl Clone for Scope {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.owner.0;
        f.debug_struct("Scope")
            .field("agent", &inner.agent.map(|agent| agent.name))
            .field("version", &inner.version.load(Ordering::Relaxed))
            .field("closed", &inner.is_closed())
            .finish_non_exhaustive()
    }
}
