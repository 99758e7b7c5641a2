//! Tries a durable tool without a core: killed and repeated at every step, in memory.
//!
//! ```
//! use wharf_sdk::trial::{TrialCore, try_durable};
//! use wharf_sdk::{Cx, Fault, Tool, tool};
//!
//! const PAY: Tool<String, u32> = Tool::new("pay", "Pays something.").at("bank/pay");
//!
//! /// Orders something.
//! #[tool(durable = true)]
//! async fn order(item: String, cx: Cx) -> Result<u32, Fault> {
//!     let number: u32 = cx.local("number", async || Ok(7)).await?;
//!     cx.step("pay", &PAY, format!("{item} {number}")).await
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Fault> {
//! let core = TrialCore::new().tool(&PAY, |what| Ok(u32::try_from(what.len()).unwrap_or(0)));
//! let tried = try_durable(&ORDER, "tea".to_owned(), &core).await?;
//! assert_eq!((tried.output, tried.kills), (5, 5));
//! assert_eq!(tried.steps, ["number#1", "pay#1"]);
//! # Ok(()) }
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wharf_vocab::{Code, Fault, Object, StepName};

use crate::calls::exposed::ErasedTool;
use crate::host::{Bridge, CallRequest, CoreTool, Host, HostHandle, StepNames};
use crate::{Data, Scope, Tool, Within as _};

/// The 1st of January 2026, at which the clock of a trial stands.
const BEGINNING: Duration = Duration::from_secs(1_767_225_600);

type Answer = dyn Fn(Object) -> Result<Object, Fault> + Send + Sync;

/// What a tool that is tried has instead of a core: answers for the tools that it calls, and a
/// clock that stands still until it is moved by hand.
#[derive(Clone)]
pub struct TrialCore {
    tools: HashMap<String, Arc<Answer>>,
    clock: Arc<Mutex<SystemTime>>,
    scope: Scope,
}

impl TrialCore {
    /// One that knows no tool.
    #[must_use]
    pub fn new() -> Self {
        let clock = Arc::new(Mutex::new(UNIX_EPOCH + BEGINNING));
        Self { tools: HashMap::new(), clock, scope: Scope::root() }
    }

    /// Answers for a tool of the core, known by what its definition says with [`Tool::at`].
    #[must_use]
    pub fn tool<I: Data, O: Data, Q: Data, S>(
        mut self,
        tool: &Tool<I, O, Q, S>,
        answer: impl Fn(I) -> Result<O, Fault> + Send + Sync + 'static,
    ) -> Self {
        let id = tool.terms().at.unwrap_or(tool.name());
        let core_tool = CoreTool::of(tool, id);
        let answer = move |given: Object| {
            let given = serde_json::from_value(core_tool.given(given));
            let given = given.map_err(|_| unfit("The input of a step does not fit its tool."))?;
            let output = serde_json::to_value(answer(given)?);
            let output = output.map_err(|_| unfit("What a step gave is no JSON."))?;
            Ok(core_tool.gives(output))
        };
        self.tools.insert(id.to_owned(), Arc::new(answer));
        self
    }

    /// Where the tool that is tried has its implementation, if its definition has none.
    #[must_use]
    pub fn within(self, agent: impl Into<Scope>) -> Self {
        Self { scope: agent.into(), ..self }
    }

    /// What `cx.now()` tells.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        *self.clock.lock()
    }

    /// Lets so much time pass.
    pub fn move_clock(&self, by: Duration) {
        *self.clock.lock() += by;
    }
}

impl Default for TrialCore {
    fn default() -> Self {
        Self::new()
    }
}

debug_only!(TrialCore: clock);

/// What became of a durable tool that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableTrial<O> {
    /// What it gave.
    pub output: O,
    /// The names of its steps with their numbers, such as `fetch#1`.
    pub steps: Vec<String>,
    /// How often it was killed and repeated.
    pub kills: usize,
}

