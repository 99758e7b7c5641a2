//! Steps of durable code in a shard: they live in the shard of their run. They outlive the attempt
//! that asked for them, but not the run: nobody would ever hear what they gave.

use wharf_domain::Run;
use wharf_domain::run::flow::StepRef;
use wharf_domain::run::steps::{CallState, StepInput, StepMark};
use wharf_vocab::{RunId, RunKey, StepName};

use super::runs::is_called_off;

/// What the end of a step's run says to the run that asked for it.
pub(super) fn ended(run: &Run, step: &StepName) -> Option<StepInput> {
    run.outcome.as_ref()?;
    let (step, status) = (step.clone(), run.status());
    Some(StepInput::Ended { step, child: run.key.run.clone(), status })
}

/// Whether the run of a step may be made: its code has asked for it and waits.
pub(super) fn wants(run: &Run, step: &StepRef) -> bool {
    let (Some(log), Some(name)) = (run.steps.as_deref(), &step.code) else { return false };
    let open = |mark: &StepMark| matches!(mark, StepMark::Call(it) if it.state == CallState::Open);
    !run.is_over() && log.get(name).is_some_and(open)
}

/// The steps of a run that is over which are not.
pub(super) fn left_over(run: &Run) -> Vec<RunKey> {
    let steps = run.steps.as_deref().filter(|_| run.is_over());
    let key = |child: &RunId| RunKey { world: run.key.world.clone(), run: child.clone() };
    steps.map_or_else(Vec::new, |steps| steps.open_runs().map(key).collect())
}

/// Whether what a run has started is to end, too.
pub(crate) fn leaves_nothing(run: &Run) -> bool {
    is_called_off(run) || (run.is_over() && run.steps.is_some())
}
