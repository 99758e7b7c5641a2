//! Tools as functions of this process: typed, streaming, cancelable, able to ask.
//!
//! A panic in a tool fails its attempt and nothing else. An attempt that is told to stop is
//! dropped at its next await, so clean-up belongs into `Drop`.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::{AttemptError, NewAsk};
use wharf_domain::{Audience, Availability, Level, Progress, Resolution, Run, ToolDef};
use wharf_ports::{Dispatch, ProviderSink, QuoteFor, RoomFor};
use wharf_vocab::{
    AskKind, AttemptId, Code, Executed, Fault, IdError, Micro, Object, ProviderId, ToolId,
};

use crate::{Attempt, AttemptData, AttemptEnd, AttemptRef, FollowEvent, Handle, NewRun};

/// Attempts that may be under way at once. Those that others have started count apart from those,
/// or all places could be taken by tools that wait for each other.
const ATTEMPTS_MAX: usize = 4096;

/// A provider whose tools are functions of this process.
pub struct InProcess {
    id: ProviderId,
    tools: BTreeMap<ToolId, (ToolDef, Function)>,
    quote: Option<Quote>,
}

type Function = Arc<
    dyn Fn(Object, LocalCx) -> BoxFuture<'static, Result<ToolOutput, ToolFailure>> + Send + Sync,
>;

/// What a call of a tool costs at most, where that can be told from its inputs.
type Quote = Arc<dyn Fn(&QuoteFor<'_>) -> Option<Micro> + Send + Sync>;

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The outputs.
    pub outputs: Object,
    /// What it cost.
    pub cost_micro: u64,
}

/// How a tool failed, for one that knows more of it than an error says.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    /// The error.
    pub fault: Fault,
    /// Whether it acted: where it did not, another attempt is safe.
    pub executed: Executed,
    /// What it cost all the same.
    pub cost_micro: u64,
}

impl From<Fault> for ToolFailure {
    fn from(fault: Fault) -> Self {
        Self { fault, executed: Executed::Yes, cost_micro: 0 }
    }
}

/// What a tool can do besides returning: stream, ask, call other tools.
#[derive(Debug, Clone)]
pub struct LocalCx {
    attempt: AttemptRef,
    handle: Handle,
    answers: Arc<Mutex<HashMap<String, oneshot::Sender<Resolution>>>>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").field("id", &self.id).finish_non_exhaustive()
    }
}

impl InProcess {
    /// A provider without tools.
    pub fn new(id: &str) -> Result<Self, IdError> {
        Ok(Self { id: ProviderId::new(id)?, tools: BTreeMap::new(), quote: None })
    }

