//! Flows that begin anew: the run that goes on from one is made before that one is over.

use std::sync::Arc;

use wharf_domain::Run;
use wharf_domain::run::flow::{FlowInput, RESTART, Restart};
use wharf_vocab::{Backoff, Code, Fault, Object, RunKey};

use super::FlowCalls;
use super::flow_steps::{AGAIN_MAX, AGAIN_MIN, caller_of};
use super::request::{NewRun, RestartedFlow, RunSeats, StepTerms};

impl FlowCalls<'_> {
    /// Makes the run that a flow begins anew as, or finds it; nothing if that cannot be done now.
    pub(super) async fn restart(self, flow: &Arc<Run>, wanted: Restart) -> Option<FlowInput> {
        let key = RunKey { world: flow.key.world.clone(), run: wanted.run.clone() };
        if flow.spec.step.is_some() {
            let message = "A flow that is a step of another one cannot begin anew: \
                its step ends with it.";
            return Some(refused(Fault::new(Code::FlowInvalid, message)));
        }
        let mut pauses = Backoff::new(AGAIN_MIN, AGAIN_MAX);
        loop {
            let fault = match self.successor(flow, &wanted, &key).await {
                Ok(input) => return Some(input),
                Err(fault) => fault,
            };
            if !self.is_passing(&fault) {
                return Some(refused(fault));
            }
            if self.0.is_stopping() {
                return None;
            }
            tokio::time::sleep(pauses.pause()).await;
        }
    }

    async fn successor(
        self,
        flow: &Run,
        wanted: &Restart,
        key: &RunKey,
    ) -> Result<FlowInput, Fault> {
        if wanted.look_up || wanted.canceling {
            match self.0.runs().get(key).await {
                Ok(found) => return goes_on(flow, &found),
                Err(fault) if !fault.is(Code::RunNotFound) => return Err(fault),
                Err(_) if wanted.canceling => {
                    return Err(Fault::new(Code::ToolCanceled, "The flow was canceled."));
                }
                Err(_) => {}
            }
        }
        let caller = caller_of(&flow.spec.caller);
        let request = request(flow, key, Object::clone(&wanted.inputs));
        let accepted = Box::pin(self.0.runs().create(&caller, request)).await?;
        goes_on(flow, &accepted.run)
    }
}

/// What the run asks for that goes on from a flow: all that the flow itself was asked for.
fn request(flow: &Run, key: &RunKey, inputs: Object) -> NewRun {
    let spec = &flow.spec;
    NewRun {
        mode: spec.mode,
        run_id: Some(key.run.clone()),
        correlation_id: spec.correlation_id.clone(),
        parent: spec.parent.clone(),
        context: spec.context.clone(),
        mcp: spec.mcp,
        seats: RunSeats { senior: spec.senior.clone(), ..RunSeats::default() },
        step: StepTerms {
            restarts: Some(RestartedFlow {
                run: flow.key.run.clone(),
                account: spec.account.clone(),
            }),
            ..StepTerms::default()
        },
        ..NewRun::new(spec.tool.clone(), inputs, key.world.clone())
    }
}

fn goes_on(flow: &Run, found: &Run) -> Result<FlowInput, Fault> {
    let before = found.spec.flow.as_ref().and_then(|spec| spec.restarts.as_ref());
    if before != Some(&flow.key.run) {
        let message = format!("The run {} is not the one that the flow goes on as.", found.key);
        return Err(Fault::new(Code::RunConflict, message));
    }
    Ok(FlowInput::Restarted { run: found.key.run.clone() })
}

fn refused(fault: Fault) -> FlowInput {
    FlowInput::Refused { path: RESTART.to_owned(), number: 1, fault }
}
