//! Steps of durable code: what an attempt asks for is written into its run's journal first, and
//! then made or found by its computed id. An attempt that is repeated so meets every step again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use wharf_domain::run::RunInput;
use wharf_domain::run::flow::StepRef;
use wharf_domain::run::steps::{
    CallState, StepCall, StepEntry, StepInput, StepMark, code_step_key,
};
use wharf_domain::{Caller, Outcome, Run, value_weight};
use wharf_vocab::{Backoff, Code, Executed, Fault, RunKey, RunStatus, StepName, Timestamp};

use super::flow_runs::FlowStep;
use super::request::{NewRun, StepTerms, digest_of};
use super::{AttemptRef, misfit, stopped};
use crate::clean::Clean;
use crate::shard::{Input, Reply};

/// How long the engine waits before it asks once more for what cannot be had now.
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// The run of a step that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum StepRun {
    /// It goes on.
    Open(RunKey),
    /// It is over.
    Over(Arc<Run>),
}

impl AttemptRef {
    /// Asks for a step of the run, with a caller made by [`AttemptRef::caller`]. The first time it
    /// is begun, afterwards found: as it goes on, or as it ended. An error is what became of it:
    /// it was not let in, then or now, or the code asks for something else than it did before.
    pub async fn step(
        &self,
        caller: &Caller,
        step: StepName,
        new: NewRun,
    ) -> Result<StepRun, Fault> {
        let new = self.as_child(new);
        let arguments = digest_of(&new.inputs, &|_| false);
        let (tool, attempt_id) = (new.tool.clone(), self.dispatch().attempt_id.clone());
        let ask = StepInput::Ask { attempt_id, step: step.clone(), tool, arguments };
        let run = self.tell_step(ask).await?;
        let call = match run.steps.as_deref().and_then(|log| log.get(&step)) {
            Some(StepMark::Call(call)) => call.clone(),
            Some(StepMark::Local(_)) | None => return Err(misfit()),
        };
        if let CallState::Refused(fault) = call.state {
            return Err(fault);
        }
        let key = RunKey { world: run.key.world.clone(), run: call.child.clone() };
        match self.find(&key, &step).await? {
            Some(child) => self.found(&step, &call, child).await,
            None => self.make(caller, step, &call, new).await,
        }
    }

    /// What local code of the run gave: the value that is kept under this name, else this one,
    /// which is kept from now on.
    pub async fn keep(&self, step: StepName, value: Option<Value>) -> Result<Option<Value>, Fault> {
        if let Some(value) = &value {
            self.may_keep(value)?;
        }
        let attempt_id = self.dispatch().attempt_id.clone();
        let run = self.tell_step(StepInput::Keep { attempt_id, step: step.clone(), value }).await?;
        Ok(match run.steps.as_deref().and_then(|log| log.get(&step)) {
            Some(StepMark::Local(value)) => Some(value.clone()),
            _ => None,
        })
    }

    /// What comes back must be what was kept, and a secret is not written down.
    fn may_keep(&self, value: &Value) -> Result<(), Fault> {
        let mut clean = value.clone();
        self.work().given().value(&mut clean);
        let inner = &self.handle().inner;
        if let Some(secrets) = inner.redactor.only_secrets() {
            secrets.value(&mut clean);
        }
        if clean != *value {
            let message = "A value with a secret in it is not written down, so it cannot be kept.";
            return Err(Fault::new(Code::ToolInvalidOutput, message));
        }
        let holders = inner.hub.holders(&self.dispatch().run, &self.dispatch().spec);
        inner.held.check(&holders, value_weight(value))
    }

    /// Offers something about a step, and gives the run as it is then. If it has ended over that,
    /// its error is what there is to say.
    async fn tell_step(&self, input: StepInput) -> Result<Arc<Run>, Fault> {
        let key = self.dispatch().run.clone();
        let shard = key.shard();
        let input = Input::Run { key: key.clone(), input: RunInput::Step(input), ticket: None };
        let run = match self.handle().ask(shard, input).await {
            Ok(Reply::Run { run, .. }) => run,
            Ok(_) => return Err(misfit()),
            // Its shard has it no more once it is over.
            Err(fault) if fault.is(Code::RunNotFound) => {
                let ended = self.handle().runs().get(&key).await?;
                if !ended.is_over() {
                    return Err(fault);
                }
                ended
            }
            Err(fault) => return Err(fault),
        };
        match run.outcome.as_ref().map(Outcome::error) {
            Some(Some(error)) => Err(error.clone()),
            Some(None) => {
                let message = "The call that asks for a step is over.";
                Err(Fault::new(Code::PermissionDenied, message))
            }
            None => Ok(run),
        }
    }

