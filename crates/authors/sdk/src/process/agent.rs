//! An agent process: its id, its tools, its limits, from its start to its end.

use std::collections::HashMap;
use std::io::Write as _;
use std::num::NonZero;
use std::panic;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use wharf_wire::agent_v1::ToolDefinition;

use super::{Endpoint, connection};
use crate::calls::exposed::is_name;
use crate::calls::tool::{TakesImplementation, ToolFn};
use crate::host::{ServedTool, served};
use crate::{Data, Error, Implemented, Scope, Tool};

/// How long threads that a tool still blocks are waited for at the end.
const BLOCKED_MS: u64 = 1_000;
/// Tools may block their thread, so even a small machine gets a few.
const WORKERS_MIN: usize = 4;

/// An agent as a process that the core starts, and the tools it offers. Mistakes are told by
/// [`build`](AgentProcess::build), [`serve`](AgentProcess::serve) or [`run`](AgentProcess::run).
///
/// ```
/// use wharf_sdk::{AgentProcess, Cx, Fault, Tool};
///
/// const ADD: Tool<(i64, i64), i64> =
///     Tool::new("add", "Adds two numbers.").side_effects(false).tags(&["math"]);
///
/// async fn add((a, b): (i64, i64), _cx: Cx) -> Result<i64, Fault> {
///     Ok(a + b)
/// }
///
/// let agent = AgentProcess::new("dev.example.math", "1.0.0").calls_max(8).tool(&ADD, add);
/// assert_eq!(agent.build().expect("usable").tool_ids(), ["dev.example.math/add"]);
/// ```
#[derive(Debug)]
pub struct AgentProcess {
    id: String,
    version: String,
    scope: Scope,
    problem: Option<Error>,
    calls_max: usize,
    keeps_keys: bool,
}

/// An agent process that was checked.
#[derive(Debug)]
pub struct CheckedAgent {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) definitions: Vec<ToolDefinition>,
    pub(super) tools: HashMap<String, ServedTool>,
    pub(super) calls_max: usize,
    pub(super) keeps_keys: bool,
}

impl AgentProcess {
    /// An agent without tools. The id is the one of its manifest.
    #[must_use]
    pub fn new(id: impl Into<String>, version: impl Into<String>) -> Self {
        Self::of(id, version, Scope::root())
    }

    /// An agent that offers the tools of a scope or of an [`Agent`](crate::Agent).
    ///
    /// Progress is shown as partial results. Questions, messages, completions and calls of tools
    /// that say [where they are](Tool::at) go through the core.
    ///
    /// ```
    /// use wharf_sdk::{AgentProcess, Cx, Fault, Scope, Tool};
    ///
    /// const LOCATE: Tool<(), String> =
    ///     Tool::new("locate", "Where the user is.").at("browser/locate");
    /// const GREET: Tool<String, String> = Tool::new("greet", "Greets somebody.");
    ///
    /// async fn greet(name: String, cx: Cx) -> Result<String, Fault> {
    ///     let place = LOCATE.call(&cx, ()).await?;
    ///     Ok(format!("Hello, {name} in {place}!"))
    /// }
    ///
    /// let root = Scope::root();
    /// root.provide(&GREET, greet).unwrap();
    /// let agent = AgentProcess::of("dev.example.greeter", "1.0.0", &root);
    /// assert_eq!(agent.build().expect("usable").tool_ids(), ["dev.example.greeter/greet"]);
    /// ```
    #[must_use]
    pub fn of(id: impl Into<String>, version: impl Into<String>, agent: impl Into<Scope>) -> Self {
        Self {
            id: id.into(),
            version: version.into(),
            scope: agent.into(),
            problem: None,
            calls_max: 256,
            keeps_keys: false,
        }
    }

    /// Adds a tool with its implementation.
    ///
    /// Calls run side by side. A tool that blocks its thread for long keeps others from running;
    /// put such work into `tokio::task::spawn_blocking`.
    #[must_use]
    pub fn tool<I: Data, O: Data, P: Data, S: TakesImplementation>(
        self,
        tool: &Tool<I, O, P, S>,
        implementation: impl ToolFn<I, O, P>,
    ) -> Self {
        let added = self.scope.provide(tool, implementation);
        self.noted(added)
    }

    /// Adds a tool that has an implementation of its own.
    #[must_use]
    pub fn own<I: Data, O: Data, P: Data>(self, tool: &Tool<I, O, P, Implemented>) -> Self {
        let added = self.scope.offer(tool);
        self.noted(added)
    }