/// Runs a durable tool; then again and again, killed before and after every step and repeated. A
/// tool that asks for other steps when it is repeated, or gives something else although its steps
/// gave the same, fails with `step.diverged`.
pub async fn try_durable<I: Data, O: Data, P: Data, S>(
    tool: &Tool<I, O, P, S>,
    input: I,
    core: &TrialCore,
) -> Result<DurableTrial<O>, Fault> {
    let erased = ErasedTool::of(tool)
        .map_err(|error| Fault::new(Code::ToolInternal, format!("Not a tool: {error}.")))?;
    let input = serde_json::to_value(input).map_err(|_| unfit("The input is no JSON."))?;
    let trial = Trial { tool: erased, input, core };
    let journal = Arc::new(Journal::default());
    let first = trial.to_the_end(&journal).await?;
    let mut kills = 0;
    loop {
        let killed = Arc::new(Journal::default());
        killed.0.lock().kill_at = Some(kills);
        if trial.attempt(&killed).await?.is_some() {
            break;
        }
        killed.0.lock().kill_at = None;
        // What it gives may be another each time, where local code does.
        let _ = trial.to_the_end(&killed).await?;
        kills += 1;
    }
    let output = serde_json::from_value(first?)
        .map_err(|_| unfit("What the tool gives cannot be read again."))?;
    let steps = journal.0.lock().marks.iter().map(|mark| mark.step.to_string()).collect();
    Ok(DurableTrial { output, steps, kills })
}

/// A tool that is tried.
struct Trial<'a> {
    tool: ErasedTool,
    input: Value,
    core: &'a TrialCore,
}

impl Trial<'_> {
    /// One attempt, with what it came to; nothing if it was killed.
    async fn attempt(&self, journal: &Arc<Journal>) -> Result<Option<Result<Value, Fault>>, Fault> {
        let killed = CancellationToken::new();
        journal.begin();
        let host: Arc<dyn Host> = Arc::new(TrialHost {
            journal: Arc::clone(journal),
            tools: self.core.tools.clone(),
            clock: Arc::clone(&self.core.clock),
            names: StepNames::default(),
            killed: killed.clone(),
        });
        let bridge = Arc::new(Bridge::new(Arc::clone(&host)));
        let scope = Scope::serving(&self.core.scope.place().0, Arc::new(HostHandle(host)), bridge);
        let ended = tokio::select! {
            biased;
            () = killed.cancelled() => None,
            ended = self.tool.call(scope.place(), self.input.clone(), None) => Some(ended),
        };
        scope.close().await;
        let kept = journal.0.lock();
        match kept.diverged.clone() {
            Some(fault) => Err(fault),
            None => Ok(ended.filter(|_| !kept.is_dead)),
        }
    }

    /// An attempt that is not killed, and another that finds all its steps.
    async fn to_the_end(&self, journal: &Arc<Journal>) -> Result<Result<Value, Fault>, Fault> {
        let first = self.attempt(journal).await?;
        journal.0.lock().is_closed = true;
        let again = self.attempt(journal).await?;
        match (first, again) {
            (Some(first), Some(again)) if first == again => Ok(first),
            (first, again) => Err(diverged(&format!(
                "Repeated with all its steps done, the tool gives {} instead of {}.",
                told(again.as_ref()),
                told(first.as_ref())
            ))),
        }
    }
}

/// What is kept of the steps of one run in memory, across its attempts.
#[derive(Default)]
struct Journal(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    marks: Vec<Mark>,
    /// The tool is cut off at this point of its steps; each has one before and one after it.
    kill_at: Option<usize>,
    points: usize,
    is_dead: bool,
    /// Set once the code has been to its end: then it asks for nothing new.
    is_closed: bool,
    diverged: Option<Fault>,
}

/// A step: a call with what it gave, or a value.
struct Mark {
    step: StepName,
    what: String,
    ended: Option<Result<Value, Fault>>,
}

impl Journal {
    fn begin(&self) {
        let mut kept = self.0.lock();
        (kept.points, kept.is_dead) = (0, false);
    }

    fn knows(&self, step: &StepName) -> bool {
        self.0.lock().marks.iter().any(|mark| mark.step == *step)
    }

