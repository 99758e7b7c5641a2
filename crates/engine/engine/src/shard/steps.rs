//! Steps of durable code in a shard: they live in the shard of their run. They outlive the attempt
//! that asked for them, but not the run: nobody would ever hear what they gave.

use wharf_domain::Run;
use wharf_domain::run::flow::StepRef;
use wharf_domain::run::steps::{CallState, StepInput, StepMark};
use wharf_vocab::{RunId, RunKey, StepName, Timestamp};

use super::flows::recheck_at;
use super::runs::is_called_off;
use super::{Output, Shard};

/// Steps of one run that are looked up at once.
const LOOKED_UP_MAX: usize = 16;

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

/// Whether code waits for a step that it has asked for.
pub(super) fn waits(run: &Run) -> bool {
    run.steps.as_deref().is_some_and(|steps| steps.open_runs().next().is_some())
}

impl Shard {
    /// Looks up the steps that a run takes to be under way and that are not: the word that one is
    /// over may have got lost, and the attempt's clock would stand still for ever.
    pub(super) fn recheck_steps(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        let Some(slot) = self.runs.get_mut(key) else { return };
        let Some(run) = slot.run.clone() else { return };
        slot.recheck_at = recheck_at(&run, now);
        let open = run.steps.iter().flat_map(|steps| steps.open_runs());
        let runs = open.map(|child| RunKey { world: key.world.clone(), run: child.clone() });
        let gone: Vec<_> = runs.filter(|child| !self.runs.contains_key(child)).collect();
        for child in gone.iter().take(LOOKED_UP_MAX) {
            self.look_up(child, out);
        }
    }
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
