//! An attempt that a seat executes: from the offer to its single end.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::{AttemptError, NewAsk, TaskRef};
use wharf_domain::{Audience, Resolution, WorkerKind};
use wharf_engine::{Attempt, AttemptEnd, Dispatch, Handle};
use wharf_vocab::limits::SEAT_DEADLINE_MS;
use wharf_vocab::{AskKind, Code, Digest, Executed, Fault, Object, RunKey, SeatId, shown};

use crate::request::RequestId;

/// The key of the question that a senior is asked when a worker failed.
pub(crate) const SENIOR: &str = "operator.senior";
/// Most patterns of tools that a worker may call.
const TOOLS_MAX: usize = 32;
/// Longest text of an error that is kept.
const ERROR_CHARS_MAX: usize = 2_000;

/// An attempt that a seat executes.
pub(crate) struct Task {
    /// Its name on the wire.
    pub(crate) id: String,
    /// The seat that executes it.
    pub(crate) seat: SeatId,
    /// The attempt.
    pub(crate) attempt: Attempt,
    handle: Handle,
    state: Mutex<TaskState>,
    /// Whether no final is being written down at this moment.
    settled: watch::Sender<bool>,
}

#[derive(Default)]
struct TaskState {
    stand: TaskPhase,
    answers: HashMap<String, oneshot::Sender<Resolution>>,
    /// Whether the senior has been asked and the attempt waits for the answer.
    asked_senior: bool,
}

/// How a task stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum TaskPhase {
    /// Somebody works on it.
    #[default]
    Open,
    /// A final was given and is being kept; others must be equal to it.
    Final(Digest),
    /// It ended without a final.
    Over,
}

/// What came of the work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Final {
    /// The result.
    pub(crate) value: Value,
    /// Whether it went well.
    pub(crate) ok: bool,
    /// What it cost.
    pub(crate) cost_micro: u64,
}

impl Final {
    /// What tells an equal repeat from another final.
    pub(crate) fn digest(&self) -> Digest {
        let text = serde_json::to_vec(&(&self.value, self.ok)).unwrap_or_default();
        Digest::of(&[&text])
    }

    /// The value as outputs: objects as they are, others under the name `value`.
    pub(crate) fn outputs(&self) -> Object {
        match &self.value {
            Value::Object(outputs) => outputs.clone(),
            other => Object::from_iter([("value".to_owned(), other.clone())]),
        }
    }
}

/// What became of a final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalAcceptance {
    /// It is the final.
    First,
    /// It is equal to the final.
    Repeat,
}

impl Task {
    pub(crate) fn new(seat: SeatId, handle: Handle, dispatch: Dispatch) -> Self {
        let TaskRef { task_id: id, .. } =
            TaskRef::of(&dispatch.run, dispatch.accepted, dispatch.attempt);
        let attempt = Attempt::new(handle.clone(), dispatch);
        // Whoever sits there may begin as soon as it is offered.
        attempt.handed_over();
        let settled = watch::Sender::new(true);
        Self { id, seat, attempt, handle, state: Mutex::default(), settled }
    }

