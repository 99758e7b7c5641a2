//! Runs of durability `memory`: all there is of them is here, since no store has them. Finished
//! ones are kept for a while, bounded in number and in bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use wharf_domain::{Ask, Run};
use wharf_ports::{Batch, HistoryRecord};
use wharf_vocab::limits::{MEMORY_RUNS_KEPT_BYTES_MAX, MEMORY_RUNS_KEPT_MAX};
use wharf_vocab::{AskId, RunKey, Seq};

use super::records;
use crate::held::HeldBytes;

/// Runs that only memory knows.
#[derive(Debug, Default)]
pub(super) struct MemoryRuns {
    runs: HashMap<RunKey, MemoryRun>,
    /// How many there have been.
    count: u64,
    /// Those that are over, oldest first.
    over: VecDeque<RunKey>,
    over_bytes: u64,
    /// Which of them raised an ask.
    asks: HashMap<AskId, RunKey>,
}

#[derive(Debug)]
struct MemoryRun {
    /// Its number in the order in which such runs were accepted, from 1.
    number: u64,
    run: Arc<Run>,
    batches: Vec<Arc<Batch>>,
    /// About how many bytes the batches take.
    batches_bytes: u64,
    /// What it takes while it is open.
    held: Option<HeldBytes>,
}

impl MemoryRun {
    fn bytes(&self) -> u64 {
        self.run.weight() + self.batches_bytes
    }
}

impl MemoryRuns {
    /// Takes up what a run wrote; says whether it takes too much by now.
    pub(super) fn remember(
        &mut self,
        batch: &Arc<Batch>,
        run: &Arc<Run>,
        hold: impl FnOnce() -> HeldBytes,
    ) -> bool {
        let count = &mut self.count;
        let memory = self.runs.entry(run.key.clone()).or_insert_with(|| {
            *count += 1;
            let (run, held) = (Arc::clone(run), Some(hold()));
            MemoryRun { number: *count, run, batches: Vec::new(), batches_bytes: 0, held }
        });
        let was_over = memory.run.is_over() && !memory.batches.is_empty();
        memory.run = Arc::clone(run);
        memory.batches.push(Arc::clone(batch));
        memory.batches_bytes += batch.weight();
        for raised in &run.asks {
            self.asks.insert(raised.ask.spec.ask_id.clone(), run.key.clone());
        }
        let bytes = memory.bytes();
        if run.is_over() {
            memory.held = None;
            if !was_over {
                self.over.push_back(run.key.clone());
                self.over_bytes += bytes;
                self.forget_oldest();
            }
            return false;
        }
        memory.held.as_mut().is_some_and(|held| {
            held.set(bytes);
            held.is_too_much()
        })
    }

    fn forget_oldest(&mut self) {
        while self.over.len() > MEMORY_RUNS_KEPT_MAX
            || (self.over_bytes > MEMORY_RUNS_KEPT_BYTES_MAX && self.over.len() > 1)
        {
            let Some(key) = self.over.pop_front() else { return };
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &RunKey) -> bool {
        let Some(memory) = self.runs.remove(key) else { return false };
        if memory.run.is_over() {
            self.over_bytes = self.over_bytes.saturating_sub(memory.bytes());
        }
        for raised in &memory.run.asks {
            self.asks.remove(&raised.ask.spec.ask_id);
        }
        true
    }

    /// Forgets a run; another one may come to have the same name.
    pub(super) fn forget(&mut self, key: &RunKey) -> bool {
        self.over.retain(|over| over != key);
        self.remove(key)
    }

    /// Forgets open runs that do not stay.
    pub(super) fn keep_open(&mut self, stays: impl Fn(&RunKey, &Run) -> bool) {
        let goes = |(key, memory): (&RunKey, &MemoryRun)| {
            (!memory.run.is_over() && !stays(key, &memory.run)).then(|| key.clone())
        };
        for key in self.runs.iter().filter_map(goes).collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    pub(super) fn run(&self, key: &RunKey) -> Option<&Arc<Run>> {
        self.runs.get(key).map(|memory| &memory.run)
    }

    /// All with their numbers, newest first.
    pub(super) fn all(&self) -> Vec<(u64, Arc<Run>)> {
        let numbered = |memory: &MemoryRun| (memory.number, Arc::clone(&memory.run));
        let mut runs: Vec<_> = self.runs.values().map(numbered).collect();
        runs.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        runs
    }

    /// A run and the number of the last thing it wrote.
    pub(super) fn with_seq(&self, key: &RunKey) -> Option<(Arc<Run>, Seq)> {
        let memory = self.runs.get(key)?;
        let records = memory.batches.iter().rev().flat_map(|batch| records(batch, key, Seq(0)));
        let seq = records.map(|record| record.seq).max().unwrap_or(Seq(0));
        Some((Arc::clone(&memory.run), seq))
    }

    /// What a run has written behind `after`; `None` if it is not here.
    pub(super) fn history(&self, key: &RunKey, after: Seq) -> Option<Vec<HistoryRecord>> {
        let memory = self.runs.get(key)?;
        Some(memory.batches.iter().flat_map(|batch| records(batch, key, after)).collect())
    }

    /// An ask that one of them raised.
    pub(super) fn ask(&self, id: &AskId) -> Option<Ask> {
        let run = self.run(self.asks.get(id)?)?;
        run.asks.iter().find(|raised| raised.ask.spec.ask_id == *id).map(|it| it.ask.clone())
    }

    /// Asks of theirs that nobody has decided, those of the newest run first.
    pub(super) fn open_asks(&self) -> Vec<Ask> {
        let open = |memory: &&MemoryRun| memory.run.open_asks().next().is_some();
        let mut runs: Vec<_> = self.runs.values().filter(open).collect();
        runs.sort_by_key(|memory| std::cmp::Reverse(memory.number));
        let asks = runs.iter().flat_map(|memory| memory.run.open_asks());
        asks.map(|raised| raised.ask.clone()).collect()
    }
}
