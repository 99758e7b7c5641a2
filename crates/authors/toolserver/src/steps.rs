//! The steps of a run's durable code: what it asks for goes to whoever watches the run, and waits
//! there until somebody has answered.
//!
//! A step has no number among the run's messages: it is said to each connection for as long as it
//! has no answer, so that one that is lost with its connection is asked for again.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use wharf_vocab::{Object, StepName};
use wharf_wire::run_v1::limits::STEPS_OPEN_MAX;
use wharf_wire::run_v1::{Control, Frame, StepMessage, SteppedMessage, encode};

use crate::Failure;

/// The steps of one run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunSteps {
    run: Arc<str>,
    open: Arc<Mutex<OpenSteps>>,
    /// Told when there is something to ask.
    said: Arc<Notify>,
}

#[derive(Debug, Default)]
struct OpenSteps {
    last: u64,
    steps: BTreeMap<u64, OpenStep>,
}

/// A step that has no answer.
#[derive(Debug)]
struct OpenStep {
    message: StepMessage,
    answer: oneshot::Sender<SteppedMessage>,
}

/// Takes a step back that nobody waits for any more.
struct StepGuard<'a> {
    steps: &'a RunSteps,
    number: u64,
}

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.steps.open.lock().steps.remove(&self.number);
    }
}

impl RunSteps {
    /// The steps of a run; `said` is told when there is something to ask.
    pub(crate) fn new(run: &str, said: Arc<Notify>) -> Self {
        Self { run: run.into(), open: Arc::default(), said }
    }

    /// Has a tool called as a step, or finds the call, and gives its outputs.
    pub async fn call(
        &self,
        step: StepName,
        tool: String,
        inputs: Object,
    ) -> Result<Object, Failure> {
        let control = Control::of(&*self.run);
        let message = StepMessage { control, step, tool: Some(tool), inputs, value: None };
        let answer = self.ask(message).await?;
        Ok(answer.outputs.unwrap_or_default())
    }

    /// The value that is kept under the name of a step; if none is, this one is kept.
    pub async fn keep(
        &self,
        step: StepName,
        value: Option<Value>,
    ) -> Result<Option<Value>, Failure> {
        let (control, inputs) = (Control::of(&*self.run), Object::new());
        let answer = self.ask(StepMessage { control, step, tool: None, inputs, value }).await?;
        Ok(answer.value)
    }

    async fn ask(&self, message: StepMessage) -> Result<SteppedMessage, Failure> {
        let (answer, answered) = oneshot::channel();
        let guard = {
            let mut open = self.open.lock();
            if open.steps.values().any(|other| other.message.step == message.step) {
                let text = format!("The step `{}` is under way.", message.step);
                return Err(Failure::new("step.in_use", text));
            }
            if open.steps.len() >= STEPS_OPEN_MAX {
                let text = format!("A run has at most {STEPS_OPEN_MAX} steps under way at once.");
                return Err(Failure::new("tool.busy", text));
            }
            open.last += 1;
            let number = open.last;
            open.steps.insert(number, OpenStep { message, answer });
            StepGuard { steps: self, number }
        };
        self.said.notify_waiters();
        let answered = answered.await;
        drop(guard);
        let answered = answered
            .map_err(|_| Failure::new("tool.canceled", "The run that asks for a step is over."))?;
        match answered.error {
            Some(error) => Err(Failure::new(error.code, error.message)),
            None => Ok(answered),
        }
    }

    /// The messages of all open steps behind this one, and the number of the last there was.
    pub(crate) fn behind(&self, number: u64) -> (Vec<String>, u64) {
        let open = self.open.lock();
        let text = |step: &OpenStep| encode(&Frame::Step(step.message.clone()));
        (open.steps.range(number + 1..).map(|(_, step)| text(step)).collect(), open.last)
    }

    /// Gives an answer to whoever waits for it. One that fits no open step changes nothing: the
    /// step may have been asked for on another connection, too.
    pub(crate) fn answer(&self, stepped: SteppedMessage) {
        let mut open = self.open.lock();
        let fits = |step: &OpenStep| {
            let (asked, is_error) = (&step.message, stepped.error.is_some());
            let says_enough = match (&asked.tool, &asked.value) {
                (Some(_), _) => stepped.outputs.is_some(),
                // What was to be kept is kept then, or another value is.
                (None, Some(_)) => stepped.value.is_some(),
                (None, None) => true,
            };
            asked.step == stepped.step && (is_error || says_enough)
        };
        let Some(number) = open.steps.iter().find(|(_, step)| fits(step)).map(|(at, _)| *at) else {
            return;
        };
        if let Some(step) = open.steps.remove(&number) {
            let _ = step.answer.send(stepped);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(n: u32) -> StepName {
        StepName::new("a", n).expect("a name")
    }

    fn answer(n: u32) -> SteppedMessage {
        let (control, step) = (Control::default(), name(n));
        SteppedMessage { control, step, outputs: None, value: None, error: None }
    }

    fn steps() -> RunSteps {
        RunSteps::new("r1", Arc::default())
    }

    #[tokio::test]
    async fn t048_a_step_is_said_until_it_has_the_answer_that_fits() {
        let steps = steps();
        let keep = steps.keep(name(1), Some(json!(4)));
        tokio::pin!(keep);
        assert!(futures::poll!(&mut keep).is_pending());
        let (texts, last) = steps.behind(0);
        let said =
            r#"{"kind":"Step","control":{"run_id":"r1"},"step":{"name":"a","n":1},"value":4}"#;
        assert_eq!((texts[0].as_str(), texts.len(), last), (said, 1, 1));
        assert_eq!(steps.behind(1).0.len(), 0, "it was said here");
        assert_eq!(steps.behind(0).0, texts, "and is said to others, too");
        // An answer to what was asked before, and one to another step.
        steps.answer(answer(1));
        steps.answer(SteppedMessage { value: Some(json!(1)), ..answer(2) });
        assert!(futures::poll!(&mut keep).is_pending());
        steps.answer(SteppedMessage { value: Some(json!(null)), ..answer(1) });
        assert_eq!(keep.await, Ok(Some(json!(null))));
        assert_eq!(steps.behind(0), (vec![], 1));
    }

    #[tokio::test]
    async fn t049_steps_of_one_name_and_too_many_are_refused_and_those_dropped_are_gone() {
        let steps = steps();
        let mut open = Vec::new();
        for n in 1..=64 {
            let mut step = Box::pin(steps.call(name(n), "web/fetch".to_owned(), Object::new()));
            assert!(futures::poll!(&mut step).is_pending());
            open.push(step);
        }
        let twice = steps.call(name(1), "web/fetch".to_owned(), Object::new()).await;
        assert_eq!(twice.expect_err("twice").code, "step.in_use");
        assert_eq!(steps.keep(name(65), None).await.expect_err("too many").code, "tool.busy");
        open.clear();
        assert_eq!(steps.behind(0), (vec![], 64));
    }
}
