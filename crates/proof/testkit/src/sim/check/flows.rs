//! Rules on flows: each step is started once and over once, by the run that did it; and a flow
//! ends when no step of it is open.

use wharf_domain::Outcome;
use wharf_domain::run::flow::{ChildEnd, FlowRunEntry, step_id};
use wharf_vocab::RunKey;

use super::super::exercised::{Exercised, Thing};
use super::super::flows::FORCED;
use super::Checker;

impl Checker {
    /// Something was written about the steps of a flow.
    pub(super) fn flow_fits(&mut self, flow: &RunKey, entry: &FlowRunEntry, seen: &mut Exercised) {
        match entry {
            FlowRunEntry::StepStarted(started) => {
                let place = (flow.clone(), started.path.clone(), started.number);
                let first = self.steps.insert(place, (started.child.clone(), false)).is_none();
                self.require(first, "no step is started twice", || format!("{flow} {started:?}"));
                let named = step_id(flow, &started.path, started.number) == started.child;
                let run = RunKey { world: flow.world.clone(), run: started.child.clone() };
                let fits = named && run.shard() == flow.shard();
                self.require(fits, "a step's run has the step's name", || {
                    format!("{flow} {started:?}")
                });
            }
            FlowRunEntry::StepFinished(finished) => {
                seen.note(Thing::Step);
                let place = (flow.clone(), finished.path.clone(), finished.number);
                let started = self.steps.get_mut(&place);
                let before =
                    started.map(|(child, over)| (child.clone(), std::mem::replace(over, true)));
                let open = before.as_ref().is_some_and(|(_, over)| !over);
                self.require(open, "a step is over once", || format!("{flow} {finished:?}"));
                let run = before.map(|(run, _)| RunKey { world: flow.world.clone(), run });
                let tale = run.and_then(|run| self.model.runs.get(&run));
                let ended = tale.and_then(|tale| ChildEnd::of(&tale.run));
                let fits = match (finished.run, &ended) {
                    (true, Some(ended)) => ended.end == finished.end,
                    (false, _) => finished.end.error().is_some(),
                    (true, None) => false,
                };
                self.require(fits, "a step ends as its run did", || {
                    format!("{flow} {finished:?}, and its run {ended:?}")
                });
            }
            _ => {}
        }
    }

    /// A run was ended; if it is a flow, no step of it is open, unless somebody ended it at once.
    pub(super) fn flow_ends_alone(&mut self, flow: &RunKey) {
        let forced = |tale: &super::model::Tale| {
            let error = tale.run.outcome.as_ref().and_then(Outcome::error);
            error.is_some_and(|error| error.message == FORCED)
        };
        let is_flow = |tale: &super::model::Tale| tale.run.flow.is_some() && !forced(tale);
        if !self.model.runs.get(flow).is_some_and(is_flow) {
            return;
        }
        let is_step = |tale: &&super::model::Tale| {
            tale.run.spec.parent.as_ref() == Some(flow) && tale.run.spec.step.is_some()
        };
        let left = self.model.open().find(is_step).map(|tale| tale.run.key.clone());
        self.require(left.is_none(), "a flow ends when no step of it is open", || {
            format!("{flow} ends before {left:?}")
        });
    }
}
