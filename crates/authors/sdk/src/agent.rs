//! Agents: tools that belong together, with a configuration that they share.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::calls::any_layer::AnyLayer;
use crate::calls::layer::{FromFn, Lane, Layer, LayerFn};
use crate::calls::life::Identity;
use crate::calls::scope::{Scope, Within};
use crate::calls::tables::LayerTarget;
use crate::calls::tool::{Named, TakesImplementation, ToolFn};
use crate::error::Error;
use crate::transport::Transport;
use crate::{Active, Data, Implemented, Tool, schema};

/// The definition of an agent: a name, a description, and the type of its configuration.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::{Agent, Cx, Fault, JsonSchema, Scope, Tool};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Settings { greeting: String }
///
/// const GREET: Tool<String, String> = Tool::new("greet", "Greets somebody.");
/// const GREETER: Agent<Settings> = Agent::new("greeter", "Greets people.");
///
/// async fn greet(name: String, cx: Cx) -> Result<String, Fault> {
///     Ok(format!("{}, {name}!", cx.config::<Settings>()?.greeting))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let root = Scope::root();
/// let settings = Settings { greeting: "Hello".to_owned() };
/// let greeter = GREETER.activate(&root, settings).tool(&GREET, greet).build()?;
/// assert_eq!(GREET.call(&greeter, "Ada".to_owned()).await?, "Hello, Ada!");
/// # Ok(()) }
/// ```
pub struct Agent<C = ()> {
    name: &'static str,
    description: &'static str,
    config: PhantomData<fn() -> C>,
}

impl<C> Agent<C> {
    /// A definition.
    #[must_use]
    pub const fn new(name: &'static str, description: &'static str) -> Self {
        Self { name, description, config: PhantomData }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is for.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        self.description
    }
}

impl<C: Data + Default> Agent<C> {
    /// Begins an instance of the agent with the configuration that holds when nothing is said.
    pub fn activate_default(&self, within: &impl Within) -> Activation<C> {
        self.activate(within, C::default())
    }
}

impl<C: Data> Agent<C> {
    /// What scopes know it by.
    fn identity(&self) -> Identity {
        Identity { name: self.name, config: TypeId::of::<C>() }
    }

    /// Begins an instance of the agent in a scope below `within`. Whether the configuration fits
    /// is told when it is built. The instance is closed with the scope it is in, so keep that one:
    /// a `Scope::root()` that is written in place is gone at the end of the statement.
    pub fn activate(&self, within: &impl Within, config: C) -> Activation<C> {
        let problem = self.checked(&config).err();
        let config = Arc::new(config);
        let scope = Scope::of_agent(&within.place().0, self.identity(), config.clone());
        Activation { agent: *self, scope, config, problem }
    }

    /// The same with a configuration as JSON: what is absent has its default.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use serde_json::json;
    /// use wharf_sdk::{Agent, JsonSchema, Scope};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Settings {
    ///     #[serde(default = "three")]
    ///     #[schemars(range(max = 10))]
    ///     attempts: u8,
    /// }
    /// fn three() -> u8 { 3 }
    ///
    /// const GREETER: Agent<Settings> = Agent::new("greeter", "Greets people.");
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let root = Scope::root();
    /// assert_eq!(GREETER.activate_json(&root, json!({}))?.build()?.config().attempts, 3);
    /// let error = GREETER.activate_json(&root, json!({"attempts": 11})).unwrap_err();
    /// assert!(error.to_string().contains("/attempts"));
    /// # Ok(()) }
    /// ```
    pub fn activate_json(
        &self,
        within: &impl Within,
        config: serde_json::Value,
    ) -> Result<Activation<C>, Error> {
        if let Some((path, why)) = schema::read_by::<C>().misfit(&config) {
            return Err(self.unfit(path, why));
        }
        let config = serde_path_to_error::deserialize(config).map_err(|error| {
            let why = "it is missing or of another type".to_owned();
            self.unfit(schema::pointer(error.path()), why)
        })?;
        Ok(self.activate(within, config))
    }

    /// Whether a configuration keeps to what its schema says beyond its type.
    fn checked(&self, config: &C) -> Result<(), Error> {
        let config = serde_json::to_value(config)
            .map_err(|_| self.unfit(String::new(), "it is not JSON".to_owned()))?;
        match schema::written_by::<C>().misfit(&config) {
            None => Ok(()),
            Some((path, why)) => Err(self.unfit(path, why)),
        }
    }

    fn unfit(&self, path: String, why: String) -> Error {
        let path = if path.is_empty() { "the top level".to_owned() } else { path };
        Error::Config { agent: self.name.to_owned(), path, why }
    }

    /// Puts a layer around calls of a tool that this agent makes or serves, in a scope and below;
    /// other agents and calls from elsewhere do not meet it.
    ///
    /// ```
    /// use wharf_sdk::{Agent, Scope, Tool};
    ///
    /// const SEARCH: Tool<String, u32> = Tool::new("search", "Searches for flights.");
    /// const BOOK: Tool<u32, String> = Tool::new("book", "Books a flight.");
    /// const FLIGHT: Agent = Agent::new("flight", "Books flights.");
    ///
    /// let root = Scope::root();
    /// FLIGHT
    ///     .around(&root, &SEARCH, |to, next| async move { next.run(to.to_uppercase()).await })
    ///     .around(&root, &BOOK, |flight, next| async move { next.run(flight).await });
    /// ```
    pub fn around<I: Data, O: Data, P: Data, S>(
        &self,
        scope: &Scope,
        tool: &Tool<I, O, P, S>,
        layer: impl LayerFn<I, O, P>,
    ) -> &Self {
        self.layer(scope, Lane::Outer, tool, FromFn(layer))
    }

