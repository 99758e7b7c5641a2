//! An instance of an agent.

use std::sync::Arc;

use crate::Agent;
use crate::calls::exposed::ErasedTool;
use crate::calls::scope::{Place, Scope, Within};

/// An instance of an agent. Its tools are called through it: `SEARCH.call(&flight, trip)`. It ends
/// when it and its clones are dropped, or with the scope in which it was activated.
///
/// ```
/// use wharf_sdk::{Agent, Cx, Fault, Scope, Tool};
///
/// const NAME: Tool<(), String> = Tool::new("name", "Who it is.");
/// const SOMEBODY: Agent<String> = Agent::new("somebody", "Has a name.");
///
/// async fn name(_: (), cx: Cx) -> Result<String, Fault> {
///     Ok(cx.config::<String>()?.to_string())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let root = Scope::root();
/// let ada = SOMEBODY.activate(&root, "Ada".to_owned()).tool(&NAME, name).build()?;
/// let bob = SOMEBODY.activate(&root, "Bob".to_owned()).tool(&NAME, name).build()?;
/// bob.scope().around(&NAME, |_, next| async move { Ok(next.run(()).await?.to_lowercase()) });
/// assert_eq!(NAME.call(&ada, ()).await?, "Ada");
/// assert_eq!(NAME.call(&bob, ()).await?, "bob");
/// # Ok(()) }
/// ```
pub struct Active<C = ()> {
    pub(crate) agent: Agent<C>,
    pub(crate) scope: Scope,
    pub(crate) config: Arc<C>,
}

impl<C> Active<C> {
    /// The definition.
    #[must_use]
    pub fn agent(&self) -> &Agent<C> {
        &self.agent
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &C {
        &self.config
    }

    /// The scope of this instance, where layers can be added that are for it alone.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Its tools, in the order in which they were added.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<ErasedTool>> {
        self.scope.exposed()
    }
}

impl<C> Within for Active<C> {
    fn place(&self) -> Place {
        self.scope.place()
    }
}

impl<C> Clone for Active<C> {
    fn clone(&self) -> Self {
        Self { agent: self.agent, scope: self.scope.clone(), config: Arc::clone(&self.config) }
    }
}

debug_only!(Active<C>: agent);
