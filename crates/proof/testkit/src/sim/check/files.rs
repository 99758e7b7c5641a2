//! Rules on files: they are put in their places when nothing can keep the run from succeeding,
//! all of them before it does, and recorded with its end.

use wharf_domain::{Artifact, ArtifactOp, Entry, Move, Outcome, Run, RunEntry};
use wharf_memory::MemoryState;
use wharf_ports::{Batch, TraceQuery};
use wharf_vocab::{AttemptId, RunKey};

use super::super::exercised::{Exercised, Thing};
use super::Checker;

impl Checker {
    /// A core puts a file in its place.
    pub(in super::super) fn put_in_place(
        &mut self,
        run: &RunKey,
        attempt: &AttemptId,
        one: &Move,
        seen: &mut Exercised,
    ) {
        // Nobody but its core knows a run in memory.
        if let Some(tale) = self.model.runs.get(run) {
            let begun = tale.states.iter().any(|state| publishes(state, attempt, one));
            self.require(begun, "files are published when the run can only succeed", || {
                format!("{run} {attempt}: {one:?}")
            });
        }
        if !self.placed.insert((run.clone(), one.clone())) {
            seen.note(Thing::PublishedAgain);
        }
    }

    /// How many files of a run are in their places.
    #[cfg(test)]
    pub(in super::super) fn placed(&self, run: &RunKey) -> usize {
        self.placed.iter().filter(|(of, _)| of == run).count()
    }

    /// What an entry says about files fits what was done and what the same batch records.
    pub(super) fn files_fit(&mut self, before: &Run, entry: &RunEntry) {
        let key = &before.key;
        // What it cost may still come while its files are put in their places.
        if matches!(entry, RunEntry::CostReported(_)) {
            return;
        }
        if let Some(publishing) = &before.publishing {
            let as_said = matches!(entry, RunEntry::Ended(ended)
                if ended.outcome == Outcome::Succeeded { outputs: publishing.outputs.clone() }
                    && ended.artifacts == publishing.artifacts
                    && ended.cost_micro >= publishing.cost_micro);
            self.require(as_said, "what is being published ends as it was written down", || {
                format!("{key}: {entry:?} after {publishing:?}")
            });
            let missing = publishing
                .moves
                .iter()
                .find(|one| !self.placed.contains(&(key.clone(), Move::clone(one))))
                .cloned();
            self.require(missing.is_none(), "a run succeeds with all its files", || {
                format!("{key}: {missing:?}")
            });
        } else if let RunEntry::Ended(ended) = entry {
            self.require(ended.artifacts.is_empty(), "staged files are published first", || {
                format!("{key}: {ended:?}")
            });
        }
    }

    /// Files are recorded at the store when everything has come to rest, each of them once.
    pub(super) fn files_recorded(&mut self, state: &MemoryState) {
        let mut wrong = Vec::new();
        for (key, tale) in &self.model.runs {
            let query = TraceQuery {
                world: key.world.clone(),
                path: None,
                run: Some(key.run.clone()),
                after: 0,
                limit: usize::MAX,
            };
            let found = state.trace(&query).into_iter().map(|record| record.artifact);
            let found: Vec<Artifact> = found.collect();
            if found != tale.run.artifacts {
                wrong.push(format!("{key}: {found:?} instead of {:?}", tale.run.artifacts));
            }
        }
        for seen in wrong {
            self.broken("files are recorded once, with the run that wrote them", seen);
        }
    }
}

/// Whether a run in this state publishes this file of this attempt.
fn publishes(run: &Run, attempt: &AttemptId, one: &Move) -> bool {
    let active = run.active.as_ref().is_some_and(|active| active.id == *attempt);
    let begun = run.publishing.as_ref().is_some_and(|it| it.moves.contains(one));
    active && begun
}

/// The files that entries tell of are those that their batch records.
pub(super) fn recorded_with_the_end(entries: &[Entry], batch: &Batch) -> Option<String> {
    let told = entries.iter().flat_map(|entry| match entry {
        Entry::Run(RunEntry::Ended(ended)) => ended.artifacts.as_slice(),
        _ => &[],
    });
    let told: Vec<_> = told.cloned().map(ArtifactOp::Record).collect();
    (told != batch.artifacts).then(|| format!("{:?} instead of {told:?}", batch.artifacts))
}