    /// Puts a ready-made layer around calls of a tool by this agent.
    pub fn layer<I: Data, O: Data, P: Data, S>(
        &self,
        scope: &Scope,
        lane: Lane,
        tool: &Tool<I, O, P, S>,
        layer: impl Layer<I, O, P>,
    ) -> &Self {
        scope.put(Some(self.identity()), lane, LayerTarget::one(tool, layer));
        self
    }

    /// Puts one layer around calls of all tools by this agent, built-ins excepted.
    pub fn around_all(&self, scope: &Scope, layer: impl AnyLayer) -> &Self {
        scope.put(Some(self.identity()), Lane::Outer, LayerTarget::all(layer));
        self
    }

    /// Puts one layer around calls of several tools by this agent.
    ///
    /// ```
    /// use wharf_sdk::layers::Approve;
    /// use wharf_sdk::{Agent, Scope, Tool};
    ///
    /// const BOOK: Tool<u32, String> = Tool::new("book", "Books a flight.");
    /// const CANCEL: Tool<String, ()> = Tool::new("cancel", "Cancels a flight.");
    /// const FLIGHT: Agent = Agent::new("flight", "Books flights.");
    ///
    /// let root = Scope::root();
    /// FLIGHT.around_each(&root, &[&BOOK, &CANCEL], Approve::new());
    /// ```
    pub fn around_each(&self, scope: &Scope, tools: &[&dyn Named], layer: impl AnyLayer) -> &Self {
        scope.put(Some(self.identity()), Lane::Outer, LayerTarget::each(tools, layer));
        self
    }
}

/// An instance of an agent that is being put together. What is wrong is told at the end, by
/// [`build`](Self::build).
///
/// ```
/// use wharf_sdk::{Agent, Error, Scope, Tool};
///
/// const ADD: Tool<(u32, u32), u32> = Tool::new("add", "The sum of two numbers.");
/// const MATHS: Agent = Agent::new("maths", "Knows numbers.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let root = Scope::root();
/// let maths = MATHS
///     .activate(&root, ())
///     .tool(&ADD, |(a, b), _cx| async move { Ok(a + b) })
///     .around(&ADD, |(a, b), next| async move { next.run((b, a)).await })
///     .build()?;
/// assert_eq!(ADD.call(&maths, (1, 2)).await?, 3);
///
/// let twice = MATHS
///     .activate(&root, ())
///     .tool(&ADD, |(a, b), _cx| async move { Ok(a + b) })
///     .tool(&ADD, |(a, b), _cx| async move { Ok(b + a) })
///     .build();
/// assert_eq!(twice.unwrap_err(), Error::SameName { name: "add".to_owned() });
/// # Ok(()) }
/// ```
#[must_use = "an agent is there once it is built"]
pub struct Activation<C> {
    agent: Agent<C>,
    scope: Scope,
    config: Arc<C>,
    problem: Option<Error>,
}

impl<C: Data> Activation<C> {
    /// Adds a tool with its implementation.
    pub fn tool<I: Data, O: Data, P: Data, S: TakesImplementation>(
        self,
        tool: &Tool<I, O, P, S>,
        implementation: impl ToolFn<I, O, P>,
    ) -> Self {
        let added = self.scope.provide(tool, implementation);
        self.noted(added)
    }

    /// Adds a tool that has an implementation of its own.
    pub fn own<I: Data, O: Data, P: Data>(self, tool: &Tool<I, O, P, Implemented>) -> Self {
        let added = self.scope.offer(tool);
        self.noted(added)
    }

    /// Adds a tool that is executed elsewhere, over the transport of the nearest scope.
    pub fn remote<I: Data, O: Data, P: Data, S: TakesImplementation>(
        self,
        tool: &Tool<I, O, P, S>,
    ) -> Self {
        let added = self.scope.remote(tool, None);
        self.noted(added)
    }

    /// Adds a tool that is executed elsewhere, over a transport of its own.
    pub fn remote_over<I: Data, O: Data, P: Data, S: TakesImplementation>(
        self,
        tool: &Tool<I, O, P, S>,
        transport: impl Transport,
    ) -> Self {
        let added = self.scope.remote(tool, Some(Arc::new(transport)));
        self.noted(added)
    }

    /// Puts a layer around calls of a tool by this instance.
    pub fn around<I: Data, O: Data, P: Data, S>(
        self,
        tool: &Tool<I, O, P, S>,
        layer: impl LayerFn<I, O, P>,
    ) -> Self {
        self.scope.around(tool, layer);
        self
    }

    /// Puts one layer around calls of all tools by this instance, built-ins excepted.
    pub fn around_all(self, layer: impl AnyLayer) -> Self {
        self.scope.around_all(layer);
        self
    }

    /// The first thing that is wrong is told at the end.
    fn noted(mut self, added: Result<(), Error>) -> Self {
        self.problem = self.problem.or(added.err());
        self
    }

    /// The agent, or what is wrong with it.
    pub fn build(self) -> Result<Active<C>, Error> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(Active { agent: self.agent, scope: self.scope, config: self.config }),
        }
    }
}

impl<C> Clone for Agent<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Agent<C> {}

debug_only!(Agent<C>: name);

debug_only!(Activation<C>: agent);
