//! Flows in a shard: their steps live in the same shard, and tell it when they begin and end. What
//! is told may get lost; what a flow waits for is looked for again and again.

use std::sync::Arc;

use wharf_domain::run::RunInput;
use wharf_domain::run::flow::{ChildEnd, FlowInput, FlowWork, step_id};
use wharf_domain::run::steps::StepInput;
use wharf_domain::{Run, RunSpec};
use wharf_vocab::{RunId, RunKey, Timestamp};

use super::runs::cancel_child;
use super::slot::Slot;
use super::steps;
use super::{Effect, Input, Output, Shard};

/// How long a flow waits for word before it looks for what it waits for.
const RECHECK_MS: u64 = 30_000;

/// When a flow, or durable code, looks for what it waits for outside, if nothing happens before.
pub(super) fn recheck_at(run: &Run, now: Timestamp) -> Option<Timestamp> {
    let waits = match (&run.flow, &run.spec.flow) {
        (Some(flow), Some(spec)) => flow.waits_outside(spec),
        _ => steps::waits(run),
    };
    (waits && !run.is_over()).then(|| now.plus_ms(RECHECK_MS))
}

/// Addresses what a flow wants.
pub(super) fn outward(run: &Arc<Run>, work: FlowWork) -> Effect {
    match work {
        FlowWork::Cancel(child) => cancel_child(&step(&run.key, child)),
        work => Effect::Flow { run: Arc::clone(run), work },
    }
}

fn step(flow: &RunKey, child: RunId) -> RunKey {
    RunKey { world: flow.world.clone(), run: child }
}

/// Tells a flow, or durable code, that a step of it is over.
pub(super) fn step_over(run: &Run, parent: &RunKey) -> Option<Effect> {
    let input = match &run.spec.step.as_ref()?.code {
        Some(step) => RunInput::Step(steps::ended(run, step)?),
        None => RunInput::Flow(FlowInput::Ended(Box::new(ChildEnd::of(run)?))),
    };
    let input = Input::Run { key: parent.clone(), input, ticket: None };
    Some(Effect::Send { to: parent.shard(), input: Box::new(input) })
}

impl Shard {
    /// A step of a flow made itself known. How it ended is told apart from that.
    pub(super) fn step_news(
        &mut self,
        now: Timestamp,
        parent: &RunKey,
        (child, began): (RunKey, bool),
        out: &mut Output,
    ) {
        if began {
            let input = RunInput::Flow(FlowInput::Made { child: child.run });
            self.offer(now, parent, input, None, out);
        }
    }

    /// Whether a run may be made: of a step only while its flow, which lives here, waits for it. A
    /// request for one may come late, when another has been refused and the flow has gone on.
    pub(super) fn is_wanted(&self, spec: &RunSpec) -> bool {
        let (Some(step), Some(parent)) = (&spec.step, &spec.parent) else { return true };
        let flow = self.runs.get(parent).and_then(Slot::latest);
        flow.is_some_and(|run| match (&run.flow, &run.spec.flow) {
            (Some(flow), Some(spec)) => !run.is_over() && flow.wants_step(spec, step),
            _ => steps::wants(run, step),
        })
    }

    /// Whether a step is said to be refused whose run is there: it was asked for twice, and the
    /// second time it was made.
    pub(super) fn is_made_after_all(&self, flow: &RunKey, input: &RunInput) -> bool {
        let child = match input {
            RunInput::Flow(FlowInput::Refused { path, number, .. }) => step_id(flow, path, *number),
            RunInput::Step(StepInput::Refused { step, .. }) => step_id(flow, &step.to_string(), 1),
            _ => return false,
        };
        self.runs.contains_key(&step(flow, child))
    }

    /// Looks for what a flow or durable code waits for, or for the provider of an attempt that is to
    /// be taken up again, if it has waited long enough.
    pub(super) fn recheck(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        let Some(slot) = self.runs.get_mut(key) else { return };
        if slot.recheck_at.is_none_or(|at| at > now) {
            return;
        }
        if slot.detached {
            return self.reattach(now, key, out);
        }
        if !slot.is_flow() {
            return self.recheck_steps(now, key, out);
        }
        slot.recheck_at = Some(now.plus_ms(RECHECK_MS));
        self.offer(now, key, RunInput::Flow(FlowInput::Recheck), None, out);
    }
}
