//! Several steps at once: branches side by side, and a step for every item of a list.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Fault, Micro, Timestamp};

use super::super::machine::{Ctx, Machine};
use super::super::{LongList, StepValue};
use super::{End, Halt, Next, StepNode, StepOutcome, as_item, listed, nothing};
use crate::flow::{Each, OnError, Parallel, ParallelMode};

/// Branches side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct ParallelFrame<C = Box<StepNode>> {
    /// Those that are not over, by their numbers.
    pub(in super::super) live: BTreeMap<usize, C>,
    pub(in super::super) lot: Lot,
}

/// A step for every item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct EachFrame<C = Box<StepNode>> {
    pub(in super::super) items: Arc<Vec<Arc<Value>>>,
    /// The next item that has not begun.
    pub(in super::super) next: usize,
    /// Those that are under way, by their numbers.
    pub(in super::super) live: BTreeMap<usize, C>,
    pub(in super::super) lot: Lot,
}

/// What has become of several steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Lot {
    /// Whether anything looks at what they gave.
    keeps: bool,
    /// What those gave that are over, by their numbers.
    done: LongList<Option<StepValue>>,
    /// Why it is to end before all are done.
    stop: Option<Box<End>>,
    last_failure: Option<Fault>,
    failed: usize,
    cost_micro: Micro,
}

impl Lot {
    fn new(keeps: bool) -> Self {
        let (done, stop, last_failure) = (LongList::default(), None, None);
        Self { keeps, done, stop, last_failure, failed: 0, cost_micro: 0 }
    }

    fn keep(&mut self, at: usize, value: StepValue) {
        if self.keeps {
            self.done.set(at, Some(value), || None);
        }
    }

    /// About how many bytes it takes in memory.
    pub(in super::super) fn weight(&self) -> u64 {
        let empty = size_of::<Option<StepValue>>() as u64;
        self.done.iter().map(|value| value.as_ref().map_or(empty, StepValue::weight)).sum()
    }

    /// Takes what a step ended with; `true` if the others are to stop.
    fn take(&mut self, at: usize, ended: StepOutcome, (any, on_error): (bool, OnError)) -> bool {
        self.cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
        let stop = match ended.end {
            End::Done(value) => {
                self.keep(at, value);
                if !any {
                    return false;
                }
                End::Done(nothing())
            }
            End::Failed(fault) if any || on_error == OnError::Collect => {
                self.failed += 1;
                self.keep(at, as_item(&fault));
                self.last_failure = Some(fault);
                return false;
            }
            End::Canceled => return false,
            end => end,
        };
        let first = self.stop.is_none();
        if first {
            self.stop = Some(Box::new(stop));
        }
        first
    }

    fn end(&mut self, count: usize, any: bool, canceling: bool) -> Next {
        let all = || listed(&self.done, count);
        let end = match (self.stop.take().map(|end| *end), &self.last_failure) {
            (Some(End::Done(_)), _) => End::Done(all()),
            (Some(end), _) => end,
            (None, _) if canceling => End::Canceled,
            (None, Some(fault)) if any && self.failed == count => End::Failed(fault.clone()),
            (None, _) => End::Done(all()),
        };
        Next::Over(StepOutcome { end, cost_micro: self.cost_micro })
    }
}

impl ParallelFrame {
    pub(super) fn begin(def: &Parallel, at: Timestamp) -> Self {
        let nodes = def.branches.iter().map(|step| Box::new(StepNode::begin(step, at)));
        Self { live: nodes.enumerate().collect(), lot: Lot::new(true) }
    }

    pub(super) fn cancel(&mut self, halt: Halt) {
        self.live.values_mut().for_each(|node| node.cancel(halt));
    }

    pub(super) fn go_on(
        &mut self,
        m: &mut Machine<'_, '_>,
        def: &Parallel,
        cx: &Ctx,
        canceling: bool,
    ) -> Next {
        let any = def.mode == ParallelMode::Any;
        let numbers: Vec<usize> = self.live.keys().copied().collect();
        let mut stopped = false;
        for at in numbers {
            let (Some(node), Some(step)) = (self.live.get_mut(&at), def.branches.get(at)) else {
                continue;
            };
            let Some(ended) = node.poll(m, step, cx) else { continue };
            self.live.remove(&at);
            stopped |= self.lot.take(at, ended, (any, def.on_error));
        }
        if stopped && !self.live.is_empty() {
            self.cancel(Halt::Steps);
            return Next::Again;
        }
        if self.live.is_empty() {
            return self.lot.end(def.branches.len(), any, canceling);
        }
        Next::Wait
    }
}

impl EachFrame {
    pub(super) fn new(items: Vec<Value>, keeps: bool) -> Self {
        let items = Arc::new(items.into_iter().map(Arc::new).collect());
        Self { items, next: 0, live: BTreeMap::new(), lot: Lot::new(keeps) }
    }

    pub(super) fn cancel(&mut self, halt: Halt) {
        self.live.values_mut().for_each(|node| node.cancel(halt));
    }

    pub(super) fn go_on(
        &mut self,
        m: &mut Machine<'_, '_>,
        def: &Each,
        path: &str,
        cx: &Ctx,
        canceling: bool,
    ) -> Next {
        let numbers: Vec<usize> = self.live.keys().copied().collect();
        let mut stopped = false;
        for at in numbers {
            stopped |= self.poll_one(m, def, path, cx, at);
        }
        while !stopped && !canceling && self.lot.stop.is_none() {
            let full = self.live.len() >= usize::try_from(def.concurrency).unwrap_or(1).max(1);
            if full || self.next >= self.items.len() {
                break;
            }
            let at = self.next;
            self.next += 1;
            self.live.insert(at, Box::new(StepNode::begin(&def.step, m.at)));
            stopped |= self.poll_one(m, def, path, cx, at);
        }
        if stopped && !self.live.is_empty() {
            self.cancel(Halt::Steps);
            return Next::Again;
        }
        if self.live.is_empty() {
            return self.lot.end(self.items.len(), false, canceling);
        }
        Next::Wait
    }

    /// `true` if the others are to stop.
    fn poll_one(
        &mut self,
        m: &mut Machine<'_, '_>,
        def: &Each,
        path: &str,
        cx: &Ctx,
        at: usize,
    ) -> bool {
        let (Some(node), Some(item)) = (self.live.get_mut(&at), self.items.get(at)) else {
            return false;
        };
        let below = cx.item(path, at as u64, (&def.bind, item));
        let Some(ended) = node.poll(m, &def.step, &below) else { return false };
        self.live.remove(&at);
        m.prune(&below.prefix);
        self.lot.take(at, ended, (false, def.on_error))
    }
}
