//! A definition: what a tool is called, what it takes and what it gives.

use std::marker::PhantomData;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::Call;
use super::scope::Within;
use super::wire::Wire;
use crate::{Cx, Fault};

/// What can be an input, an output or a piece of progress: plain data with a schema.
///
/// Every type that derives `Serialize`, `Deserialize` and `JsonSchema` is one.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::{Data, JsonSchema};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Trip { destination: String }
///
/// fn is_data<T: Data>() {}
/// is_data::<Trip>();
/// is_data::<Vec<Option<u8>>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the input, output or progress of a tool",
    label = "not plain data with a schema",
    note = "derive `Serialize`, `Deserialize` and `JsonSchema` for it, and let it borrow nothing"
)]
pub trait Data: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static> Data for T {}

/// A tool without an implementation of its own: it is given one in a scope, or called elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Open;

/// A tool that has its implementation in its definition.
#[derive(Debug, Clone, Copy)]
pub struct Implemented;

/// A tool that can be given an implementation in a scope.
#[diagnostic::on_unimplemented(
    message = "this tool has an implementation of its own, so it cannot be given another",
    label = "has an implementation in its definition",
    note = "change what it does with a layer: `scope.around(&TOOL, …)`"
)]
pub trait TakesImplementation {}

impl TakesImplementation for Open {}

/// A function or closure that implements a tool: it takes the input and the [`Cx`] of a call, and
/// its future gives the output. Nothing else is one.
pub trait ToolFn<I, O, P>:
    Fn(I, Cx<P>) -> <Self as ToolFn<I, O, P>>::Work + Send + Sync + 'static
{
    /// What it returns.
    type Work: Future<Output = Result<O, Fault>> + Send + 'static;
}

impl<I, O, P, F, Fut> ToolFn<I, O, P> for F
where
    F: Fn(I, Cx<P>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Fault>> + Send + 'static,
{
    type Work = Fut;
}

/// The function behind a tool that has its implementation in its definition.
pub type Function<I, O, P> = fn(I, Cx<P>) -> BoxFuture<'static, Result<O, Fault>>;

/// The definition of a tool: a name, a description, and the types of input, output and progress.
///
/// A definition holds no state and can be a constant that both sides of a call share. Who
/// executes it is decided where it is called: an implementation of the nearest scope, else its
/// own, else the nearest transport.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::{JsonSchema, Tool};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Ask { accuracy: String }
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Place { lat: f64, lng: f64 }
///
/// const GET_LOCATION: Tool<Ask, Place, String> = Tool::new("get-location", "Where the user is.");
/// assert_eq!(GET_LOCATION.name(), "get-location");
/// ```
pub struct Tool<I, O, P = (), S = Open> {
    name: &'static str,
    description: &'static str,
    pub(crate) own: Option<Function<I, O, P>>,
    pub(crate) wire: Wire,
    terms: Terms,
    state: PhantomData<S>,
}

/// What a definition says of a tool beside its types. The core is told so by whoever serves it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// Whether it acts on the world; if nothing is said, the core assumes that it does.
    pub side_effects: Option<bool>,
    /// Whether it is called only after somebody has approved the call.
    pub requires_directive: Option<bool>,
    /// Groups for display.
    pub tags: &'static [&'static str],
    /// Whether it can be called in mode `mock`.
    pub mock: bool,
    /// Whether it never costs anything.
    pub free: bool,
    /// Whether its code finds its steps again, so that a call that fails may be repeated.
    pub durable: bool,
    /// The id of the core's tool that it stands for where it has no implementation.
    pub at: Option<&'static str>,
}

impl Terms {
    const NONE: Self = Self {
        side_effects: None,
        requires_directive: None,
        tags: &[],
        mock: false,
        free: false,
        durable: false,
        at: None,
    };
}

/// What a scope knows a tool by. Built-ins are written differently on the wire, so no name that a
/// user may choose is theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub(crate) name: &'static str,
    pub(crate) wire: Wire,
}

/// A definition, whatever its types. Every [`Tool`] is one, and nothing else.
///
/// ```
/// use wharf_sdk::{Named, Tool};
///
/// const READ: Tool<String, String> = Tool::new("read", "Reads a file.");
/// const SIZE: Tool<String, u64> = Tool::new("size", "How large a file is.");
///
/// let tools: [&dyn Named; 2] = [&READ, &SIZE];
/// assert_eq!(tools.map(|tool| tool.name()), ["read", "size"]);
/// ```
pub trait Named: sealed::Sealed {
    /// Its name.
    fn name(&self) -> &'static str;

    #[doc(hidden)]
    fn key(&self) -> Key;
}

mod sealed {
    pub trait Sealed {}
    impl<I, O, P, S> Sealed for super::Tool<I, O, P, S> {}
}

impl<I, O, P, S> Named for Tool<I, O, P, S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn key(&self) -> Key {
        Tool::key(self)
    }
}

impl<I, O, P> Tool<I, O, P> {
    /// A definition without an implementation.
    #[must_use]
    pub const fn new(name: &'static str, description: &'static str) -> Self
    where
        I: Data,
        O: Data,
        P: Data,
    {
        Self::speaking(name, description, Wire::Tool)
    }

