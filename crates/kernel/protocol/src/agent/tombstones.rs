//! Calls that are over, remembered for a while so that what comes late can be told from what was
//! never there. The oldest are forgotten first.

use std::collections::{BTreeMap, VecDeque};

use wharf_wire::agent_v1::CallId;

/// How a call came to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tombstone {
    /// It had its result.
    Answered,
    /// This end gave up on it before there was a result; one may still come.
    GivenUp,
}

pub(super) struct Tombstones {
    max: usize,
    order: VecDeque<CallId>,
    stones: BTreeMap<CallId, Tombstone>,
}

impl Tombstones {
    pub(super) fn new(max: usize) -> Self {
        Self { max, order: VecDeque::new(), stones: BTreeMap::new() }
    }

    pub(super) fn get(&self, call_id: &CallId) -> Option<Tombstone> {
        self.stones.get(call_id).copied()
    }

    pub(super) fn put(&mut self, call_id: CallId, stone: Tombstone) {
        if self.stones.insert(call_id.clone(), stone).is_none() {
            self.order.push_back(call_id);
        }
        while self.order.len() > self.max {
            if let Some(oldest) = self.order.pop_front() {
                self.stones.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let id = |n: usize| CallId::new(n.to_string()).expect("valid");
        let mut stones = Tombstones::new(100);
        for n in 0..1_000 {
            stones.put(id(n), Tombstone::GivenUp);
            stones.put(id(n), Tombstone::Answered);
        }
        assert_eq!(stones.stones.len(), 100);
        assert_eq!(stones.order.len(), 100);
        assert_eq!(stones.get(&id(899)), None);
        assert_eq!(stones.get(&id(900)), Some(Tombstone::Answered));
    }
}
