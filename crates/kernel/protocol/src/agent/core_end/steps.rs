//! Values that durable code keeps: asked for and answered one by one, each once.

use serde_json::Value;
use wharf_vocab::{Code, Fault, StepName};
use wharf_wire::agent_v1::{CallId, StepKept, StepLocal};

use super::{CoreEvent, CoreSession};
use crate::Moment;
use crate::agent::outbox::{Draft, Origin, SendError};
use crate::agent::outcome::error_of;
use crate::agent::violation::Breach;

impl CoreSession {
    /// Answers what an agent asked about a value: the one that counts, that there is none yet, or
    /// why there can be none. One that fits no frame becomes a failure.
    pub fn step_kept(
        &mut self,
        now: Moment,
        call_id: &CallId,
        step: &StepName,
        kept: Result<Option<Value>, Fault>,
    ) -> Result<(), SendError> {
        let key = (call_id.clone(), step.clone());
        let origin = self.open.locals.remove(&key).ok_or(SendError::NotOpen)?;
        self.send_kept(now, key, &origin, kept);
        Ok(())
    }

    pub(super) fn on_step_local(&mut self, now: Moment, origin: Origin, local: StepLocal) {
        if !self.granted(|granted| granted.steps) {
            return self.refuse_addition(now, origin.id, Breach::Unexpected);
        }
        let key = (local.call_id.clone(), local.step.clone());
        if self.open.locals.contains_key(&key) {
            return self.refuse_addition(now, origin.id, Breach::Duplicate);
        }
        let refused = if !self.calls.is_open(&local.call_id) {
            Some(Fault::new(Code::PermissionDenied, "The call that asks for a value is over."))
        } else if self.open.locals.len() >= self.limits().invokes_open_max {
            let message = "The agent asks for too many values at once.";
            Some(Fault::new(Code::ToolBusy, message))
        } else {
            None
        };
        if let Some(fault) = refused {
            return self.send_kept(now, key, &origin, Err(fault));
        }
        self.open.locals.insert(key, origin);
        self.tell(CoreEvent::StepLocal(Box::new(local)));
    }

    fn send_kept(
        &mut self,
        now: Moment,
        (call_id, step): (CallId, StepName),
        origin: &Origin,
        kept: Result<Option<Value>, Fault>,
    ) {
        let failed = |fault: &Fault| {
            let (call_id, step) = (call_id.clone(), step.clone());
            StepKept { call_id, step, value: None, error: Some(error_of(fault)) }
        };
        let answer = match kept {
            Ok(value) => {
                StepKept { call_id: call_id.clone(), step: step.clone(), value, error: None }
            }
            Err(fault) => failed(&fault),
        };
        if !self.reply(now, Draft::new(answer).answers(origin)) {
            let message = "The value is larger than a frame may be.";
            let fault = Fault::new(Code::ToolOutputTooLarge, message);
            self.reply(now, Draft::new(failed(&fault)).answers(origin));
        }
    }
}
