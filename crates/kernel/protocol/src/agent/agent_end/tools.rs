//! The tools the agent offers, as far as the core has taken them.

use std::collections::{BTreeMap, BTreeSet};

use wharf_wire::agent_v1::{
    MessageId, ToolDefinition, ToolsRegister, ToolsRegistered, ToolsUnregister, ToolsUnregistered,
};

use super::{AgentEvent, AgentSession};
use crate::Moment;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::fault_of;

#[derive(Default)]
pub(super) struct OfferedTools {
    taken: BTreeSet<String>,
    /// Registrations that were not answered yet, and whether each replaces all before it.
    asked: BTreeMap<MessageId, bool>,
}

impl OfferedTools {
    pub(super) fn has(&self, tool_id: &str) -> bool {
        self.taken.contains(tool_id)
    }

    /// A registration was refused as a whole.
    pub(super) fn refused(&mut self, id: &MessageId) {
        self.asked.remove(id);
    }
}

impl AgentSession {
    /// Offers tools; with `replace` in the place of all that were offered before. The event
    /// `Registered` says which were taken.
    pub fn register(
        &mut self,
        now: Moment,
        tools: Vec<ToolDefinition>,
        replace: bool,
    ) -> Result<MessageId, SendError> {
        let tools = tools.into_iter().map(Into::into).collect();
        let id = self.send(now, Draft::new(ToolsRegister { tools, replace }))?;
        self.tools.asked.insert(id.clone(), replace);
        Ok(id)
    }

    /// Takes tools back. Calls that are under way go on.
    pub fn unregister(&mut self, now: Moment, tool_ids: &[String]) -> Result<MessageId, SendError> {
        let unregister = ToolsUnregister { tool_ids: tool_ids.to_vec() };
        let id = self.send(now, Draft::new(unregister))?;
        for tool_id in tool_ids {
            self.tools.taken.remove(tool_id);
        }
        Ok(id)
    }

    pub(super) fn on_registered(
        &mut self,
        in_reply_to: Option<MessageId>,
        answer: ToolsRegistered,
    ) {
        let replace = in_reply_to.as_ref().and_then(|id| self.tools.asked.remove(id));
        if replace == Some(true) {
            self.tools.taken.clear();
        }
        self.tools.taken.extend(answer.registered.iter().cloned());
        let rejected =
            answer.rejected.into_iter().map(|tool| (tool.tool_id, fault_of(&tool.error))).collect();
        let registered = answer.registered;
        self.tell(AgentEvent::Registered { in_reply_to, registered, rejected });
    }

    pub(super) fn on_unregistered(&mut self, answer: ToolsUnregistered) {
        self.tell(AgentEvent::Unregistered { removed: answer.unregistered });
    }
}