    fn noted(mut self, added: Result<(), Error>) -> Self {
        self.problem = self.problem.or(added.err());
        self
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

    /// Checks the agent and its tools, for tests and where the core is not found through the
    /// environment.
    pub fn build(self) -> Result<CheckedAgent, Error> {
        if !is_name(&self.id, 200) {
            return Err(Error::AgentId);
        }
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut definitions = Vec::new();
        let mut tools = HashMap::new();
        for tool in served(&self.scope) {
            let definition = definition(&self.id, &tool);
            tools.insert(definition.tool_id.clone(), tool);
            definitions.push(definition);
        }
        Ok(CheckedAgent {
            id: self.id,
            version: self.version,
            definitions,
            tools,
            calls_max: self.calls_max,
            keeps_keys: self.keeps_keys,
        })
    }

    /// Serves the core that started this process until one of them ends it. This is what `main`
    /// returns: success after an orderly end; else failure, with one line on standard error.
    #[must_use]
    pub fn run(self) -> ExitCode {
        quiet_panics();
        protect();
        let id = self.id.clone();
        let served = self.build().and_then(|agent| agent.serve(&Endpoint::from_env()?));
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // When standard error is gone there is nobody left to tell.
                let _ = writeln!(std::io::stderr(), "{id}: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

impl CheckedAgent {
    /// The ids of the tools, in the order in which they were added.
    #[must_use]
    pub fn tool_ids(&self) -> Vec<&str> {
        self.definitions.iter().map(|definition| definition.tool_id.as_str()).collect()
    }

    /// Connects once, serves until the session is over, and stops everything that runs. Blocks
    /// this thread, which belongs to the connection meanwhile; not to be called from async code.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), wharf_sdk::Error> {
    /// use wharf_sdk::AgentProcess;
    /// use wharf_sdk::process::Endpoint;
    ///
    /// let agent = AgentProcess::new("dev.example.idle", "1.0.0").build()?;
    /// agent.serve(&Endpoint::new("/run/wharf/agents.sock", "a token")?)
    /// # }
    /// ```
    pub fn serve(self, endpoint: &Endpoint) -> Result<(), Error> {
        let token = endpoint.token_for(&self.id)?;
        let workers = thread::available_parallelism().map_or(1, NonZero::get).max(WORKERS_MIN);
        let tools = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("tool")
            .enable_all()
            .build()?;
        let session = Builder::new_current_thread().enable_all().build()?;
        let work = connection::serve(self, endpoint, token, tools.handle().clone());
        let served = session.block_on(work);
        tools.shutdown_timeout(Duration::from_millis(BLOCKED_MS));
        served
    }
}

/// What the core is told about a tool.
fn definition(agent_id: &str, tool: &ServedTool) -> ToolDefinition {
    let terms = tool.terms();
    let told = [("mock", terms.mock), ("free", terms.free), ("durable", terms.durable)];
    let told = told.iter().filter(|(_, is_said)| *is_said).map(|(word, _)| *word);
    let capabilities = ["streaming", "cancellation"].into_iter().chain(told);
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    ToolDefinition {
        tool_id: format!("{agent_id}/{}", tool.name()),
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        input_schema: tool.input_schema().clone(),
        output_schema: (!tool.gives_nothing()).then(|| tool.output_schema().clone()),
        capabilities: Some(capabilities.map(str::to_owned).collect()),
        side_effects: terms.side_effects,
        requires_directive: terms.requires_directive,
        tags: (!terms.tags.is_empty()).then(|| texts(terms.tags)),
    }
}

/// Makes panics say where they happened and not what they said: the text of a panic can quote
/// what a tool was given. Whoever asks for a backtrace gets everything.
fn quiet_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        return;
    }
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        // When standard error is gone there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "panic at {place}; set RUST_BACKTRACE=1 to see more");
    }));
}

/// Keeps other processes of the same user from reading the token out of this one's environment or
/// memory. Where the system does not know how, nothing is lost that was there before.
fn protect() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cx, Fault};

    const TOOL: Tool<(), ()> = Tool::new("t", "Does nothing.");
    const NAMELESS: Tool<(), ()> = Tool::new("", "Does nothing.");
    const SLASHED: Tool<(), ()> = Tool::new("a/b", "Does nothing.");

    async fn nothing((): (), _cx: Cx) -> Result<(), Fault> {
        Ok(())
    }

    #[track_caller]
    fn check(agent: AgentProcess, expect: &str) {
        let error = agent.build().expect_err("not a usable agent");
        assert!(error.to_string().contains(expect), "{error}");
    }

    #[test]
    fn mistakes_are_told_when_the_agent_is_built() {
        let agent = || AgentProcess::new("a.b", "1.0.0");
        check(AgentProcess::new("a/b", "1.0.0"), "an agent's id has");
        check(agent().tool(&NAMELESS, nothing), "cannot name a tool");
        check(agent().tool(&SLASHED, nothing), "cannot name a tool");
        check(agent().tool(&TOOL, nothing).tool(&TOOL, nothing), "two tools are called");
        assert!(agent().tool(&TOOL, nothing).build().is_ok());
    }

    #[test]
    fn types_that_are_no_objects_are_described_as_objects() {
        const LISTS: Tool<Vec<String>, String> = Tool::new("lists", "Takes a list, gives a text.");
        let joined = |list: Vec<String>, _cx: Cx| async move { Ok::<_, Fault>(list.join(" ")) };
        let agent = AgentProcess::new("a.b", "1").tool(&LISTS, joined).build().expect("usable");
        let definition = &agent.definitions[0];
        assert_eq!(definition.input_schema["type"], "object");
        assert_eq!(definition.output_schema.as_ref().expect("an output")["type"], "object");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn others_of_the_same_user_cannot_look_into_a_protected_process() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        super::protect();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    }
}
