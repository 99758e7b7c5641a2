//! Runs of flows: messages for them, their steps, and ending them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_domain::flow::{Document, StepKind};
use wharf_domain::run::RunInput;
use wharf_domain::run::flow::{FlowInput, FlowRunEntry, NewSignal, StepEnd};
use wharf_domain::{Actor, Caller, Run, RunEntry};
use wharf_vocab::json::json_bytes;
use wharf_vocab::limits::SIGNAL_BYTES_MAX;
use wharf_vocab::{Code, Fault, Micro, RunId, RunKey, Timestamp, ToolId};

use super::steps::code_step;
use super::{FlowCalls, misfit};
use crate::catalog::check_answer;
use crate::shard::{Input, Reply};

/// Longest key of a message.
const SIGNAL_KEY_BYTES_MAX: usize = 255;

/// A message for a flow.
#[derive(Debug, Clone)]
pub struct NewFlowSignal {
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: Value,
    /// The sender's own key for it: a second one under it changes nothing.
    pub key: Option<String>,
}

/// A step of a flow or of durable code that was begun, for whoever looks at the run.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStep {
    /// Its place in the flow, with the numbers of items and rounds.
    pub path: String,
    /// `running`, `waiting`, `succeeded`, `failed`, `refused`, `canceled` or `retrying`.
    pub status: &'static str,
    /// Which try it is, if it is a call.
    pub number: u32,
    /// The tool, if it is a call.
    pub tool: Option<ToolId>,
    /// The run that does it, if it is a call and one was made.
    pub run: Option<RunId>,
    /// Since when.
    pub started_at: Timestamp,
    /// Until when.
    pub ended_at: Option<Timestamp>,
    /// What it cost.
    pub cost_micro: Micro,
    /// Why it did not succeed.
    pub error: Option<Fault>,
    /// Until when it waits at most, where that is known.
    pub until: Option<Timestamp>,
}

impl FlowCalls<'_> {
    /// Sends a flow a message. It is committed when this returns.
    pub async fn signal(
        self,
        caller: &Caller,
        key: &RunKey,
        signal: NewFlowSignal,
    ) -> Result<Arc<Run>, Fault> {
        let own = signal.key.as_deref().unwrap_or("key");
        if own.is_empty() || own.len() > SIGNAL_KEY_BYTES_MAX || own.chars().any(char::is_control) {
            let message = "An idempotency_key has 1 to 255 bytes and no control characters.";
            return Err(Fault::invalid("idempotency_key", message));
        }
        let run = self.0.runs().get(key).await?;
        self.0.audited(caller, key, self.0.runs().check_cancel(caller, &run))?;
        let spec = run.spec.flow.clone().ok_or_else(|| {
            Fault::new(Code::RequestInvalid, format!("The run {key} is no run of a flow."))
        })?;
        if run.is_over() {
            return Err(over(key));
        }
        if json_bytes(&signal.value) > SIGNAL_BYTES_MAX {
            let message = format!("A signal may have {SIGNAL_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::FlowSignalLimit, message));
        }
        if let Some(schema) = schema_of(&spec.document, &signal.name) {
            check_answer(schema, &signal.value).await?;
        }
        let NewFlowSignal { name, value, key: own } = signal;
        let by = Actor::from(&caller.grant);
        let input = RunInput::Signal(NewSignal { name, value, key: own, by });
        self.ask(key, input).await
    }

    /// Cancels a run; a flow ends at once: its steps are told to stop, and nobody waits for them or
    /// undoes what they did.
    pub async fn force(
        self,
        caller: &Caller,
        key: &RunKey,
        reason: &str,
    ) -> Result<Arc<Run>, Fault> {
        let run = self.0.runs().cancel(caller, key, reason).await?;
        let Some(cancel) = run.cancel.clone().filter(|_| run.flow.is_some() && !run.is_over())
        else {
            return Ok(run);
        };
        let by = Actor::from(&caller.grant);
        let reason = if reason.is_empty() { cancel.reason } else { reason.to_owned() };
        match self.ask(key, RunInput::Flow(FlowInput::Force { by, reason })).await {
            Err(fault) if fault.is(Code::FlowOver) => self.0.runs().get(key).await,
            forced => forced,
        }
    }

    async fn ask(self, key: &RunKey, input: RunInput) -> Result<Arc<Run>, Fault> {
        let input = Input::Run { key: key.clone(), input, ticket: None };
        match self.0.ask(key.shard(), input).await {
            Ok(Reply::Run { run, .. }) => Ok(run),
            Ok(_) => Err(misfit()),
            Err(fault) if fault.is(Code::RunNotFound) => Err(over(key)),
            Err(fault) => Err(fault),
        }
    }

    /// The steps of a run that have begun, oldest first. Of steps that are over only calls are
    /// told.
    pub async fn steps(self, run: &Run) -> Result<Vec<FlowStep>, Fault> {
        let mut steps: Vec<FlowStep> = Vec::new();
        let mut places: BTreeMap<(String, u32), usize> = BTreeMap::new();
        for (at, entry) in self.0.run_events().entries(&run.key).await? {
            let entry = match entry {
                RunEntry::Flow(entry) => entry,
                RunEntry::Step(entry) => {
                    code_step((&mut steps, &mut places), at, *entry);
                    continue;
                }
                _ => continue,
            };
            match *entry {
                FlowRunEntry::StepStarted(started) => {
                    places.insert((started.path.clone(), started.number), steps.len());
                    steps.push(FlowStep {
                        path: started.path,
                        status: "running",
                        number: started.number,
                        tool: Some(started.tool),
                        run: Some(started.child),
                        started_at: at,
                        ended_at: None,
                        cost_micro: 0,
                        error: None,
                        until: None,
                    });
                }
                FlowRunEntry::StepFinished(finished) => {
                    let place = places.get(&(finished.path.clone(), finished.number));
                    let Some(step) = place.and_then(|at| steps.get_mut(*at)) else { continue };
                    step.status = match &finished.end {
                        StepEnd::Failed { .. } if finished.retry_at.is_some() => "retrying",
                        end => end.as_str(),
                    };
                    step.ended_at = Some(at);
                    step.cost_micro = finished.cost_micro;
                    step.error = finished.end.error().cloned();
                    step.run = step.run.take().filter(|_| finished.run);
                }
                _ => {}
            }
        }
        if let (Some(flow), Some(spec), false) = (&run.flow, &run.spec.flow, run.is_over()) {
            for live in flow.live_steps(spec).into_iter().filter(|live| live.child.is_none()) {
                steps.push(FlowStep {
                    path: live.path,
                    status: "waiting",
                    number: live.number.unwrap_or(1),
                    tool: None,
                    run: None,
                    started_at: live.since,
                    ended_at: None,
                    cost_micro: 0,
                    error: None,
                    until: live.until,
                });
            }
        }
        Ok(steps)
    }
}

/// The schema of a message; all steps that wait for it have the same.
fn schema_of<'a>(document: &'a Document, name: &str) -> Option<&'a Value> {
    let mut schema = None;
    document.visit(&mut |_, step| {
        if let StepKind::Signal(signal) = &step.kind
            && *signal.name == *name
        {
            schema = schema.or(signal.schema.as_ref());
        }
    });
    schema
}

fn over(key: &RunKey) -> Fault {
    Fault::new(Code::FlowOver, format!("The run {key} is over or about to end."))
}
