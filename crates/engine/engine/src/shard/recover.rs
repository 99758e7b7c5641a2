//! Taking a shard over: from a restart of this core, or from a core that is gone.

use std::collections::BTreeSet;

use wharf_domain::run::RunInput;
use wharf_domain::{LedgerOp, Run};
use wharf_ports::Batch;
use wharf_vocab::{AttemptId, HoldId, RunKey, Seq, ShardId, Timestamp};

use super::records::{AnyRecord, RecordSlot};
use super::slot::Slot;
use super::{Effect, Input, Output, Shard};

/// Runs that are looked up at once; beyond it the whole shard is loaded anew.
const IN_DOUBT_MAX: usize = 1024;

/// What the store holds of a shard.
#[derive(Debug, Default)]
pub struct StoredShard {
    /// Its open runs, each with the number of its last entry.
    pub runs: Vec<(Run, Seq)>,
    /// Its worlds, providers, grants and seats, each with the number of its last entry.
    pub records: Vec<(AnyRecord, Seq)>,
    /// Its open holds.
    pub holds: Vec<HoldId>,
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
    }

    /// What a crash may have left undone: attempts to be taken up again or given up, children
    /// their parents must know of, and money held for runs that are gone. Attempts that somebody
    /// of this core still works on just go on.
    pub fn outstanding(
        &mut self,
        now: Timestamp,
        is_living: impl Fn(&RunKey, &AttemptId) -> bool,
    ) -> Output {
        self.fresh.set_now(now);
        let mut out = Output::default();
        let keys: Vec<RunKey> = self.runs_where(|_| true);
        self.release_orphans(now, &mut out);
        for key in keys {
            let run = self.runs.get(&key).and_then(|slot| slot.run.clone());
            let active = run.as_ref().and_then(|run| run.active.as_ref());
            match (&run, active) {
                // What is being published is gone on with in any case; twice is harmless.
                (Some(run), Some(active))
                    if run.publishing.is_none() && is_living(&key, &active.id) =>
                {
                    self.known_to_parent(run, &mut out);
                    let effects = self.outward(run, run.reminders());
                    out.effects.extend(effects);
                }
                _ => self.resume(now, &key, &mut out),
            }
        }
        out
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
                self.resume(now, key, out);
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

    /// Makes a run known to its parent and goes on with it.
    fn resume(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        if let Some(run) = self.runs.get(key).and_then(|slot| slot.run.clone()) {
            self.known_to_parent(&run, out);
        }
        self.offer(now, key, RunInput::Recovered, None, out);
    }

    fn known_to_parent(&self, run: &Run, out: &mut Output) {
        if let Some(parent) = run.spec.parent.clone() {
            let (to, child) = (parent.shard(), run.key.clone());
            let input = Input::Child { parent, child, began: true };
            out.effects.push(Effect::Send { to, input: Box::new(input) });
        }
    }

    /// News of this shard's open runs for their parents in a shard that was loaded anew and has
    /// forgotten its children.
    pub fn children_of(&self, loaded: ShardId) -> Vec<Effect> {
        let is_child = |slot: &Slot| parent_of(slot).is_some_and(|key| key.shard() == loaded);
        let children = self.runs_where(is_child);
        let news = |child: RunKey| {
            let parent = self.runs.get(&child).and_then(parent_of)?.clone();
            let input = Input::Child { parent, child, began: true };
            Some(Effect::Send { to: loaded, input: Box::new(input) })
        };
        children.into_iter().filter_map(news).collect()
    }
}

/// The parent of a run whose creation is committed.
fn parent_of(slot: &Slot) -> Option<&RunKey> {
    slot.run.as_ref()?.spec.parent.as_ref()
}