    /// A definition with its own way of being written on the wire.
    pub(crate) const fn speaking(
        name: &'static str,
        description: &'static str,
        wire: Wire,
    ) -> Self {
        Self { name, description, own: None, wire, terms: Terms::NONE, state: PhantomData }
    }

    /// The same definition with an implementation of its own.
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool, boxed};
    ///
    /// const DOUBLE: Tool<u32, u32, (), wharf_sdk::Implemented> =
    ///     Tool::new("double", "Twice as much.").implemented(|n, _cx| boxed(async move { Ok(2 * n) }));
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// assert_eq!(DOUBLE.call(&Scope::root(), 21).await, Ok(42));
    /// # }
    /// ```
    #[must_use]
    pub const fn implemented(self, function: Function<I, O, P>) -> Tool<I, O, P, Implemented> {
        Tool {
            name: self.name,
            description: self.description,
            own: Some(function),
            wire: self.wire,
            terms: self.terms,
            state: PhantomData,
        }
    }
}

impl<I, O, P, S> Tool<I, O, P, S> {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it does.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        self.description
    }

    /// What the definition says beside its types.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The same definition of a tool that acts on the world, or does not. If nothing is said, the
    /// core assumes that it does, and does not repeat a call whose answer was lost.
    #[must_use]
    pub const fn side_effects(mut self, side_effects: bool) -> Self {
        self.terms.side_effects = Some(side_effects);
        self
    }

    /// The same definition of a tool that is called only after somebody has approved the call.
    #[must_use]
    pub const fn requires_directive(mut self, requires_directive: bool) -> Self {
        self.terms.requires_directive = Some(requires_directive);
        self
    }

    /// The same definition in these groups, for display.
    #[must_use]
    pub const fn tags(mut self, tags: &'static [&'static str]) -> Self {
        self.terms.tags = tags;
        self
    }

    /// The same definition of a tool that is called in mode `mock` too, and then makes something
    /// up and acts on nothing ([`Cx::mode`]).
    #[must_use]
    pub const fn mock(mut self) -> Self {
        self.terms.mock = true;
        self
    }

    /// The same definition of a tool that never costs anything, so it is called even where no
    /// money is left. One that reports a cost all the same is booked, and no longer believed.
    #[must_use]
    pub const fn free(mut self) -> Self {
        self.terms.free = true;
        self
    }

    /// The same definition of a tool whose work is done in steps ([`Cx::step`], [`Cx::local`]): a
    /// call that fails is repeated whatever the reason, and finds its steps again.
    #[must_use]
    pub const fn durable(mut self, durable: bool) -> Self {
        self.terms.durable = durable;
        self
    }

    /// The same definition, which stands for a tool of the core where it has no implementation.
    /// An agent process needs the owner's permission to call it: `tool:invoke:` and the id.
    ///
    /// ```
    /// use wharf_sdk::Tool;
    ///
    /// const GET_LOCATION: Tool<(), String> =
    ///     Tool::new("get-location", "Where the user is.").at("browser/get-location");
    /// ```
    #[must_use]
    pub const fn at(mut self, id: &'static str) -> Self {
        self.terms.at = Some(id);
        self
    }

    /// The same definition without its state, which matters only where it is given an
    /// implementation.
    pub(crate) const fn erased(self) -> Tool<I, O, P> {
        let Self { name, description, own, wire, terms, .. } = self;
        Tool { name, description, own, wire, terms, state: PhantomData }
    }

    pub(crate) const fn key(&self) -> Key {
        Key { name: self.name, wire: self.wire }
    }
}

impl<I, O, P, S> Tool<I, O, P, S> {
    /// Calls the tool in a scope, from an agent, or from within another tool. Nothing happens
    /// before the call is awaited or its progress is read; dropping it calls it off.
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool};
    ///
    /// const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Scope::root();
    /// let fault = DOUBLE.call(&scope, 21).await.unwrap_err();
    /// assert_eq!(fault.code.as_str(), "tool.unavailable");
    ///
    /// scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) })?;
    /// assert_eq!(DOUBLE.call(&scope, 21).await?, 42);
    /// # Ok(()) }
    /// ```
    pub fn call(&self, within: &impl Within, input: I) -> Call<O, P>
    where
        I: Data,
        O: Data,
        P: Data,
    {
        Call::new(within.place(), self.erased(), input)
    }
}

impl<I, O, P, S> Clone for Tool<I, O, P, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I, O, P, S> Copy for Tool<I, O, P, S> {}

debug_only!(Tool<I, O, P, S>: name);

/// Puts a future into a box, as [`Tool::implemented`] and layers want it.
///
/// ```
/// use wharf_sdk::{Function, Implemented, Tool, boxed};
///
/// const HALVE: Function<u32, u32, ()> = |n, _cx| boxed(async move { Ok(n / 2) });
/// const HALF: Tool<u32, u32, (), Implemented> = Tool::new("half", "Half as much.").implemented(HALVE);
/// assert_eq!(HALF.name(), "half");
/// ```
pub fn boxed<T>(
    future: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> BoxFuture<'static, Result<T, Fault>> {
    Box::pin(future)
}