    /// Adds a tool; its schemas come from the types, the rest from `adjust`.
    pub fn tool<I, O, F, R>(
        mut self,
        name: &str,
        description: &str,
        adjust: impl FnOnce(&mut ToolDef),
        function: F,
    ) -> Result<Self, IdError>
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + 'static,
        F: Fn(I, LocalCx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(O, u64), Fault>> + Send + 'static,
    {
        let tool = ToolId::new(format!("{}/{name}", self.id))?;
        let mut def = ToolDef::new(tool.clone(), description, schema_of::<I>());
        def.output_schema = Some(schema_of::<O>());
        adjust(&mut def);
        let function: Function = Arc::new(move |inputs, cx| {
            let ready = match wharf_vocab::json::fit(Value::Object(inputs), "The input") {
                Ok(input) => Ok(function(input, cx)),
                Err(fault) => Err(Fault::new(Code::ToolInvalidInput, fault.message)),
            };
            Box::pin(async move {
                let (output, cost_micro) = ready?.await?;
                Ok(ToolOutput { outputs: to_object(&output)?, cost_micro })
            })
        });
        self.tools.insert(tool, (def, function));
        Ok(self)
    }

    /// Adds a tool whose inputs and outputs are plain objects. Its id begins with the provider's.
    pub fn object_tool<F, R>(mut self, def: ToolDef, function: F) -> Self
    where
        F: Fn(Object, LocalCx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, Fault>> + Send + 'static,
    {
        let function: Function = Arc::new(move |inputs, cx| {
            let work = function(inputs, cx);
            Box::pin(async move { work.await.map_err(ToolFailure::from) })
        });
        self.tools.insert(def.tool.clone(), (def, function));
        self
    }

    /// Adds a tool that tells beforehand what a call costs at most, and afterwards what one that
    /// failed has cost. A provider has one such tool.
    pub fn priced_tool<F, R>(
        mut self,
        def: ToolDef,
        quote: impl Fn(&QuoteFor<'_>) -> Option<Micro> + Send + Sync + 'static,
        function: F,
    ) -> Self
    where
        F: Fn(Object, LocalCx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, ToolFailure>> + Send + 'static,
    {
        let function: Function = Arc::new(move |inputs, cx| Box::pin(function(inputs, cx)));
        self.tools.insert(def.tool.clone(), (def, function));
        self.quote = Some(Arc::new(quote));
        self
    }

    /// Adds the provider and its tools to an engine and says that it is up.
    pub async fn register(self, handle: &Handle) -> Result<(), Fault> {
        let defs = self.tools.values().map(|(def, _)| def.clone()).collect();
        let tools = self.tools.into_iter().map(|(id, (_, function))| (id, function)).collect();
        let sink = Arc::new(InProcessSink {
            handle: handle.clone(),
            runtime: tokio::runtime::Handle::current(),
            tools,
            quote: self.quote,
            under_way: Arc::default(),
        });
        handle.providers().register(self.id.clone(), defs, sink).await?;
        handle.providers().set_availability(self.id, Availability::Up).await
    }
}

/// The engine's side of the provider.
struct InProcessSink {
    handle: Handle,
    runtime: tokio::runtime::Handle,
    tools: BTreeMap<ToolId, Function>,
    quote: Option<Quote>,
    under_way: Arc<Mutex<HashMap<AttemptId, InProcessCall>>>,
}

impl InProcessSink {
    /// How many attempts at this depth are under way.
    fn at_depth(under_way: &HashMap<AttemptId, InProcessCall>, depth: u32) -> usize {
        if under_way.len() < ATTEMPTS_MAX {
            return 0;
        }
        under_way.values().filter(|one| one.depth == depth).count()
    }
}

struct InProcessCall {
    /// How many runs stand above its own.
    depth: u32,
    stop: CancellationToken,
    answers: Arc<Mutex<HashMap<String, oneshot::Sender<Resolution>>>>,
}

impl ProviderSink for InProcessSink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let Some(function) = self.tools.get(&dispatch.spec.tool).cloned() else {
            let message = format!("There is no tool {}.", dispatch.spec.tool);
            return Err(Fault::new(Code::ToolNotFound, message));
        };
        let id = dispatch.attempt_id.clone();
        let (stop, answers) = (CancellationToken::new(), Arc::default());
        let mut under_way = self.under_way.lock();
        if under_way.contains_key(&id) {
            return Ok(());
        }
        let depth = dispatch.spec.depth;
        if Self::at_depth(&under_way, depth) >= ATTEMPTS_MAX {
            return Err(Fault::new(Code::ToolBusy, "Too many built-in tools are running."));
        }
        let entry = InProcessCall { depth, stop: stop.clone(), answers: Arc::clone(&answers) };
        under_way.insert(id.clone(), entry);
        drop(under_way);
        let attempt = Attempt::new(self.handle.clone(), dispatch);
        let cx =
            LocalCx { attempt: AttemptRef::clone(&attempt), handle: self.handle.clone(), answers };
        let all = Arc::clone(&self.under_way);
        self.runtime.spawn(async move {
            attempt.handed_over();
            let inputs = Object::clone(&attempt.dispatch().spec.inputs);
            let work = AssertUnwindSafe(async move { function(inputs, cx).await }).catch_unwind();
            let ended = tokio::select! {
                biased;
                () = stop.cancelled() => canceled(),
                ended = work => report_of(ended),
            };
            all.lock().remove(&id);
            let told = match ended {
                Ok(done) => attempt.succeeded(done.outputs, done.cost_micro).await,
                Err((error, cost)) => attempt.ended(AttemptEnd::new(Err(error), cost)).await,
            };
            if let Err(fault) = told {
                tracing::debug!(code = %fault.code, "the engine stopped before an attempt ended");
            }
        });
        Ok(())
    }

    fn has_room(&self, wanted: &RoomFor<'_>) -> bool {
        Self::at_depth(&self.under_way.lock(), wanted.spec.depth) + wanted.called < ATTEMPTS_MAX
    }

    fn quote(&self, wanted: &QuoteFor<'_>) -> Option<Micro> {
        self.quote.as_ref().and_then(|quote| quote(wanted))
    }

    fn cancel(&self, attempt_id: &AttemptId, _reason: &str, _grace_ms: u64) {
        if let Some(under_way) = self.under_way.lock().get(attempt_id) {
            under_way.stop.cancel();
        }
    }

    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution) {
        let waiting = self
            .under_way
            .lock()
            .get(attempt_id)
            .and_then(|under_way| under_way.answers.lock().remove(key));
        if let Some(waiting) = waiting {
            // The tool may have stopped waiting.
            let _ = waiting.send(resolution.clone());
        }
    }
}

type ToolEnd = Result<Result<ToolOutput, ToolFailure>, Box<dyn std::any::Any + Send>>;

/// What a tool gave, or how it ended otherwise and what that cost.
type ToolReport = Result<ToolOutput, (AttemptError, Micro)>;

fn report_of(ended: ToolEnd) -> ToolReport {
    let failure = match ended {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(failure)) => failure,
        Err(_) => Fault::new(Code::ToolInternal, "The tool failed inside.").into(),
    };
    let ToolFailure { fault, executed, cost_micro } = failure;
    Err((AttemptError::Failed(fault, executed), cost_micro))
}

fn canceled() -> ToolReport {
    let fault = Fault::new(Code::ToolCanceled, "The tool stopped because it was told to.");
    Err((AttemptError::Canceled(fault), 0))
}