    /// What names the offer on the wire.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId::of_task(&self.id)
    }

    pub(crate) fn run(&self) -> &RunKey {
        &self.attempt.dispatch().run
    }

    pub(crate) fn number(&self) -> u32 {
        self.attempt.dispatch().attempt
    }

    /// The tool of its run.
    pub(crate) fn tool(&self) -> &wharf_vocab::ToolId {
        &self.attempt.dispatch().spec.tool
    }

    /// What is executed: the tool's own name.
    pub(crate) fn agent(&self) -> &str {
        self.attempt.dispatch().spec.tool.name()
    }

    /// Tools that its worker may call: none unless the inputs name some and whoever started the
    /// run may call them.
    pub(crate) fn tools(&self) -> Vec<ToolPattern> {
        let inputs = &self.attempt.dispatch().spec.inputs;
        let named = inputs.get("tools").and_then(Value::as_array);
        let texts = named.into_iter().flatten().filter_map(Value::as_str).take(TOOLS_MAX);
        texts.filter_map(|text| ToolPattern::parse(text).ok()).collect()
    }

    /// What kind of worker the tool asks for, if it does.
    pub(crate) fn worker(&self) -> Option<WorkerKind> {
        let seat = self.handle.seats().get(&self.seat).ok()?;
        let tool = &self.attempt.dispatch().spec.tool;
        seat.tools.into_iter().find(|def| def.tool == *tool)?.worker
    }

    /// Whether the tool says what its outputs look like.
    pub(crate) fn has_output_schema(&self) -> bool {
        self.attempt.has_output_schema()
    }

    pub(crate) fn stand(&self) -> TaskPhase {
        self.state.lock().stand.clone()
    }

    /// Whether its worker failed and a senior is asked what to make of it.
    pub(crate) fn waits_for_senior(&self) -> bool {
        self.state.lock().asked_senior
    }

    /// Gives the final. The first stands; one that does not fit the tool's schema is told and
    /// leaves the task open. When this answers, the final is kept for good.
    pub(crate) async fn conclude(&self, given: Final) -> Result<FinalAcceptance, Fault> {
        let digest = given.digest();
        loop {
            if given.ok && self.stand() == TaskPhase::Open {
                self.attempt.check_outputs(&given.outputs()).await?;
            }
            if self.claim(&digest)? {
                break;
            }
            // The same was given before; it counts once it is kept.
            let mut settled = self.settled.subscribe();
            let _ = settled.wait_for(|settled| *settled).await;
            if self.stand() != TaskPhase::Open {
                return Ok(FinalAcceptance::Repeat);
            }
        }
        let kept = match self.attempt.dispatch().spec.senior.clone() {
            Some(senior) if !given.ok => {
                let asked = self.ask_senior(senior, &given).await;
                self.state.lock().asked_senior = asked.is_ok();
                asked
            }
            _ => self.end(report(&given)).await,
        };
        if kept.is_err() {
            // Nothing was kept, so whoever gave it may give it again.
            self.state.lock().stand = TaskPhase::Open;
        }
        self.settled.send_replace(true);
        kept.map(|()| FinalAcceptance::First)
    }

    /// Makes this the final, if there is none; `false` if it is the final already.
    fn claim(&self, digest: &Digest) -> Result<bool, Fault> {
        let mut state = self.state.lock();
        match &state.stand {
            TaskPhase::Open => {
                state.stand = TaskPhase::Final(digest.clone());
                self.settled.send_replace(false);
                Ok(true)
            }
            TaskPhase::Final(first) if first == digest => Ok(false),
            TaskPhase::Final(_) => Err(already_final()),
            TaskPhase::Over => Err(over()),
        }
    }

    /// The worker failed before the core was started, and its senior has been asked since.
    pub(crate) fn failed_before(&self, value: Value) {
        let digest = Final { value, ok: false, cost_micro: 0 }.digest();
        let mut state = self.state.lock();
        state.stand = TaskPhase::Final(digest);
        state.asked_senior = true;
    }

    /// Ends the task without a final.
    pub(crate) async fn fail(&self, error: AttemptError) -> Result<(), Fault> {
        if !self.close() {
            return Ok(());
        }
        self.end(AttemptEnd::new(Err(error), 0)).await
    }

    /// Takes no final any more; `false` if there was one or it was over.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.state.lock();
        if state.stand != TaskPhase::Open {
            return false;
        }
        state.stand = TaskPhase::Over;
        true
    }

    async fn end(&self, end: AttemptEnd) -> Result<(), Fault> {
        let given = match self.stand() {
            TaskPhase::Final(given) => Some(given),
            _ => None,
        };
        self.attempt.conclude(end, given).await.map(drop)
    }

    /// Asks the senior what to make of a worker's failure.
    async fn ask_senior(&self, senior: SeatId, given: &Final) -> Result<(), Fault> {
        let dispatch = self.attempt.dispatch();
        self.attempt
            .raise(NewAsk {
                attempt_id: dispatch.attempt_id.clone(),
                kind: AskKind::Question,
                key: SENIOR.to_owned(),
                title: format!("The worker for {} failed. What is the answer?", self.agent()),
                schema: None,
                audience: Audience::Seat(senior),
                deadline: None,
                escalates: Some(self.handle.now().plus_ms(SEAT_DEADLINE_MS)),
                detail: Some(given.value.clone()),
                by: Vec::new(),
            })
            .await
    }

    /// The senior answered, or nobody did.
    pub(crate) async fn senior_answered(&self, original: Value, resolution: &Resolution) {
        let result = match resolution {
            Resolution::Answered { value } => {
                let answer = [("original", original), ("senior_answer", value.clone())];
                let named = answer.map(|(name, value)| (name.to_owned(), value));
                Ok(Object::from_iter(named).into())
            }
            other => Err(AttemptError::Failed(
                Fault::new(
                    Code::OperatorFailed,
                    format!(
                        "The worker failed, and the senior gave no answer: {}.",
                        other.as_str()
                    ),
                ),
                Executed::Yes,
            )),
        };
        if let Err(fault) = self.end(AttemptEnd::new(result, 0)).await {
            tracing::warn!(task = %self.id, code = %fault.code, "an answer was not kept");
        }
    }

    /// Waits for the answer to a question of the worker under this key.
    pub(crate) fn await_answer(&self, key: &str) -> oneshot::Receiver<Resolution> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().answers.insert(key.to_owned(), sender);
        receiver
    }

    /// Passes an answer on to whoever waits for it.
    pub(crate) fn answered(&self, key: &str, resolution: &Resolution) {
        if let Some(waiting) = self.state.lock().answers.remove(key) {
            // The worker may have given up; it gets the answer when it asks again.
            let _ = waiting.send(resolution.clone());
        }
    }
}

fn report(given: &Final) -> AttemptEnd {
    if given.ok {
        return AttemptEnd::new(Ok(given.outputs().into()), given.cost_micro);
    }
    let fault = failed("The worker says that it failed.").with("value", given.value.clone());
    AttemptEnd::new(Err(AttemptError::Failed(fault, Executed::Yes)), given.cost_micro)
}

/// The operator or its worker says that the work failed.
pub(crate) fn failed(text: &str) -> Fault {
    let shown = shown(text, ERROR_CHARS_MAX);
    let shown = if shown.trim().is_empty() { "The operator gave no reason.".into() } else { shown };
    Fault::new(Code::OperatorFailed, shown)
}

/// Another final stands.
pub(crate) fn already_final() -> Fault {
    Fault::new(Code::WorkerAlreadyFinal, "Another result was given for this task before.")
}

/// The task is over.
pub(crate) fn over() -> Fault {
    Fault::new(Code::WorkerRunOver, "The run is over; nobody waits for this any more.")
}
