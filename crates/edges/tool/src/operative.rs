//! What an operative is asked: attempts become requests, and its answers their ends.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use wharf_domain::run::AttemptError;
use wharf_domain::{Caller, Progress, ProviderInput, ToolDef};
use wharf_engine::{Attempt, AttemptEnd, AttemptOutputs, AttemptRef, Dispatch};
use wharf_protocol::tool::value::Form;
use wharf_protocol::tool::{CallError, ToolAnswer, ToolRequest, ToolSession};
use wharf_vocab::{AttemptId, Code, Executed, Fault, Micro, Object, RunKey, ToolId};
use wharf_wire::tool_v1::{Kind, Offer, OfferedTool, Request};

use crate::children::Children;
use crate::follow::RunUpdate;
use crate::offer;
use crate::shared::PeerHub;
use crate::stations::{AttemptPermit, ServedName};

/// Attempts that are over and of which the operative may still say what they cost.
const OVER_MAX: usize = 32;

/// One who executes.
pub(crate) struct OperativePeer {
    shared: Arc<PeerHub>,
    station: Arc<ServedName>,
    epoch: u64,
    caller: Caller,
    calls: HashMap<String, OperativeCall>,
    /// Attempts that were answered or taken back with their runs, the oldest first.
    over: VecDeque<(AttemptId, RunKey)>,
    pub(crate) children: Children,
}

/// An attempt that the operative works on.
struct OperativeCall {
    attempt: Attempt,
    output: Form,
    /// What it has cost so far.
    cost_micro: Micro,
    /// Held so that no more calls are open than may be.
    _place: AttemptPermit,
}

impl OperativePeer {
    pub(crate) fn new(
        shared: Arc<PeerHub>,
        station: Arc<ServedName>,
        (epoch, caller): (u64, Caller),
        tidings: mpsc::Sender<RunUpdate>,
    ) -> Self {
        let children = Children::new(&shared, caller.clone(), tidings);
        let (calls, over) = (HashMap::new(), VecDeque::new());
        Self { shared, station, epoch, caller, calls, over, children }
    }

    /// Takes tools of which only the names are known. Whoever is listening is told what became of
    /// it; who does not know of it ignores it.
    pub(crate) async fn declare(&mut self, session: &mut ToolSession, names: &[String]) {
        let offered = self.offer(&offer::untyped(names)).await;
        session.offered(offered);
    }

    /// Takes what the operative offers, and nothing else, from now on.
    pub(crate) async fn offer(&mut self, offered: &[OfferedTool]) -> Offer {
        match self.take(offered).await {
            Ok(tools) => Offer::Tools(tools.iter().map(ToString::to_string).collect()),
            Err(fault) => {
                let (code, message) = (fault.code.to_string(), fault.message);
                Offer::Error { code, message }
            }
        }
    }

    async fn take(&self, offered: &[OfferedTool]) -> Result<Vec<ToolId>, Fault> {
        let (handle, name) = (&self.shared.options.handle, &self.station.name);
        handle.trust().check_current(&self.caller)?;
        let defs = offer::definitions(name, &self.caller, offered)?;
        let tools: Vec<ToolId> = defs.iter().map(|def| def.tool.clone()).collect();
        if !self.station.is_current(self.epoch) {
            let message = format!("Another connection serves {name} now.");
            return Err(Fault::new(Code::ToolConflict, message));
        }
        let before = handle.providers().get(name)?.tools;
        if before != defs {
            handle.providers().may_offer(name.as_str()).map_err(|_| {
                let message =
                    format!("The tools of {name} change too often; try again in a moment.");
                Fault::new(Code::CoreBusy, message)
            })?;
            self.keep(before, defs).await?;
        } else {
            // The catalog may have less than the journal after a change that did not come through.
            handle.providers().set_tools(name, defs)?;
        }
        if self.station.ready(self.epoch) {
            self.shared.tell(&self.station).await;
        }
        Ok(tools)
    }

