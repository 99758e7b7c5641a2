//! Attempts whose inputs only the store has: they are read before the attempt is handed over.
//!
//! To the shard the attempt is under way meanwhile: it can be called off, its time runs, and it
//! is not lost when the shard is loaded anew.

use std::sync::Arc;

use wharf_domain::run::{AttemptError, AttemptReport, RunInput};
use wharf_domain::{Entry, RunEntry, RunSpec};
use wharf_ports::Dispatch;
use wharf_vocab::limits::RUN_INPUTS_KEPT_BYTES_MAX;
use wharf_vocab::{AttemptId, Code, Executed, Fault, RunKey};

use super::Shell;
use super::hand_over::ended;
use super::load::read_patiently;
use crate::held::HeldBytes;
use crate::shard::Input;

/// An attempt that is to be handed over once its inputs are here.
pub(super) struct WaitingDispatch {
    dispatch: Dispatch,
    held: Option<HeldBytes>,
}

impl WaitingDispatch {
    /// Whether it is this attempt.
    pub(super) fn is(&self, attempt_id: &AttemptId) -> bool {
        self.dispatch.attempt_id == *attempt_id
    }
}

/// What the store has of a run's request.
pub(super) struct FetchedSpec {
    run: RunKey,
    attempt_id: AttemptId,
    spec: Option<Arc<RunSpec>>,
}

impl Shell {
    /// Hands an attempt over, at once or when its inputs have been read. An error means that
    /// nobody has it.
    pub(super) fn begin(&mut self, dispatch: Dispatch) -> Result<(), (Fault, Executed)> {
        let held = self.hold(&dispatch).map_err(|fault| (fault, Executed::No))?;
        if dispatch.spec.inputs.away().is_none() {
            return self.hand_over(dispatch, held);
        }
        let (run, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        self.fetching.insert(run.clone(), WaitingDispatch { dispatch, held });
        let (store, unread) = (Arc::clone(&self.parts.store), self.parts.unread.clone());
        self.fetches.push(Box::pin(async move {
            let stored = read_patiently(&*store, &run.stream(), &unread).await;
            let mut entries = stored.into_iter().flat_map(|stored| stored.entries);
            let spec = entries.find_map(|(_, entry)| match entry {
                Entry::Run(RunEntry::Created(created)) => Some(created.spec),
                _ => None,
            });
            FetchedSpec { run, attempt_id, spec }
        }));
        Ok(())
    }

    /// Takes room for what an attempt's inputs take while somebody works on it. Where there is
    /// none, the run waits like others for which there is no room.
    fn hold(&self, dispatch: &Dispatch) -> Result<Option<HeldBytes>, Fault> {
        let bytes = dispatch.spec.inputs.bytes();
        if bytes <= RUN_INPUTS_KEPT_BYTES_MAX as u64 {
            return Ok(None);
        }
        let holders = self.parts.hub.holders(&dispatch.run, &dispatch.spec);
        // One that is taken up again is there already.
        if dispatch.reattach {
            return Ok(Some(self.parts.attempts.take_anyway(holders, bytes)));
        }
        let held = self.parts.attempts.take(holders, bytes).map_err(|_| {
            let message = "Calls under way take as much memory as they may.";
            Fault::new(Code::ToolBusy, message)
        })?;
        Ok(Some(held))
    }

    /// Whether an attempt of a run that waits would find room for its inputs.
    pub(super) fn would_hold(&self, run: &RunKey, spec: &RunSpec) -> bool {
        let bytes = spec.inputs.bytes();
        bytes <= RUN_INPUTS_KEPT_BYTES_MAX as u64
            || self.parts.attempts.check(&self.parts.hub.holders(run, spec), bytes).is_ok()
    }

    /// The inputs of an attempt were read. Nobody may want it any more.
    pub(super) fn fetched(&mut self, fetched: FetchedSpec) {
        let FetchedSpec { run, attempt_id, spec } = fetched;
        if !self.fetching.get(&run).is_some_and(|fetching| fetching.is(&attempt_id)) {
            return;
        }
        let Some(WaitingDispatch { dispatch, held }) = self.fetching.remove(&run) else { return };
        let handed_over = match spec {
            Some(spec) => {
                let spec = Arc::new(dispatch.spec.with_inputs_of(&spec));
                self.hand_over(Dispatch { spec, ..dispatch }, held)
            }
            None => {
                let message = "The store does not have the inputs of the run.";
                Err((Fault::new(Code::StoreCorrupt, message), Executed::No))
            }
        };
        if let Err((fault, executed)) = handed_over {
            let shard = run.shard();
            self.queue.push_back((shard, ended(run, attempt_id, fault, executed)));
        }
    }

    /// An attempt is called off before anybody has it; `false` if it is not one of these.
    pub(super) fn give_up_fetching(&mut self, attempt_id: &AttemptId) -> bool {
        let found = self.fetching.iter().find(|(_, fetching)| fetching.is(attempt_id));
        let Some(key) = found.map(|(key, _)| key.clone()) else { return false };
        self.fetching.remove(&key);
        let fault = Fault::new(Code::ToolCanceled, "The call was canceled before it began.");
        let report = AttemptReport::new(Err(AttemptError::Canceled(fault)), 0);
        let input = RunInput::AttemptEnded { attempt_id: attempt_id.clone(), report };
        self.queue.push_back((key.shard(), Input::Run { key, input, ticket: None }));
        true
    }
}
