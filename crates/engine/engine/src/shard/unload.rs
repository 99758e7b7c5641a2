//! What a shard that is loaded anew takes with it: what was said to it and is not written down.

use std::collections::BTreeSet;
use std::sync::Arc;

use wharf_domain::run::RunInput;
use wharf_domain::{Progress, Run};
use wharf_vocab::{Durability, Epoch, RunKey, Seq, Timestamp};

use super::slot::{Cause, Slot, WaitingInput};
use super::{Output, Shard};

/// What was said to a shard and is not written down: how attempts ended, what they wrote, and
/// runs that are kept in memory only. Whoever waits for an answer asks again.
#[derive(Debug, Clone, Default)]
pub struct UnloadedShard {
    /// The epoch in which it was left.
    epoch: Epoch,
    runs: Vec<LeftRun>,
}

#[derive(Debug, Clone)]
struct LeftRun {
    key: RunKey,
    /// The number of the last entry or piece of progress that was known to be committed.
    seq: Seq,
    /// What a batch on its way would have written, and the number it would have led to.
    on_its_way: Option<(Seq, Vec<Progress>)>,
    /// What waited to be written.
    progress: Vec<Progress>,
    /// What nobody waits for the answer of.
    inputs: Vec<RunInput>,
    /// Its children, of which a store knows only those that it keeps.
    children: BTreeSet<RunKey>,
    /// The run itself, if no store has it.
    memory: Option<Run>,
}

impl Shard {
    /// Gives up the shard and says what is to be taken to the next one.
    pub fn unload(mut self) -> UnloadedShard {
        let keys = self.runs_where(|slot| slot.run.is_some());
        let slots = keys.into_iter().filter_map(|key| Some((self.runs.remove(&key)?, key)));
        let mut runs: Vec<_> = slots.map(|(slot, key)| left(key, slot)).collect();
        // What runs that are over have cost is still being looked up.
        for (key, costs) in std::mem::take(&mut self.finding) {
            let unheard = costs.into_iter().filter(|cost| cost.ticket.is_none());
            runs.push(LeftRun {
                key,
                seq: Seq(0),
                on_its_way: None,
                progress: Vec::new(),
                inputs: unheard.map(|cost| cost.input).collect(),
                children: BTreeSet::new(),
                memory: None,
            });
        }
        UnloadedShard { epoch: self.epoch, runs }
    }

    /// Takes what an earlier life of the shard left, after [`Shard::restore`].
    pub fn take_left(&mut self, now: Timestamp, left: UnloadedShard) -> Output {
        self.fresh.set_now(now);
        let mut out = Output::default();
        // Money that is held for runs in memory is given back by whoever takes over between.
        let next = left.epoch.0 + 1 == self.epoch.0;
        for mut run in left.runs.into_iter().filter(|run| next || run.memory.is_none()) {
            if !next {
                // Whoever took over between was told of ends that are not known here.
                run.children.clear();
            }
            self.take_left_run(now, run, &mut out);
        }
        out
    }

    fn take_left_run(&mut self, now: Timestamp, left: LeftRun, out: &mut Output) {
        let LeftRun { key, seq, on_its_way, progress, inputs, children, memory } = left;
        if let Some(run) = memory {
            self.take_up(run, seq);
        }
        let Some(slot) = self.runs.get_mut(&key) else {
            // It is over, and only what it has cost still counts.
            for input in inputs {
                self.offer(now, &key, input, None, out);
            }
            return;
        };
        slot.children.extend(children);
        let (at, before) = (slot.seq, slot.progress.waiting_bytes());
        match on_its_way {
            // The batch was not made, so what it would have written waits as before.
            Some((_, pieces)) if at == seq => {
                slot.progress.put_back([pieces, progress].concat());
            }
            Some((next, _)) if at == next => slot.progress.put_back(progress),
            None if at == seq => slot.progress.put_back(progress),
            // Somebody else has gone on with it.
            _ => {}
        }
        self.progress_waiting_bytes += slot.progress.waiting_bytes() - before;
        for input in inputs {
            self.offer(now, &key, input, None, out);
        }
        self.pump(now, &key, out);
    }
}

fn left(key: RunKey, mut slot: Slot) -> LeftRun {
    let mut inputs = Vec::new();
    let mut on_its_way = None;
    if let Some(pending) = slot.pending.take() {
        on_its_way = Some((pending.next_seq, pending.progress()));
        if let Cause::Input(WaitingInput { input, ticket: None, .. }) = pending.cause {
            inputs.push(input);
        }
    }
    let waiting = slot.waiting.into_iter().filter(|waiting| waiting.ticket.is_none());
    inputs.extend(waiting.map(|waiting| waiting.input));
    // What is to be gone on with is found out anew.
    inputs.retain(|input| *input != RunInput::Recovered);
    let kept = |run: &Arc<Run>| run.spec.durability == Durability::Memory && !run.is_over();
    let in_memory = slot.run.filter(kept);
    LeftRun {
        key,
        seq: slot.seq,
        on_its_way,
        progress: slot.progress.take().0,
        inputs,
        children: slot.children,
        memory: in_memory.map(|run| Run::clone(&run)),
    }
}
