//! The virtual clock and what is to happen when.
//!
//! Time passes only from one thing to the next. Things of one moment happen in the order in
//! which they were put down.

use std::collections::BTreeMap;

use wharf_vocab::Timestamp;

/// What is to happen, and the moment it is now.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    now: Timestamp,
    last: u64,
    items: BTreeMap<(Timestamp, u64), E>,
}

impl<E> Agenda<E> {
    pub(super) fn starting(now: Timestamp) -> Self {
        Self { now, last: 0, items: BTreeMap::new() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// Puts something down for a moment; one that has passed counts as now.
    pub(super) fn at(&mut self, at: Timestamp, item: E) {
        self.last += 1;
        self.items.insert((at.max(self.now), self.last), item);
    }

    pub(super) fn after(&mut self, ms: u64, item: E) {
        self.at(self.now.plus_ms(ms), item);
    }

    /// Goes to the next thing.
    pub(super) fn next(&mut self) -> Option<E> {
        let ((at, _), item) = self.items.pop_first()?;
        self.now = self.now.max(at);
        Some(item)
    }

    /// The clock jumps; what should have happened meanwhile happens late.
    pub(super) fn jump(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_in_order_and_late_ones_do_not_turn_the_clock_back() {
        let mut agenda = Agenda::starting(Timestamp(100));
        agenda.after(20, 'b');
        agenda.after(10, 'a');
        agenda.after(20, 'c');
        assert_eq!(agenda.next(), Some('a'));
        assert_eq!(agenda.now(), Timestamp(110));
        agenda.jump(1_000);
        agenda.at(Timestamp(5), 'd');
        assert_eq!(agenda.next(), Some('b'));
        assert_eq!(agenda.next(), Some('c'));
        assert_eq!(agenda.next(), Some('d'));
        assert_eq!((agenda.next(), agenda.now()), (None, Timestamp(1_110)));
    }
}
