//! Describing an agent: its id, its tools, its limits.

use std::collections::HashMap;
use std::io::Write as _;
use std::marker::PhantomData;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Fault;
use crate::name::is_name;
use crate::process::service::{Parts, Service, protect, quiet_panics};
use crate::process::tool::Draft;
use crate::process::{AgentCx, Endpoint, Error};

/// No tool was added last, so there is none to adjust.
#[derive(Debug)]
pub struct Plain;

/// A tool was added last and can be adjusted.
#[derive(Debug)]
pub struct Adjusting;

/// An agent and the tools it offers.
///
/// What comes right after [`tool`](AgentProcess::tool) adjusts that tool; mistakes are told by
/// [`build`](AgentProcess::build) or [`run`](AgentProcess::run).
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::process::{AgentCx, AgentProcess};
/// use wharf_sdk::{Fault, JsonSchema};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Numbers { a: i64, b: i64 }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Sum { sum: i64 }
///
/// async fn add(input: Numbers, _cx: AgentCx) -> Result<Sum, Fault> {
///     Ok(Sum { sum: input.a + input.b })
/// }
///
/// let service = AgentProcess::new("dev.example.math", "1.0.0")
///     .calls_max(8)
///     .tool("add", "Adds two numbers.", add)
///     .side_effects(false)
///     .tags(["math"])
///     .build()
///     .expect("a usable agent");
/// assert_eq!(service.tool_ids().collect::<Vec<_>>(), ["dev.example.math/add"]);
/// ```
#[derive(Debug)]
pub struct AgentProcess<Last = Plain> {
    id: String,
    version: String,
    pub(super) tools: Vec<Draft>,
    pub(super) problem: Option<crate::Error>,
    calls_max: usize,
    keeps_keys: bool,
    last: PhantomData<Last>,
}

impl AgentProcess {
    /// An agent without tools. The id is the one of its manifest.
    #[must_use]
    pub fn new(id: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            version: version.into(),
            tools: Vec::new(),
            problem: None,
            calls_max: 256,
            keeps_keys: false,
            last: PhantomData,
        }
    }
}

impl<Last> AgentProcess<Last> {
    /// Adds a tool: its name, what it does, and the function that does it. Input and output are
    /// JSON objects; their schemas come from their types. A tool without output returns `()`.
    ///
    /// Calls run side by side. A handler that blocks its thread for long keeps others from
    /// running; put such work into `tokio::task::spawn_blocking`.
    #[must_use]
    pub fn tool<I, O, F, Fut>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: F,
    ) -> AgentProcess<Adjusting>
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Fn(I, AgentCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        self.tools.push(Draft::new(name.into(), description.into(), handler));
        self.becomes()
    }

    /// How many calls the agent works on at once, at least one; the next is answered `tool.busy`.
    #[must_use]
    pub fn calls_max(mut self, calls_max: usize) -> Self {
        self.calls_max = calls_max.max(1);
        self
    }

    /// Promises that a call with an idempotency key is executed once: a repeated call gets the
    /// first one's output. Keys are kept in this process, for ten minutes after their call has
    /// ended and 100,000 at once; the core is told so, and may repeat a call that failed within
    /// that time, but none whose process is gone.
    #[must_use]
    pub fn keeps_idempotency_keys(mut self) -> Self {
        self.keeps_keys = true;
        self
    }

    /// Checks the agent and its tools.
    pub fn build(self) -> Result<Service, Error> {
        if !is_name(&self.id, 200) {
            return Err(Error::AgentId);
        }
        if let Some(problem) = self.problem {
            return Err(Error::Tools(problem));
        }
        let mut definitions = Vec::new();
        let mut tools = HashMap::new();
        for draft in self.tools {
            let (definition, tool) = draft.build(&self.id)?;
            if tools.insert(definition.tool_id.clone(), tool).is_some() {
                return Err(Error::SameName { name: definition.name });
            }
            definitions.push(definition);
        }
        Ok(Service::new(Parts {
            id: self.id,
            version: self.version,
            definitions,
            tools,
            calls_max: self.calls_max,
            keeps_keys: self.keeps_keys,
        }))
    }

    /// Serves the core that started this process until one of them ends it. This is what `main`
    /// returns: success after an orderly end; else failure, with one line on standard error.
    #[must_use]
    pub fn run(self) -> ExitCode {
        quiet_panics();
        protect();
        let id = self.id.clone();
        let served = self.build().and_then(|service| service.serve(&Endpoint::from_env()?));
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // When standard error is gone there is nobody left to tell.
                let _ = writeln!(std::io::stderr(), "{id}: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn becomes<Next>(self) -> AgentProcess<Next> {
        AgentProcess {
            id: self.id,
            version: self.version,
            tools: self.tools,
            problem: self.problem,
            calls_max: self.calls_max,
            keeps_keys: self.keeps_keys,
            last: PhantomData,
        }
    }
}

impl AgentProcess<Adjusting> {
    /// Whether the tool acts on the world. Without this the core assumes that it does, and does
    /// not repeat a call whose answer was lost.
    #[must_use]
    pub fn side_effects(self, side_effects: bool) -> Self {
        self.adjust(|tool| tool.side_effects = Some(side_effects))
    }

    /// Whether the tool is called only after somebody has approved the call.
    #[must_use]
    pub fn requires_directive(self, requires_directive: bool) -> Self {
        self.adjust(|tool| tool.requires_directive = Some(requires_directive))
    }

    /// Groups for display.
    #[must_use]
    pub fn tags(self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let tags = tags.into_iter().map(Into::into).collect();
        self.adjust(|tool| tool.tags = Some(tags))
    }

    /// The tool can pretend: it is called in mode `mock` too, and then makes something up and acts
    /// on nothing ([`AgentCx::mode`](super::AgentCx::mode)).
    #[must_use]
    pub fn mock(self) -> Self {
        self.adjust(|tool| tool.mock = true)
    }

    /// The tool never costs anything, so it is called even where no money is left. One that
    /// reports a cost all the same is booked, and no longer believed.
    #[must_use]
    pub fn free(self) -> Self {
        self.adjust(|tool| tool.free = true)
    }

    fn adjust(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Some(tool) = self.tools.last_mut() {
            change(tool);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    struct Nothing {}

    async fn nothing(_input: Nothing, _cx: AgentCx) -> Result<(), Fault> {
        Ok(())
    }

    async fn takes_a_list(_input: Vec<String>, _cx: AgentCx) -> Result<(), Fault> {
        Ok(())
    }

    async fn gives_text(_input: Nothing, _cx: AgentCx) -> Result<String, Fault> {
        Ok(String::new())
    }

    #[track_caller]
    fn check<Last>(agent: AgentProcess<Last>, expect: &str) {
        let error = agent.build().expect_err("not a usable agent");
        assert!(error.to_string().contains(expect), "{error}");
    }

    #[test]
    fn mistakes_are_told_when_the_agent_is_built() {
        let agent = || AgentProcess::new("a.b", "1.0.0");
        check(AgentProcess::new("a/b", "1.0.0"), "an agent's id has");
        check(agent().tool("", "x", nothing), "cannot name a tool");
        check(agent().tool("a/b", "x", nothing), "cannot name a tool");
        check(agent().tool("t", "x", nothing).tool("t", "y", nothing), "two tools are called");
        check(agent().tool("t", "x", takes_a_list), "use a struct with named fields");
        check(agent().tool("t", "x", gives_text), "the output of the tool \"t\"");
        assert!(agent().tool("t", "x", nothing).build().is_ok());
    }
}
