//! From the shell to providers: attempts are handed over, or their runs wait for room; what a
//! provider loses on the way is told to the shard at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime;
use tokio::sync::mpsc::error::TrySendError;
use wharf_domain::Availability;
use wharf_domain::run::{AttemptError, AttemptReport, RunInput};
use wharf_ports::{Dispatch, Lifeline, ProviderSink, RoomFor, WeakLifeline};
use wharf_vocab::{AttemptId, Code, Executed, Fault, ProviderId, RunKey, ShardId};

use super::{Shell, ShellMessage};
use crate::admission;
use crate::book::Taken;
use crate::catalog::not_found;
use crate::held::HeldBytes;
use crate::shard::Input;

impl Shell {
    pub(super) fn dispatch(&mut self, shard: ShardId, dispatch: Dispatch) {
        let (key, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        let (reattach, provider) = (dispatch.reattach, dispatch.spec.provider());
        let passes = reattach || self.turns.may_pass(&provider, &key);
        self.turns.remove(&provider, &key);
        let taken = self.book.take(&dispatch.effect, &key, &attempt_id, WeakLifeline::default());
        let handed_over = if taken == Taken::Old || (taken == Taken::Known && !reattach) {
            return;
        } else if passes {
            self.begin(dispatch)
        } else {
            // Whoever came before it has its turn before it.
            let message = format!("Other runs wait for {provider} already.");
            Err((Fault::new(Code::ToolBusy, message), Executed::No))
        };
        if let Err((fault, executed)) = handed_over {
            let input = if reattach && is_away(&fault) {
                if taken == Taken::New {
                    // It is not at work here, so whoever loads its shard anew takes it up again.
                    self.book.over(&key, &attempt_id);
                }
                Input::Detached { key, attempt_id }
            } else {
                // An attempt that is to be taken up again may well have begun before.
                let executed = if reattach { Executed::Maybe } else { executed };
                ended(key, attempt_id, fault, executed)
            };
            self.queue.push_back((shard, input));
        }
    }

    /// Hands an attempt to its provider; what it takes is held until nobody works on it any more.
    pub(super) fn hand_over(
        &mut self,
        dispatch: Dispatch,
        held: Option<HeldBytes>,
    ) -> Result<(), (Fault, Executed)> {
        let parts = &self.parts;
        let never = |fault: Fault| (fault, Executed::No);
        admission::check_dispatch(&parts.catalog, &parts.records, &dispatch).map_err(never)?;
        let provider = dispatch.spec.provider();
        let sink = parts.catalog.sink(&provider);
        let sink = sink.ok_or_else(|| never(not_found(&dispatch.spec.tool)))?;
        let lifeline = self.lifeline(&dispatch, held);
        let Dispatch { run, accepted, spec, attempt, .. } = &dispatch;
        let trace = parts.traces.headers(run, *accepted, spec, *attempt);
        let (key, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        let tied = Dispatch { lifeline: lifeline.clone(), trace, ..dispatch };
        match guarded(&provider, || sink.dispatch(tied)) {
            Some(Ok(())) => {
                self.book.keep(&key, &attempt_id, lifeline.downgrade());
                Ok(())
            }
            Some(Err(fault)) => {
                lifeline.told();
                Err(never(fault))
            }
            None => {
                lifeline.told();
                let message = "The tool's provider failed inside when it was given the call.";
                Err((Fault::new(Code::ToolInternal, message), Executed::Maybe))
            }
        }
    }

    /// Ties an attempt to whoever works on it. One that is handed over again is tied to whoever
    /// has it.
    fn lifeline(&self, dispatch: &Dispatch, held: Option<HeldBytes>) -> Lifeline {
        let known = self.book.kept(&dispatch.run, &dispatch.attempt_id);
        if let Some(lifeline) = known.and_then(|weak| weak.upgrade()) {
            return lifeline;
        }
        let messages = self.parts.messages.clone();
        let stopping = Arc::clone(&self.parts.stopping);
        let (key, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        let reattach = dispatch.reattach;
        let runtime = runtime::Handle::current();
        Lifeline::new(move |executed| {
            let _held = &held;
            // What has not ended when the core stops is taken up again at its next start.
            let (Some(messages), false) = (messages.upgrade(), stopping.load(Ordering::SeqCst))
            else {
                return;
            };
            let executed = if reattach { Executed::Maybe } else { executed };
            let message = "Whoever worked on the call is gone without a word.";
            let fault = Fault::new(Code::ToolWorkerLost, message);
            let input = Box::new(ended(key.clone(), attempt_id.clone(), fault, executed));
            let message =
                ShellMessage::Input { shard: key.shard(), input, answer: None, room: None };
            if let Err(TrySendError::Full(message)) = messages.try_send(message) {
                runtime.spawn(async move {
                    // When the engine is gone there is nobody left to tell.
                    let _ = messages.send(message).await;
                });
            }
        })
    }

    /// Lets those begin whose turn it is, and tells shards where runs have to wait.
    pub(super) fn call_turns(&mut self) {
        self.note_full();
        if self.full.is_empty() {
            return;
        }
        let (now, catalog) = (self.parts.clock.now(), Arc::clone(&self.parts.catalog));
        let mut turns = std::mem::take(&mut self.turns);
        let called = turns.call(now, |turn, called| {
            let provider = turn.spec.provider();
            let wanted = RoomFor { run: &turn.run, spec: &turn.spec, called };
            // As the runs themselves know it. The catalog may know better already, and a run that
            // is called by that goes back in line at once, to be called again without an end.
            self.providers.availability(&provider) == Availability::Up
                && self.would_hold(&turn.run, &turn.spec)
                && catalog.sink(&provider).is_some_and(|sink| {
                    guarded(&provider, || sink.has_room(&wanted)).unwrap_or(false)
                })
        });
        self.turns = turns;
        for key in called {
            let shard = key.shard();
            let input = Input::Run { key, input: RunInput::Turn, ticket: None };
            self.queue.push_back((shard, input));
        }
    }

    /// Shards let runs wait that would have to wait anyway, without beginning an attempt.
    fn note_full(&mut self) {
        let begun: Vec<_> =
            self.turns.full().filter(|id| !self.full.contains(*id)).cloned().collect();
        let over: Vec<_> = self.full.iter().filter(|id| !self.turns.is_full(id)).cloned().collect();
        for (provider, full) in
            begun.into_iter().map(|id| (id, true)).chain(over.into_iter().map(|id| (id, false)))
        {
            self.providers.set_full(&provider, full);
            if full {
                self.full.insert(provider)
            } else {
                self.full.remove(&provider)
            };
        }
    }

    /// Tells a provider something, if it is there.
    pub(super) fn tell_sink(&self, provider: &ProviderId, tell: impl FnOnce(&dyn ProviderSink)) {
        if let Some(sink) = self.parts.catalog.sink(provider) {
            // One that fails inside has lost what it was told; its attempts end by themselves.
            let _ = guarded(provider, || tell(&*sink));
        }
    }
}

/// Calls a provider; `None` if it panicked, which must not take the core with it.
fn guarded<T>(provider: &ProviderId, call: impl FnOnce() -> T) -> Option<T> {
    let called = catch_unwind(AssertUnwindSafe(call));
    if called.is_err() {
        tracing::error!(%provider, "a provider's sink panicked");
    }
    called.ok()
}

/// Whether a provider did not take an attempt because it is not there, and may come back.
fn is_away(fault: &Fault) -> bool {
    fault.is(Code::ToolUnavailable) || fault.is(Code::ToolAgentLost)
}

pub(super) fn ended(key: RunKey, attempt_id: AttemptId, fault: Fault, executed: Executed) -> Input {
    let result = Err(AttemptError::Failed(fault, executed));
    let report = AttemptReport::new(result, 0);
    Input::Run { key, input: RunInput::AttemptEnded { attempt_id, report }, ticket: None }
}
