//! Taking a shard over: from a restart of this core, or from a core that is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use wharf_domain::run::{AttemptError, AttemptReport, RunInput};
use wharf_domain::{Availability, LedgerOp, Run};
use wharf_ports::Batch;
use wharf_vocab::{AttemptId, Code, Executed, Fault, HoldId, RunKey, Seq, Timestamp};

use super::records::{AnyRecord, RecordSlot};
use super::runs::is_called_off;
use super::slot::Slot;
use super::{Effect, Input, Output, Shard};
use crate::book::Adoption;

/// Runs that are looked up at once; beyond it the whole shard is loaded anew.
const IN_DOUBT_MAX: usize = 1024;

/// How long an attempt waits before it is offered again to a provider that has just refused it
/// although it is there.
const REATTACH_AGAIN_MS: u64 = 1_000;

/// What the store holds of a shard.
#[derive(Debug, Default)]
pub struct StoredShard {
    /// Its open runs, each with the number of its last entry.
    pub runs: Vec<(Run, Seq)>,
    /// Its worlds, providers, grants and seats, each with the number of its last entry.
    pub records: Vec<(AnyRecord, Seq)>,
    /// Its open holds.
    pub holds: Vec<HoldId>,
    /// The open children of its runs, wherever they are, each behind its parent.
    pub children: Vec<(RunKey, RunKey)>,
}

impl Shard {
    /// Takes up what the store holds. Afterwards [`Shard::outstanding`] says what is to be done.
    pub fn restore(&mut self, restored: StoredShard) {
        for (record, seq) in restored.records {
            self.records.insert(record.stream(), RecordSlot::loaded(record, seq));
        }
        for (run, seq) in restored.runs {
            self.take_up(run, seq);
        }
        self.unchecked_holds = restored.holds;
        self.unchecked_children = restored.children;
    }

    /// What a crash may have left undone: attempts to be asked for at their places, children their
    /// parents must know of, and money held for runs that are gone.
    pub fn outstanding(&mut self, now: Timestamp) -> Output {
        self.fresh.set_now(now);
        let mut out = Output::default();
        let keys: Vec<RunKey> = self.runs_where(|_| true);
        self.release_orphans(now, &mut out);
        self.meet_children(&mut out);
        for key in keys {
            self.take_on(now, &key, &mut out);
        }
        out
    }

    /// Goes on with a run that was read from the store.
    fn take_on(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        let Some(run) = self.runs.get(key).and_then(|slot| slot.run.clone()) else { return };
        if let Some(slot) = self.runs.get_mut(key) {
            slot.recheck_at = super::flows::recheck_at(&run, now);
            self.reschedule(key);
        }
        if let Some(parent) = run.spec.parent.clone() {
            let (to, child) = (parent.shard(), run.key.clone());
            let input = Input::Child { parent, child, began: true };
            out.effects.push(Effect::Send { to, input: Box::new(input) });
        }
        match &run.active {
            // What is being published is gone on with in any case; twice is harmless.
            Some(active) if run.publishing.is_none() => out.effects.push(Effect::Adopt {
                place: active.place.clone(),
                key: key.clone(),
                attempt_id: active.id.clone(),
                epoch: self.epoch,
            }),
            _ => self.offer(now, key, RunInput::Recovered, None, out),
        }
    }

    /// Goes on with a run whose attempt was under way when the shard was loaded, by what the
    /// attempt's place says.
    pub(super) fn adopted(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        attempt_id: AttemptId,
        found: Adoption,
        out: &mut Output,
    ) {
        let Some(run) = self.runs.get(key).and_then(|slot| slot.run.clone()) else { return };
        let active = |run: &Arc<Run>| run.active.as_ref().is_some_and(|it| it.id == attempt_id);
        if !active(&run) {
            return;
        }
        if matches!(found, Adoption::Working | Adoption::NeverBegun)
            && let Some(slot) = self.runs.get_mut(key)
        {
            // A place that is gone by now has answered late.
            if slot.taken_up.as_ref() == Some(&attempt_id) {
                return;
            }
            slot.at_one_place = Some(attempt_id.clone());
        }
        match found {
            Adoption::Working | Adoption::TakenUp => {
                let mut at = self.runs.get(key).and_then(|slot| slot.at.clone());
                let effects = self.outward(&run, run.reminders(), &mut at);
                out.effects.extend(effects);
            }
            Adoption::NeverBegun => {
                let message = "The attempt was never handed over; its core went on without it.";
                let fault = Fault::new(Code::ToolAgentLost, message);
                let failed = AttemptError::Failed(fault, Executed::No);
                let report = AttemptReport::new(Err(failed), 0);
                self.offer(now, key, RunInput::AttemptEnded { attempt_id, report }, None, out);
            }
            Adoption::Gone => self.offer(now, key, RunInput::Recovered, None, out),
        }
    }