    /// The run of a step, if it was made.
    async fn find(&self, key: &RunKey, step: &StepName) -> Result<Option<Arc<Run>>, Fault> {
        let mut pauses = Backoff::new(AGAIN_MIN, AGAIN_MAX);
        let found = loop {
            match self.handle().runs().get(key).await {
                Ok(found) => break found,
                Err(fault) if fault.is(Code::RunNotFound) => return Ok(None),
                Err(_) if self.handle().is_stopping() => return Err(stopped()),
                Err(_) => tokio::time::sleep(pauses.pause()).await,
            }
        };
        let code = found.spec.step.as_ref().and_then(|of| of.code.as_ref());
        if code != Some(step) || found.spec.parent.as_ref() != Some(&self.dispatch().run) {
            let message = format!("The run {key} is not the one of this step.");
            return Err(Fault::new(Code::RunConflict, message));
        }
        Ok(Some(found))
    }

    /// A step whose run is there. Its end may have got lost on the way to the run's journal.
    async fn found(
        &self,
        step: &StepName,
        call: &StepCall,
        child: Arc<Run>,
    ) -> Result<StepRun, Fault> {
        if !child.is_over() {
            return Ok(StepRun::Open(child.key.clone()));
        }
        if call.state == CallState::Open {
            let (step, status) = (step.clone(), child.status());
            let ended = StepInput::Ended { step, child: child.key.run.clone(), status };
            self.tell_step(ended).await?;
        }
        Ok(StepRun::Over(child))
    }

    /// Makes the run of a step. What cannot be taken now is asked for again until it can; what is
    /// refused stays refused.
    async fn make(
        &self,
        caller: &Caller,
        step: StepName,
        call: &StepCall,
        new: NewRun,
    ) -> Result<StepRun, Fault> {
        let parent = &self.dispatch().run;
        let of = StepRef { path: step.to_string(), number: 1, code: Some(step.clone()) };
        let idempotency_key = new.idempotency_key.or_else(|| Some(code_step_key(parent, &step)));
        let request = NewRun {
            run_id: Some(call.child.clone()),
            step: StepTerms { of: Some(of), ..StepTerms::default() },
            idempotency_key,
            ..new
        };
        let mut pauses = Backoff::new(AGAIN_MIN, AGAIN_MAX);
        loop {
            if let Err(fault) = self.check_active().await {
                let runs = self.handle().runs();
                runs.audit_refusal(caller, &request.tool, &request.world, &fault);
                return Err(fault);
            }
            let fault = match Box::pin(self.handle().runs().create(caller, request.clone())).await {
                Ok(made) => return self.found(&step, call, made.run).await,
                Err(fault) => fault,
            };
            if fault.is(Code::CoreStopping) || self.handle().is_stopping() {
                return Err(stopped());
            }
            // The run goes on without it, or has ended.
            if fault.is(Code::FlowOver) {
                return Err(fault);
            }
            if !self.handle().flows().is_passing(&fault) {
                let fault = fault.executed(Executed::No);
                let refused = StepInput::Refused { step, fault: fault.clone() };
                self.tell_step(refused).await?;
                return Err(fault);
            }
            tokio::time::sleep(pauses.pause()).await;
        }
    }
}

/// Adds what an entry tells to the steps of a run of durable code, for whoever looks at it. `places`
/// says where each of them stands.
pub(super) fn code_step(
    (steps, places): (&mut Vec<FlowStep>, &mut BTreeMap<(String, u32), usize>),
    at: Timestamp,
    entry: StepEntry,
) {
    let began = |path: String| FlowStep {
        path,
        status: "running",
        number: 1,
        tool: None,
        run: None,
        started_at: at,
        ended_at: None,
        cost_micro: 0,
        error: None,
        until: None,
    };
    match entry {
        StepEntry::Asked(asked) => {
            let (tool, run) = (Some(asked.tool), Some(asked.child));
            places.insert((asked.step.to_string(), 1), steps.len());
            steps.push(FlowStep { tool, run, ..began(asked.step.to_string()) });
        }
        StepEntry::Answered(answered) => {
            let place = places.get(&(answered.step.to_string(), 1));
            let Some(step) = place.and_then(|at| steps.get_mut(*at)) else { return };
            (step.status, step.ended_at) = (answered.status.as_str(), Some(at));
            if answered.refused.is_some() {
                (step.error, step.run) = (answered.refused, None);
            }
        }
        StepEntry::Kept(kept) => steps.push(FlowStep {
            status: RunStatus::Succeeded.as_str(),
            ended_at: Some(at),
            ..began(kept.step.to_string())
        }),
    }
}
