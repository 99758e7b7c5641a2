//! What a provider holds while it works on an attempt.

use wharf_domain::run::{AttemptError, AttemptReport, NewAsk, RunInput};
use wharf_domain::{Caller, Progress, json_weight};
use wharf_ports::Dispatch;
use wharf_vocab::limits::VALUE_BYTES_MAX;
use wharf_vocab::{Code, Executed, Fault, Object};

use super::{Accepted, Handle, NewRun};
use crate::shard::Input;

/// An attempt under way, as its provider holds it.
#[derive(Debug, Clone)]
pub struct Attempt {
    handle: Handle,
    dispatch: Dispatch,
}

impl Attempt {
    /// Takes an attempt that was dispatched.
    #[must_use]
    pub fn new(handle: Handle, dispatch: Dispatch) -> Self {
        Self { handle, dispatch }
    }

    /// What was dispatched.
    #[must_use]
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Writes progress. It waits while the core has too much to do.
    pub async fn progress(&self, pieces: Vec<Progress>) -> Result<(), Fault> {
        let key = self.dispatch.run.clone();
        let attempt_id = self.dispatch.attempt_id.clone();
        let shard = key.shard();
        self.handle.tell(shard, Input::Progress { key, attempt_id, pieces }).await
    }

    /// Raises an ask; how it ends comes by [`wharf_ports::ProviderSink::answer`] under its key.
    pub async fn raise(&self, ask: NewAsk) -> Result<(), Fault> {
        let key = self.dispatch.run.clone();
        let input = Input::Run { input: RunInput::RaiseAsk(ask), ticket: None, key: key.clone() };
        self.handle.ask(key.shard(), input).await.map(drop)
    }

    /// Starts a child run, under the same account or one below it.
    pub async fn invoke(&self, caller: &Caller, new: NewRun) -> Result<Accepted, Fault> {
        let new = NewRun { parent: Some(self.dispatch.run.clone()), ..new };
        self.handle.create_run(caller, new).await
    }

    /// Says that the attempt succeeded. Outputs that are too large or do not fit the tool's
    /// schema fail it.
    pub async fn succeeded(&self, outputs: Object, cost_micro: u64) -> Result<(), Fault> {
        let checked = check_size(&outputs).and_then(|()| {
            self.handle.inner.catalog.check_outputs(&self.dispatch.spec.tool, &outputs)
        });
        let result = match checked {
            Ok(()) => Ok(outputs),
            Err(fault) => Err(AttemptError::Failed(fault, Executed::Yes)),
        };
        self.ended(AttemptReport { result, cost_micro }).await
    }

    /// Says that the attempt failed.
    pub async fn failed(&self, fault: Fault, executed: Executed) -> Result<(), Fault> {
        let result = Err(AttemptError::Failed(fault, executed));
        self.ended(AttemptReport { result, cost_micro: 0 }).await
    }

    /// Says how the attempt ended.
    pub async fn ended(&self, report: AttemptReport) -> Result<(), Fault> {
        let key = self.dispatch.run.clone();
        let attempt_id = self.dispatch.attempt_id.clone();
        let shard = key.shard();
        let input = RunInput::AttemptEnded { attempt_id, report };
        self.handle.tell(shard, Input::Run { key, input, ticket: None }).await
    }
}

fn check_size(outputs: &Object) -> Result<(), Fault> {
    if json_weight(outputs) > VALUE_BYTES_MAX {
        let message = format!("The outputs are larger than {VALUE_BYTES_MAX} bytes.");
        return Err(Fault::new(Code::ToolOutputTooLarge, message));
    }
    Ok(())
}