    /// An attempt waits to be taken up again until its provider is there, within its own time. Its
    /// provider may be back before anybody knew here that it was gone, so it is also looked for.
    pub(super) fn detached(&mut self, now: Timestamp, key: &RunKey, attempt_id: &AttemptId) {
        let Some(slot) = self.runs.get_mut(key) else { return };
        let waits = slot.latest().is_some_and(|run| {
            let active = run.active.as_ref();
            run.publishing.is_none() && active.is_some_and(|active| active.id == *attempt_id)
        });
        if waits {
            slot.detached = true;
            slot.recheck_at = Some(now.plus_ms(REATTACH_AGAIN_MS));
            self.reschedule(key);
        }
    }

    /// Takes an attempt up again whose provider is there.
    pub(super) fn reattach(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        let Some(slot) = self.runs.get_mut(key).filter(|slot| slot.detached) else { return };
        slot.recheck_at = None;
        if self.providers.availability(&slot.provider) == Availability::Up {
            self.offer(now, key, RunInput::Recovered, None, out);
        }
    }

    /// Runs remember their children again. Whoever was here before may have been gone before it
    /// called off the children of a run that was called off.
    fn meet_children(&mut self, out: &mut Output) {
        for (parent, child) in std::mem::take(&mut self.unchecked_children) {
            match self.runs.get_mut(&parent) {
                // A flow knows its steps from its own entries.
                Some(slot) if slot.is_flow() => {}
                Some(slot) => {
                    slot.children.insert(child);
                }
                None => out.effects.push(Effect::AskAfterParent { parent, child }),
            }
        }
        for key in self.runs_where(|slot| slot.latest().is_some_and(|run| is_called_off(run))) {
            let children = self.runs.get(&key).into_iter().flat_map(|slot| &slot.children);
            out.effects.extend(children.map(Effect::cancel_child));
        }
    }

    /// Runs in memory hold real money; when they are gone, what they had reported is booked and
    /// the rest is given back.
    fn release_orphans(&mut self, now: Timestamp, out: &mut Output) {
        let active = |slot: &Slot| {
            let attempt = slot.run.as_ref()?.active.as_ref()?;
            Some(attempt.hold.as_ref()?.hold.clone())
        };
        let wanted: BTreeSet<HoldId> = self.runs.values().filter_map(active).collect();
        let mut orphans = std::mem::take(&mut self.unchecked_holds);
        orphans.retain(|hold| !wanted.contains(hold));
        self.move_money(now, orphans.into_iter().map(|hold| LedgerOp::Release { hold }), out);
    }

    /// Gives money back that is held for nobody; a hold that was never taken does no harm.
    pub(super) fn give_back(&mut self, now: Timestamp, holds: Vec<HoldId>, out: &mut Output) {
        let settle = |hold| LedgerOp::Settle { hold, spent: 0 };
        self.move_money(now, holds.into_iter().map(settle), out);
    }

    /// Moves money that no run waits for.
    pub(super) fn move_money(
        &mut self,
        now: Timestamp,
        ops: impl Iterator<Item = LedgerOp>,
        out: &mut Output,
    ) {
        let ledger: Vec<_> = ops.collect();
        if !ledger.is_empty() {
            let batch = Batch { ledger, ..self.batch(now) };
            self.send_nobodys(batch, out);
        }
    }

    /// Asks what the store holds of a run, after a commit that may have been made or not.
    pub(super) fn look_up(&mut self, key: &RunKey, out: &mut Output) {
        if self.in_doubt.len() >= IN_DOUBT_MAX {
            out.effects.push(Effect::Reload);
        } else if self.in_doubt.insert(key.clone()) {
            out.effects.push(Effect::LookUp { key: key.clone(), epoch: self.epoch });
        }
    }

    /// Takes up a run that was made although the store had said that it was not. What the store
    /// and the shard tell differently is loaded anew.
    pub(super) fn looked_up(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        found: Option<(Box<Run>, Seq)>,
        out: &mut Output,
    ) {
        self.in_doubt.remove(key);
        match (self.runs.get_mut(key), found) {
            (None, Some((run, seq))) if !run.is_over() => {
                self.take_up(*run, seq);
                self.take_on(now, key, out);
            }
            // Whoever asked for a step may not have heard that it is over.
            (None, Some((run, _))) => {
                let parent = run.spec.parent.as_ref();
                out.effects.extend(parent.and_then(|it| super::flows::step_over(&run, it)));
            }
            // What becomes of the batch on its way will show it.
            (Some(slot), Some(_)) if slot.pending.is_some() => slot.doubtful = true,
            (Some(slot), Some((_, seq))) if slot.seq != seq => out.effects.push(Effect::Reload),
            _ => {}
        }
    }

    pub(super) fn take_up(&mut self, run: Run, seq: Seq) {
        let key = run.key.clone();
        for raised in run.open_asks() {
            self.asks.insert(raised.ask.spec.ask_id.clone(), key.clone());
        }
        self.insert(key.clone(), Slot::loaded(run, seq));
        self.reschedule(&key);
    }
}
