//! Runs: asking for them, looking at them, calling them off.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use wharf_domain::{Caller, Outcome};
use wharf_engine::NewRun;
use wharf_sdk::host::CoreTool;
use wharf_vocab::{Code, Durability, Fault, Micro, Object, RunKey, RunStatus, ToolId};

use crate::core::{Embedded, default_world};
use crate::follow::outputs;
use crate::translate::{tool_id, whole_ms, world_id};

/// How long one look at a run waits for its end.
const LOOK: Duration = Duration::from_secs(60);

/// A run that is asked for. Awaiting it gives the output; [`start`](Self::start) gives the run's
/// name as soon as it is accepted.
#[derive(Debug)]
#[must_use = "nothing is run before it is awaited or started"]
pub struct Request {
    core: Embedded,
    tool: String,
    input: Value,
    world: Option<String>,
    key: Option<String>,
    timeout: Option<Duration>,
    budget_micro: Option<Micro>,
    in_memory: bool,
}

impl Request {
    /// The world it belongs to; `default` without this.
    pub fn in_world(mut self, world: impl Into<String>) -> Self {
        self.world = Some(world.into());
        self
    }

    /// A key under which it is run once, however often it is asked for.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long one attempt may be at work; a minute without this.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The most it may cost, in millionths of a dollar.
    pub fn budget_micro(mut self, budget_micro: Micro) -> Self {
        self.budget_micro = Some(budget_micro);
        self
    }

    /// Does not write it down: it is faster, and gone after a restart.
    pub fn unkept(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Starts the run. It goes on whether anybody waits for it or not.
    pub async fn start(self) -> Result<RunKey, Fault> {
        let world = self.world.as_deref().map_or_else(|| Ok(default_world()), world_id)?;
        let tool = tool_id(&self.tool)?;
        let inputs = self.core.form_of(&tool)?.input(self.input);
        let mut new = NewRun::new(tool, inputs, world);
        new.idempotency_key = self.key;
        new.timeout_ms = self.timeout.map(whole_ms);
        new.budget_micro = self.budget_micro;
        new.durability = self.in_memory.then_some(Durability::Memory);
        let accepted = self.core.inner.handle.runs().create(&Caller::owner(), new).await?;
        Ok(accepted.run.key.clone())
    }
}

impl IntoFuture for Request {
    type Output = Result<Value, Fault>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let core = self.core.clone();
            let run = self.start().await?;
            core.wait(&run).await
        })
    }
}

/// A run as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its world and its id.
    pub key: RunKey,
    /// The tool.
    pub tool: ToolId,
    /// Where it stands.
    pub status: RunStatus,
    /// How many attempts have begun.
    pub attempts: u32,
    /// What it has cost, in millionths of a dollar.
    pub cost_micro: Micro,
    /// What it gave, as the core keeps it: values that are no objects have the one key `value`.
    pub outputs: Option<Object>,
    /// Why it did not succeed.
    pub error: Option<Fault>,
}

impl Run {
    pub(crate) fn of(run: &wharf_domain::Run) -> Self {
        let outputs = match &run.outcome {
            Some(Outcome::Succeeded { outputs }) => Some(outputs.clone()),
            _ => None,
        };
        Self {
            key: run.key.clone(),
            tool: run.spec.tool.clone(),
            status: run.status(),
            attempts: run.attempt,
            cost_micro: run.cost_micro,
            outputs,
            error: run.outcome.as_ref().and_then(|outcome| outcome.error().cloned()),
        }
    }
}

impl Embedded {
    /// A run of a tool, such as `flight/search`, with this input.
    pub fn run(&self, tool: impl Into<String>, input: impl Into<Value>) -> Request {
        Request {
            core: self.clone(),
            tool: tool.into(),
            input: input.into(),
            world: None,
            key: None,
            timeout: None,
            budget_micro: None,
            in_memory: false,
        }
    }

    /// A run as it stands.
    pub async fn find(&self, run: &RunKey) -> Result<Run, Fault> {
        self.inner.handle.runs().get(run).await.map(|run| Run::of(&run))
    }

    /// Waits for the end of a run and gives its output, or why there is none.
    pub async fn wait(&self, run: &RunKey) -> Result<Value, Fault> {
        loop {
            let run = self.inner.handle.runs().wait(run, LOOK).await?;
            if run.is_over() {
                let outputs = outputs(&run)?;
                return Ok(match self.form_of(&run.spec.tool) {
                    Ok(form) => form.output(outputs),
                    // The tool is not offered any more, so nobody knows its types.
                    Err(_) => Value::Object(outputs),
                });
            }
            if self.inner.handle.is_stopping() {
                return Err(Fault::new(Code::CoreStopping, "The core is closed."));
            }
        }
    }

    /// Calls a run off. One that is over stays as it is.
    pub async fn cancel(&self, run: &RunKey) -> Result<(), Fault> {
        self.inner.handle.runs().cancel(&Caller::owner(), run, "").await.map(drop)
    }

    /// How values travel to and from a tool.
    fn form_of(&self, tool: &ToolId) -> Result<CoreTool, Fault> {
        let known = self.inner.handle.providers().tool(tool)?;
        let def = &known.def;
        Ok(CoreTool::known(def.tool.as_str(), &def.input_schema, def.output_schema.as_ref()))
    }
}
