//! One agent, many faces: how the tools of an agent or a scope are served by something else than
//! the process they are called in.
//!
//! A [`Face`] is what whoever serves an agent sees of it: its tools, with inputs and outputs as
//! the JSON objects that the core knows. The same agent can be served as
//!
//! - an agent process: [`AgentProcess::of`](crate::process::AgentProcess::of),
//! - a tool server: `toolserver::ToolServer::of`, with the feature `toolserver`,
//! - an operative: `operative::connect`,
//! - a provider of a core in one's own program: the crate `wharf-embedded`.
//!
//! Whatever a tool wants while it works, such as an answer, a completion or another tool, goes to
//! whoever serves it, its [`Host`]. So a tool need not know how it is served.
//!
//! ```
//! use serde_json::json;
//! use wharf_sdk::face::Face;
//! use wharf_sdk::{Cx, Fault, Scope, Tool};
//!
//! const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
//!
//! let root = Scope::root();
//! root.provide(&DOUBLE, |n: u32, _cx: Cx| async move { Ok::<_, Fault>(2 * n) }).unwrap();
//! let face = Face::of(&root).side_effects(&DOUBLE, false);
//! // Values that are no objects have the one key `value`.
//! let tool = &face.tools().unwrap()[0];
//! assert_eq!(tool.name(), "double");
//! assert_eq!(tool.input_schema()["required"], json!(["value"]));
//! ```

mod bridge;
mod host;
mod reach;
mod served;
mod wanted;

pub use bridge::Bridge;
pub use host::{Errand, Host};
pub use reach::{Reach, Reached};
pub use served::Served;

use std::fmt;
use std::sync::Arc;

use wharf_vocab::Micro;

use crate::error::Error;
use crate::exposed::Exposed;
use crate::scope::Scope;
use crate::wire::Wire;
use crate::{Active, Cx, Data, Tool, Within as _};

/// What whoever serves an agent or a scope sees of it: its tools, and what they are connected to.
///
/// It keeps the agent, but not the scope that the agent was activated in: that is closed when it
/// is dropped, and the agent with it.
#[derive(Clone)]
pub struct Face {
    scope: Scope,
    tools: Vec<Arc<Exposed>>,
    terms: Vec<Terms>,
    reach: Reach,
    problem: Option<Error>,
}

/// What the core is told of a tool beside its types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) side_effects: Option<bool>,
    pub(crate) requires_directive: Option<bool>,
}

impl Face {
    /// The face of an agent or a scope: all tools that have an implementation there, or a
    /// transport of their own.
    pub fn of(agent: impl Into<Self>) -> Self {
        agent.into()
    }

    fn from_scope(scope: &Scope) -> Self {
        let inner = scope.place().0;
        let is_served = |tool: &Arc<Exposed>| {
            tool.wire == Wire::Tool && !inner.is_passed_on(tool.definition().name)
        };
        let tools: Vec<_> = scope.exposed().into_iter().filter(is_served).collect();
        let terms = tools.iter().map(|_| Terms::default()).collect();
        Self { scope: scope.clone(), tools, terms, reach: Reach::default(), problem: None }
    }

    /// Says which tool of the core is meant when the agent calls one that it has no
    /// implementation for, such as `browser/get-location`. An agent process needs the owner's
    /// permission for it: `tool:invoke:` and the tool's id.
    #[must_use]
    pub fn reaches<I: Data, O: Data, P: Data, S>(
        mut self,
        tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) -> Self {
        self.reach.add(tool, id);
        self
    }

    /// Says whether a tool acts on the world. Without this the core assumes that it does, and
    /// does not repeat a call whose answer was lost.
    #[must_use]
    pub fn side_effects<I, O, P, S>(self, tool: &Tool<I, O, P, S>, side_effects: bool) -> Self {
        self.adjust(tool.name(), |terms| terms.side_effects = Some(side_effects))
    }

    /// Says whether a tool is called only after somebody has approved the call.
    #[must_use]
    pub fn requires_directive<I, O, P, S>(self, tool: &Tool<I, O, P, S>, requires: bool) -> Self {
        self.adjust(tool.name(), |terms| terms.requires_directive = Some(requires))
    }

    fn adjust(mut self, tool: &'static str, change: impl FnOnce(&mut Terms)) -> Self {
        match self.position(tool) {
            Some(at) => change(&mut self.terms[at]),
            None => self.problem = self.problem.or(Some(not_served(tool))),
        }
        self
    }

    fn position(&self, tool: &str) -> Option<usize> {
        self.tools.iter().position(|served| served.definition().name == tool)
    }

    /// Its tools, or what is wrong with them.
    pub fn tools(&self) -> Result<Vec<Served>, Error> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let both = self.tools.iter().zip(&self.terms);
        both.map(|(tool, terms)| self.serve(tool, terms)).collect()
    }

    /// One of its tools.
    pub fn tool(&self, name: &str) -> Result<Served, Error> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let at = self.position(name).ok_or_else(|| not_served(name))?;
        self.serve(&self.tools[at], &self.terms[at])
    }

    fn serve(&self, tool: &Arc<Exposed>, terms: &Terms) -> Result<Served, Error> {
        Served::new(Arc::clone(tool), self.scope.clone(), self.reach.clone(), terms.clone())
    }
}

fn not_served(tool: &str) -> Error {
    Error::NotServed { name: tool.to_owned() }
}

impl From<&Scope> for Face {
    fn from(scope: &Scope) -> Self {
        Self::from_scope(scope)
    }
}

impl<C> From<&Active<C>> for Face {
    fn from(agent: &Active<C>) -> Self {
        Self::from_scope(agent.scope())
    }
}

impl fmt::Debug for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.definition().name).collect();
        f.debug_struct("Face").field("tools", &names).finish_non_exhaustive()
    }
}

/// Where the cost of a call goes.
pub(crate) struct Meter(pub(crate) Box<dyn Fn(Micro) + Send + Sync>);

impl<P> Cx<P> {
    /// Adds to what the call costs, in millionths of a dollar. Whoever serves the tool passes it
    /// on at once, so that a budget can stop the call; whoever calls it sees it by
    /// [`Call::cost`](crate::Call::cost). What other tools cost that are called through this is
    /// counted with them, not with this call.
    ///
    /// ```
    /// use wharf_sdk::{Cx, Fault};
    ///
    /// async fn search(words: Vec<String>, cx: Cx) -> Result<usize, Fault> {
    ///     cx.add_cost(25);
    ///     Ok(words.len())
    /// }
    /// ```
    pub fn add_cost(&self, micro: Micro) {
        self.called.spend(micro);
        if let Some(meter) = self.place().0.config::<Meter>() {
            (meter.0)(micro);
        }
    }
}
