//! Steps that the code of an attempt asks for: each is done or found by a task of its own, and its
//! answer goes to the server over whatever connection there is then.

use std::collections::HashSet;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use wharf_domain::{Outcome, Run};
use wharf_engine::{AttemptRef, FollowEvent, Handle, NewRun, StepRun};
use wharf_hosting::Tasks;
use wharf_vocab::{Code, Fault, Object, StepName, ToolId};
use wharf_wire::run_v1::limits::STEPS_OPEN_MAX;
use wharf_wire::run_v1::{Control, Failure, StepMessage, SteppedMessage};

/// The steps of one attempt. When it is dropped nobody waits for them any more; they go on, and
/// the next attempt finds them.
pub(super) struct StepDesk {
    handle: Handle,
    attempt: AttemptRef,
    tasks: Tasks,
    /// Those whose answer is not on its way.
    open: HashSet<StepName>,
    answers: mpsc::Receiver<SteppedMessage>,
    answered: mpsc::Sender<SteppedMessage>,
    leave: CancellationToken,
    _left: DropGuard,
}

impl StepDesk {
    pub(super) fn new(handle: Handle, attempt: AttemptRef, tasks: Tasks) -> Self {
        let (answered, answers) = mpsc::channel(STEPS_OPEN_MAX);
        let leave = CancellationToken::new();
        let _left = leave.clone().drop_guard();
        Self { handle, attempt, tasks, open: HashSet::new(), answers, answered, leave, _left }
    }

    /// Has a step done. One that is under way is not begun twice: the server asks again when it
    /// was attached to again.
    pub(super) fn ask(&mut self, message: StepMessage) {
        if !self.open.insert(message.step.clone()) {
            return;
        }
        let task = StepTask { handle: self.handle.clone(), attempt: self.attempt.clone() };
        let (answered, leave) = (self.answered.clone(), self.leave.clone());
        self.tasks.spawn("doing a step", async move {
            // A core that stops has no answer: its next life is asked again.
            if let Some(Some(answer)) = leave.run_until_cancelled(task.answer(message)).await {
                // When the attempt is over there is nobody left to tell.
                let _ = answered.send(answer).await;
            }
        });
    }

    /// The next answer, which the server is to be told. It may be dropped without loss.
    pub(super) async fn next(&mut self) -> SteppedMessage {
        match self.answers.recv().await {
            Some(answer) => {
                self.open.remove(&answer.step);
                answer
            }
            // This value holds a sender, so it never comes to this.
            None => std::future::pending().await,
        }
    }
}

struct StepTask {
    handle: Handle,
    attempt: AttemptRef,
}

impl StepTask {
    async fn answer(self, message: StepMessage) -> Option<SteppedMessage> {
        let StepMessage { step, tool, inputs, value, .. } = message;
        let answer = SteppedMessage {
            control: Control::default(),
            step: step.clone(),
            outputs: None,
            value: None,
            error: None,
        };
        let done = match tool {
            Some(tool) => {
                let outputs = self.call(step, &tool, inputs).await;
                outputs.map(|outputs| SteppedMessage { outputs: Some(outputs), ..answer.clone() })
            }
            None => {
                let kept = self.attempt.keep(step, value).await;
                kept.map(|value| SteppedMessage { value, ..answer.clone() })
            }
        };
        match done {
            Ok(answer) => Some(answer),
            Err(_) if self.handle.is_stopping() => None,
            Err(fault) => {
                let error = Failure { code: fault.code.to_string(), message: fault.message };
                Some(SteppedMessage { error: Some(error), ..answer })
            }
        }
    }

    async fn call(&self, step: StepName, tool: &str, inputs: Object) -> Result<Object, Fault> {
        let tool = ToolId::new(tool)
            .map_err(|_| Fault::new(Code::ToolNotFound, "There is no tool of that name."))?;
        let dispatch = self.attempt.dispatch();
        let mut new = NewRun::new(tool, inputs, dispatch.run.world.clone());
        new.mode = dispatch.spec.mode;
        new.correlation_id.clone_from(&dispatch.spec.correlation_id);
        new.traceparent.clone_from(&dispatch.trace.traceparent);
        let provider = self.handle.providers().get(&dispatch.spec.tool.provider());
        let tools = provider.map(|provider| provider.callable()).unwrap_or_default();
        let caller = self.attempt.caller(tools);
        let key = match self.attempt.step(&caller, step, new).await? {
            StepRun::Over(run) => return outputs_of(&run),
            StepRun::Open(key) => key,
        };
        // Nobody stops it from here: it goes on for the next attempt.
        let events = self.handle.run_events();
        let mut follow = events.follow(caller, &key, CancellationToken::new()).await?;
        loop {
            if let FollowEvent::Ended(run) = follow.next().await? {
                return outputs_of(&run);
            }
        }
    }
}

fn outputs_of(run: &Run) -> Result<Object, Fault> {
    match run.outcome.clone() {
        Some(Outcome::Succeeded { outputs }) => Ok(outputs),
        Some(
            Outcome::Failed { error } | Outcome::Refused { error } | Outcome::Canceled { error },
        ) => Err(error),
        None => Err(Fault::new(Code::CoreInternal, "The step ended without an outcome.")),
    }
}
