//! Values that durable code keeps.

use serde_json::Value;
use wharf_vocab::{Fault, StepName};
use wharf_wire::agent_v1::{CallId, ErrorObject, MessageId, StepKept, StepLocal};

use super::additions::Abandoned;
use super::{AgentEvent, AgentSession, KeptValue};
use crate::Moment;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::fault_of;

impl AgentSession {
    /// Asks for the value that is kept under a name of a call's code, and keeps this one if there
    /// is none.
    pub fn keep(
        &mut self,
        now: Moment,
        call_id: &CallId,
        step: &StepName,
        value: Option<Value>,
    ) -> Result<(), SendError> {
        self.check_granted(|granted| granted.steps)?;
        let echo = self.calls.echo(call_id).ok_or(SendError::NotOpen)?.clone();
        let key = (call_id.clone(), step.clone());
        if self.waiting.locals.contains_key(&key) {
            return Err(SendError::InUse);
        }
        let local = StepLocal { call_id: call_id.clone(), step: step.clone(), value };
        let message_id = self.send(now, Draft::new(local).echo(&echo))?;
        self.waiting.locals.insert(key, message_id);
        Ok(())
    }

    pub(super) fn on_kept(&mut self, now: Moment, top_level: Option<ErrorObject>, kept: StepKept) {
        let StepKept { call_id, step, value, error } = kept;
        if self.waiting.locals.remove(&(call_id.clone(), step.clone())).is_none() {
            return self.nobody_waits(now, &Abandoned::Local(call_id, step));
        }
        let value = match error.or(top_level) {
            Some(error) => Err(fault_of(&error)),
            None => Ok(value),
        };
        self.tell(AgentEvent::StepKept(Box::new(KeptValue { call_id, step, value })));
    }

    /// The core could not take the message: whoever waits for its answer waits in vain.
    pub(super) fn keep_in_vain(&mut self, message_id: &MessageId, fault: &Fault) {
        let found = self.waiting.locals.iter().find(|(_, sent)| *sent == message_id);
        if let Some(key) = found.map(|(key, _)| key.clone()) {
            self.waiting.locals.remove(&key);
            let ((call_id, step), value) = (key, Err(fault.clone()));
            self.tell(AgentEvent::StepKept(Box::new(KeptValue { call_id, step, value })));
        }
    }
}