    /// The end of a step, which must be the same one as before. If it has none yet, `end` says it
    /// or the step only begins.
    fn mark(
        &self,
        step: &StepName,
        what: &str,
        end: Option<Result<Value, Fault>>,
    ) -> Result<Option<Result<Value, Fault>>, Fault> {
        let mut kept = self.0.lock();
        let known = kept.marks.iter().position(|mark| mark.step == *step);
        let fault = match known {
            None if kept.is_closed => {
                format!("The code asks for the step {step} only when it is repeated.")
            }
            Some(at) if kept.marks[at].what != what => {
                format!("The step {step} was {} before and is {what} now.", kept.marks[at].what)
            }
            known => {
                let at = known.unwrap_or_else(|| {
                    let mark = Mark { step: step.clone(), what: what.to_owned(), ended: None };
                    kept.marks.push(mark);
                    kept.marks.len() - 1
                });
                let ended = &mut kept.marks[at].ended;
                *ended = ended.take().or(end);
                return Ok(ended.clone());
            }
        };
        let fault = diverged(&fault);
        kept.diverged = Some(fault.clone());
        Err(fault)
    }
}

/// Whoever serves the call of a tool that is tried.
struct TrialHost {
    journal: Arc<Journal>,
    tools: HashMap<String, Arc<Answer>>,
    clock: Arc<Mutex<SystemTime>>,
    names: StepNames,
    killed: CancellationToken,
}

impl TrialHost {
    /// A moment at which the tool may be cut off; then nothing of it goes on any more.
    async fn point(&self) {
        let is_dead = {
            let mut kept = self.journal.0.lock();
            kept.is_dead |= kept.kill_at == Some(kept.points);
            kept.points += 1;
            kept.is_dead
        };
        if is_dead {
            self.killed.cancel();
            std::future::pending::<()>().await;
        }
    }

    fn answer(&self, tool: &str, input: Object) -> Result<Object, Fault> {
        let answer = self.tools.get(tool).ok_or_else(|| {
            let message = format!("There is no tool {tool} in this trial.");
            Fault::new(Code::ToolNotFound, message)
        })?;
        answer(input)
    }

    async fn step(&self, step: StepName, request: CallRequest) -> Result<Object, Fault> {
        let what = format!("{} with {}", request.tool, Value::Object(request.input.clone()));
        let known = self.journal.mark(&step, &what, None)?;
        self.point().await;
        let ended = match known {
            Some(ended) => ended,
            None => {
                let given = self.answer(&request.tool, request.input).map(Value::Object);
                self.journal.mark(&step, &what, Some(given.clone()))?;
                given
            }
        };
        self.point().await;
        match ended? {
            Value::Object(output) => Ok(output),
            _ => Err(unfit("What a step gave is no object.")),
        }
    }

    async fn local(&self, step: StepName, value: Option<Value>) -> Result<Option<Value>, Fault> {
        if !self.journal.knows(&step) {
            self.point().await;
            if value.is_none() {
                return Ok(None);
            }
        }
        let kept = self.journal.mark(&step, "local code", value.map(Ok))?;
        self.point().await;
        kept.transpose()
    }
}

impl Host for TrialHost {
    fn call(&self, mut request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        match request.step.take() {
            Some(step) => Box::pin(self.step(step, request)),
            None => Box::pin(std::future::ready(self.answer(&request.tool, request.input))),
        }
    }

    fn steps(&self) -> Option<&StepNames> {
        Some(&self.names)
    }

    fn keep(
        &self,
        step: StepName,
        value: Option<Value>,
    ) -> BoxFuture<'_, Result<Option<Value>, Fault>> {
        Box::pin(self.local(step, value))
    }

    fn now(&self) -> SystemTime {
        *self.clock.lock()
    }
}

fn told(ended: Option<&Result<Value, Fault>>) -> String {
    match ended {
        None => "nothing".to_owned(),
        Some(Ok(output)) => output.to_string(),
        Some(Err(fault)) => fault.to_string(),
    }
}

fn diverged(message: &str) -> Fault {
    Fault::new(Code::StepDiverged, message)
}

fn unfit(message: &str) -> Fault {
    Fault::new(Code::ToolInternal, message)
}
