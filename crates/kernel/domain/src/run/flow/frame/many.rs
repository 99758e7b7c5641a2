//! Several steps at once: branches side by side, and a step for every item of a list.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::{Fault, Micro, Timestamp};

use super::super::machine::{Ctx, Machine};
use super::{End, Halt, Next, StepNode, StepOutcome, as_item, listed};
use crate::flow::{Each, OnError, Parallel, ParallelMode};

/// Branches side by side.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ParallelFrame {
    /// Those that are not over, by their numbers.
    pub(in super::super) live: BTreeMap<usize, StepNode>,
    lot: Lot,
}

/// A step for every item of a list.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct EachFrame {
    pub(in super::super) items: Arc<Vec<Arc<Value>>>,
    /// The next item that has not begun.
    next: usize,
    /// Those that are under way, by their numbers.
    pub(in super::super) live: BTreeMap<usize, StepNode>,
    lot: Lot,
}

/// What has become of several steps.
#[derive(Debug, Clone, PartialEq, Default)]
struct Lot {
    done: BTreeMap<usize, Arc<Value>>,
    /// Why it is to end before all are done.
    stop: Option<Box<End>>,
    last_failure: Option<Fault>,
    failed: usize,
    cost_micro: Micro,
}

impl Lot {
    /// Takes what a step ended with; `true` if the others are to stop.
    fn take(&mut self, at: usize, ended: StepOutcome, (any, on_error): (bool, OnError)) -> bool {
        self.cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
        let stop = match ended.end {
            End::Done(value) => {
                self.done.insert(at, value);
                if !any {
                    return false;
                }
                End::Done(Arc::new(Value::Null))
            }
            End::Failed(fault) if any || on_error == OnError::Collect => {
                self.failed += 1;
                self.done.insert(at, as_item(&fault));
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
        let live = def.branches.iter().map(|step| StepNode::begin(step, at)).enumerate().collect();
        Self { live, lot: Lot::default() }
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
    pub(super) fn new(_def: &Each, items: Vec<Value>) -> Self {
        let items = Arc::new(items.into_iter().map(Arc::new).collect());
        Self { items, next: 0, live: BTreeMap::new(), lot: Lot::default() }
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
            self.live.insert(at, StepNode::begin(&def.step, m.at));
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
