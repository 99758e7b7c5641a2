//! What the session says, and what is done about it.

use std::io::Write as _;
use std::sync::Arc;

use wharf_protocol::Session as _;
use wharf_protocol::agent::{AgentEvent, CallOutcome, CallReceived};
use wharf_vocab::{Code, Fault};

use super::{HandlerCommand, LAST_MS, ProcessConnection};
use crate::process::host::CoreCall;

impl ProcessConnection {
    /// Handles everything the session has to say.
    pub(super) fn handle_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            self.event(event);
        }
    }

    fn event(&mut self, event: AgentEvent) {
        let now = self.clock.now();
        match event {
            AgentEvent::Welcomed { .. } => {
                let definitions = self.agent.definitions.clone();
                if self.session.register(now, definitions, false).is_err() {
                    tell("the descriptions of the tools are larger than a message may be");
                    self.stop();
                }
            }
            AgentEvent::Registered { rejected, .. } => {
                for (tool_id, fault) in rejected {
                    // The core may echo anything as a tool's id, so only own ones are shown.
                    if self.agent.tools.contains_key(&tool_id) {
                        tell(&format!("the core did not take {tool_id} ({})", fault.code));
                    }
                }
            }
            AgentEvent::Call(call) => self.call(*call),
            AgentEvent::Cancel { call_id, deadline_ms, .. } => {
                self.calls.cancel(now, &mut self.session, &call_id, deadline_ms);
            }
            AgentEvent::TimedOut { call_id } => {
                self.calls.cancel(now, &mut self.session, &call_id, Some(0));
            }
            AgentEvent::Answered(answered) => self.calls.answered(*answered),
            AgentEvent::StepKept(kept) => self.calls.step_kept(*kept),
            AgentEvent::Goodbye(goodbye) => self.wind_down(goodbye.drain_ms.unwrap_or(0)),
            AgentEvent::Closed(why) => {
                self.closed = Some(why);
                self.stop_at = None;
                self.calls.forget_waiters();
                self.calls.cancel_all(LAST_MS);
            }
            AgentEvent::InvokeChunk { invoke_id, chunk, .. } => {
                self.calls.invoke_chunk(&invoke_id, chunk);
            }
            AgentEvent::InvokeEnded(ended) => self.calls.invoke_ended(*ended),
            AgentEvent::Unregistered { .. }
            | AgentEvent::PeerError { .. }
            | AgentEvent::Violation(_) => {}
        }
    }

    /// Starts working on a call, unless an earlier one with the same key answers it.
    fn call(&mut self, mut call: CallReceived) {
        let now = self.clock.now();
        let Some(tool) = self.agent.tools.get(&call.tool_id).cloned() else {
            // The core took a tool that this agent does not have.
            let fault = Fault::new(Code::ToolNotFound, "The agent does not offer this tool.");
            let outcome = CallOutcome::Failed(fault);
            self.calls.finish(now, &mut self.session, &call.call_id, outcome.into());
            return;
        };
        let Some(cancel) = self.calls.take(now, &mut self.session, &call) else {
            return;
        };
        let input = std::mem::take(&mut call.input);
        // What refers to files is needed beside the typed input.
        let refs = call.context.iter().flat_map(|context| context.refs.iter().flatten());
        let refs = refs.filter_map(|name| input.get_key_value(name));
        call.input = refs.map(|(name, value)| (name.clone(), value.clone())).collect();
        let call_id = call.call_id.clone();
        let commands = self.commands.clone();
        let core = Arc::new(CoreCall::new(commands.clone(), call, cancel));
        let work = async move {
            let report = Box::new(core.execute(tool, input).await);
            // When the connection is gone there is nobody left to tell.
            let _ = commands.send(HandlerCommand::Finish { call_id, report }).await;
        };
        self.running.spawn_on(work, &self.workers);
    }
}

/// Says something to whoever reads the agent's log.
fn tell(text: &str) {
    // When standard error is gone there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}