    /// Writes down what is offered. The catalog has it first, because it may find it wrong.
    async fn keep(&self, before: Vec<ToolDef>, defs: Vec<ToolDef>) -> Result<(), Fault> {
        let (handle, name) = (&self.shared.options.handle, &self.station.name);
        handle.providers().set_tools(name, defs.clone())?;
        let offered = ProviderInput::Offer { tools: defs };
        let kept = handle.providers().change(&self.caller, name, offered).await;
        if let Err(fault) = kept {
            handle.providers().set_tools(name, before)?;
            return Err(fault);
        }
        Ok(())
    }

    /// Asks the operative to execute an attempt.
    pub(crate) async fn execute(
        &mut self,
        session: &mut ToolSession,
        dispatch: Dispatch,
        place: AttemptPermit,
    ) {
        let handle = &self.shared.options.handle;
        let tool = handle.providers().tool(&dispatch.spec.tool).ok();
        let form = |schema: Option<&Value>| schema.map_or(Form::Object, Form::of);
        let input = form(tool.as_ref().map(|tool| &tool.def.input_schema));
        let output = form(tool.as_ref().and_then(|tool| tool.def.output_schema.as_ref()));
        let id = dispatch.attempt_id.to_string();
        let attempt = Attempt::new(handle.clone(), dispatch).worked_on_by(&self.caller);
        // Files are given as addresses that are good for this attempt.
        let inputs = match attempt.data().inputs_with_addresses().await {
            Ok(inputs) => inputs,
            Err(fault) => {
                return self.end(attempt, Err(AttemptError::Failed(fault, Executed::No)), 0);
            }
        };
        let request = Request {
            id: id.clone(),
            kind: Kind::Elicit,
            method: attempt.dispatch().spec.tool.name().to_owned(),
            payload: input.unpack(inputs),
        };
        attempt.handed_over();
        match session.call(request) {
            Ok(()) => {
                self.calls
                    .insert(id, OperativeCall { attempt, output, cost_micro: 0, _place: place });
            }
            // An attempt that was given twice is under way.
            Err(CallError::Duplicate) => {}
            Err(error) => {
                let code = match error {
                    CallError::TooLarge => Code::ToolInputTooLarge,
                    CallError::Ended => Code::ToolAgentLost,
                    CallError::Full | CallError::Duplicate => Code::ToolBusy,
                };
                let message = format!("The operative could not be asked: {error}.");
                let failed = AttemptError::Failed(Fault::new(code, message), Executed::No);
                self.end(attempt, Err(failed), 0);
            }
        }
    }

    /// Takes an attempt back. Not every operative answers when it is told to stop, so nothing is
    /// waited for.
    pub(crate) fn stop(&mut self, session: &mut ToolSession, attempt_id: &AttemptId) {
        let id = attempt_id.as_str();
        let Some(call) = self.calls.remove(id) else { return };
        session.cancel(id);
        self.children.parent_ended(id);
        let fault = Fault::new(Code::ToolCanceled, "The operative was told to stop.");
        let canceled = AttemptError::Canceled(fault.executed(Executed::Maybe));
        self.remember(&call.attempt);
        self.end(call.attempt, Err(canceled), call.cost_micro);
    }

    /// The operative says what a call has cost so far; also of one that is over.
    pub(crate) async fn cost(&mut self, id: &str, so_far_micro: Micro) {
        let booked = match self.calls.get_mut(id) {
            Some(call) if so_far_micro <= call.cost_micro => return,
            Some(call) => {
                call.cost_micro = so_far_micro;
                call.attempt.report_cost(so_far_micro).await
            }
            None => match self.over.iter().find(|(over, _)| over.as_str() == id) {
                Some((attempt_id, run)) => {
                    self.shared
                        .options
                        .handle
                        .runs()
                        .report_cost(run, attempt_id, so_far_micro)
                        .await
                }
                None => return,
            },
        };
        if let Err(fault) = booked {
            tracing::debug!(code = %fault.code, "a cost was not booked");
        }
    }

    /// Tells the engine how an attempt ended, and what it has cost.
    fn end(&self, attempt: Attempt, result: Result<Object, AttemptError>, cost_micro: Micro) {
        self.shared.background.spawn(async move {
            let end = AttemptEnd::new(result.map(AttemptOutputs::from), cost_micro);
            if let Err(fault) = attempt.ended(end).await {
                tracing::debug!(code = %fault.code, "the engine stopped before an attempt ended");
            }
        });
    }