impl LocalCx {
    /// The files of the attempt: inputs that are references, and where outputs go.
    pub fn data(&self) -> AttemptData {
        self.attempt.data()
    }

    /// The attempt.
    pub fn attempt(&self) -> &AttemptRef {
        &self.attempt
    }

    /// The engine.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Adds text to a channel.
    pub async fn text(&self, channel: &str, text: impl Into<String>) -> Result<(), Fault> {
        let piece = Progress::Text { channel: channel.to_owned(), text: text.into() };
        self.attempt.progress(vec![piece]).await
    }

    /// Writes a line to the run's log.
    pub async fn log(&self, level: Level, text: impl Into<String>) -> Result<(), Fault> {
        self.attempt.progress(vec![Progress::Log { level, text: text.into() }]).await
    }

    /// Says how far the run is.
    pub async fn phase(&self, phase: &str, fraction: f64) -> Result<(), Fault> {
        let piece = Progress::Phase { phase: phase.to_owned(), fraction: Some(fraction) };
        self.attempt.progress(vec![piece]).await
    }

    /// Writes several pieces of progress at once.
    pub async fn progress(&self, pieces: Vec<Progress>) -> Result<(), Fault> {
        self.attempt.progress(pieces).await
    }

    /// Asks a question and waits for how it ends, also across a restart of the core: the same
    /// `key` in one run is the same question.
    pub async fn ask(
        &self,
        key: &str,
        title: &str,
        schema: Option<Value>,
        audience: Audience,
    ) -> Result<Resolution, Fault> {
        self.ask_about(key, title, schema, audience, None).await
    }

    /// Asks a question with something more to look at.
    pub async fn ask_about(
        &self,
        key: &str,
        title: &str,
        schema: Option<Value>,
        audience: Audience,
        detail: Option<Value>,
    ) -> Result<Resolution, Fault> {
        let (sender, answer) = oneshot::channel();
        self.answers.lock().insert(key.to_owned(), sender);
        let ask = NewAsk {
            escalates: None,
            detail,
            by: Vec::new(),
            attempt_id: self.attempt.dispatch().attempt_id.clone(),
            kind: AskKind::Question,
            key: key.to_owned(),
            title: title.to_owned(),
            schema,
            audience,
            deadline: None,
        };
        self.attempt.raise(ask).await?;
        answer.await.map_err(|_| Fault::new(Code::ToolCanceled, "The question was dropped."))
    }

    /// Whether there is a tool of this name.
    pub fn has_tool(&self, tool: &ToolId) -> bool {
        self.handle.providers().tool(tool).is_ok()
    }

    /// Runs another tool as a child of this run in the same mode, passes on the text that it
    /// streams, and waits for its end.
    pub async fn call_and_follow(&self, tool: ToolId, inputs: Object) -> Result<Arc<Run>, Fault> {
        let dispatch = self.attempt.dispatch();
        let mut new = NewRun::new(tool, inputs, dispatch.run.world.clone());
        new.mode = dispatch.spec.mode;
        new.correlation_id.clone_from(&dispatch.spec.correlation_id);
        let caller = self.attempt.caller(vec![ToolPattern::any()]);
        let accepted = self.attempt.invoke(&caller, new).await?;
        // A child ends with its parent, so nobody has to stop it.
        let (events, never) = (self.handle.run_events(), CancellationToken::new());
        let mut follow = events.follow(caller, &accepted.run.key, never).await?;
        loop {
            match follow.next().await? {
                FollowEvent::Ended(run) => return Ok(run),
                FollowEvent::Progress(piece @ Progress::Text { .. }) => {
                    self.attempt.progress(vec![piece]).await?;
                }
                FollowEvent::Progress(_) | FollowEvent::Cost(_) | FollowEvent::Canceled => {}
            }
        }
    }

    /// Runs another tool as a child of this run and waits for its end.
    pub async fn call(&self, tool: &str, inputs: Object) -> Result<Arc<Run>, Fault> {
        let tool = ToolId::new(tool)
            .map_err(|error| Fault::new(Code::RequestInvalid, format!("{error}.")))?;
        let new = NewRun::new(tool, inputs, self.attempt.dispatch().run.world.clone());
        // What a tool starts has the rights of whoever started the tool, and no person behind it.
        let caller = self.attempt.caller(vec![ToolPattern::any()]);
        let accepted = self.attempt.invoke(&caller, new).await?;
        loop {
            let key = &accepted.run.key;
            let run = self.handle.runs().wait(key, std::time::Duration::from_secs(60)).await?;
            if run.is_over() {
                return Ok(run);
            }
        }
    }
}

fn to_object(output: &impl Serialize) -> Result<Object, Fault> {
    match serde_json::to_value(output) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(value) => Ok(Object::from_iter([("value".to_owned(), value)])),
        Err(_) => Err(Fault::new(Code::ToolInternal, "The tool's output is not JSON.")),
    }
}

/// The JSON Schema of a type, as tools show it.
pub fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema: Schema = generator.into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    schema.to_value()
}