    fn remember(&mut self, attempt: &AttemptRef) {
        if self.over.len() >= OVER_MAX {
            self.over.pop_front();
        }
        let Dispatch { attempt_id, run, .. } = attempt.dispatch();
        self.over.push_back((attempt_id.clone(), run.clone()));
    }

    /// The operative says something on the way.
    pub(crate) async fn progress(&mut self, id: &str, data: Value) {
        let Some(call) = self.calls.get(id) else { return };
        let piece = Progress::Partial { key: None, value: data };
        if let Err(fault) = call.attempt.progress(vec![piece]).await {
            tracing::debug!(code = %fault.code, "progress was not kept");
        }
    }

    /// The operative answers, or cannot any more.
    pub(crate) fn answered(&mut self, id: &str, answer: ToolAnswer) {
        let Some(OperativeCall { attempt, output, cost_micro, .. }) = self.calls.remove(id) else {
            return;
        };
        self.children.parent_ended(id);
        self.remember(&attempt);
        self.end(attempt, result(answer).map(|value| output.pack(value)), cost_micro);
    }

    /// The operative asks for something while it serves a call.
    pub(crate) async fn request(&mut self, session: &mut ToolSession, incoming: ToolRequest) {
        let call = incoming.of.as_ref().and_then(|of| self.calls.get(of));
        let Some(call) = call else {
            let message = "An operative asks only on behalf of a call that it serves.";
            let fault = Fault::new(Code::PermissionDenied, message).executed(Executed::No);
            session.answer(&incoming.id, &ToolAnswer::Failed(fault));
            return;
        };
        let attempt = AttemptRef::clone(&call.attempt);
        self.children.begin(session, attempt, incoming).await;
    }

    pub(crate) fn open_calls(&self) -> HashSet<String> {
        self.calls.keys().cloned().collect()
    }

    /// The connection has begun; runs wait until it says which tools it has.
    pub(crate) async fn arrive(&self) {
        self.shared.tell(&self.station).await;
        self.shared.wait_for(&self.station);
    }

    /// The connection has ended; runs wait for another one for a while.
    pub(crate) async fn leave(&self) {
        if self.station.leave(self.epoch, self.shared.options.handle.now()) {
            self.arrive().await;
        }
    }

    /// Gives back an attempt that the operative was never asked to execute.
    pub(crate) fn give_back(&self, dispatch: Dispatch) {
        let attempt = Attempt::new(self.shared.options.handle.clone(), dispatch);
        let message = "The operative's connection ended before it was asked.";
        let fault = Fault::new(Code::ToolAgentLost, message);
        self.end(attempt, Err(AttemptError::Failed(fault, Executed::No)), 0);
    }
}

/// An answer as the end of an attempt.
fn result(answer: ToolAnswer) -> Result<Value, AttemptError> {
    let refused = |code, message: &str| AttemptError::Refused(Fault::new(code, message));
    Err(match answer {
        ToolAnswer::Accepted(value) => return Ok(value),
        ToolAnswer::Acknowledged => return Ok(Value::Null),
        ToolAnswer::Declined => refused(Code::ToolDeclined, "The operative declined the call."),
        ToolAnswer::Denied => {
            refused(Code::PermissionDenied, "The operative did not allow the call.")
        }
        ToolAnswer::Cancelled => {
            AttemptError::Canceled(Fault::new(Code::ToolCanceled, "The operative called it off."))
        }
        ToolAnswer::OffScript(text) => {
            let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
            let text = if text.trim().is_empty() { "The tool failed.".to_owned() } else { text };
            AttemptError::Failed(Fault::new(Code::ToolFailed, text), Executed::Yes)
        }
        ToolAnswer::Failed(mut fault) => {
            fault.message.retain(|c| !c.is_control() || c == '\n');
            let said = fault.details.remove("executed");
            let executed = match said.as_ref().and_then(Value::as_str) {
                Some("no") => Executed::No,
                Some("maybe") => Executed::Maybe,
                _ => Executed::Yes,
            };
            AttemptError::Failed(fault, executed)
        }
        ToolAnswer::Lost => {
            let message = "The operative's connection ended before it answered.";
            AttemptError::Failed(Fault::new(Code::ToolAgentLost, message), Executed::Maybe)
        }
    })
}
