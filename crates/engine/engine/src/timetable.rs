//! Which schedule is due when, and which changed.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wharf_vocab::{ScheduleId, Timestamp};

/// Schedules that changed and were not looked at since.
#[derive(Debug, Default)]
pub(crate) struct ScheduleNews {
    changed: Mutex<BTreeSet<ScheduleId>>,
    wake: Notify,
}

impl ScheduleNews {
    /// A schedule is to be looked at.
    pub(crate) fn tell(&self, id: ScheduleId) {
        self.changed.lock().insert(id);
        self.wake.notify_one();
    }

    /// What is to be looked at.
    pub(crate) fn take(&self) -> BTreeSet<ScheduleId> {
        std::mem::take(&mut *self.changed.lock())
    }

    /// Waits until there is something to look at.
    pub(crate) async fn come(&self) {
        self.wake.notified().await;
    }
}

/// The next time of each schedule that has one.
#[derive(Debug, Default)]
pub(crate) struct Timetable {
    order: BTreeSet<(Timestamp, ScheduleId)>,
    times: HashMap<ScheduleId, Timestamp>,
}

impl Timetable {
    /// Says when a schedule is due next, if it is.
    pub(crate) fn set(&mut self, id: &ScheduleId, next: Option<Timestamp>) {
        if let Some(before) = self.times.remove(id) {
            self.order.remove(&(before, id.clone()));
        }
        if let Some(next) = next {
            self.times.insert(id.clone(), next);
            self.order.insert((next, id.clone()));
        }
    }

    /// A schedule whose time has come; it has none from then on until that is said.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<ScheduleId> {
        let (at, id) = self.order.first().cloned()?;
        if at > now {
            return None;
        }
        self.set(&id, None);
        Some(id)
    }

    /// When the next schedule is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ScheduleId {
        ScheduleId::new(name).expect("valid")
    }

    #[test]
    fn f033_what_is_due_comes_in_order_and_once() {
        let mut table = Timetable::default();
        table.set(&id("b"), Some(Timestamp(20)));
        table.set(&id("a"), Some(Timestamp(10)));
        table.set(&id("c"), Some(Timestamp(30)));
        table.set(&id("c"), Some(Timestamp(15)));
        table.set(&id("b"), None);
        assert_eq!(table.pop(Timestamp(9)), None);
        assert_eq!(table.next(), Some(Timestamp(10)));
        assert_eq!(table.pop(Timestamp(40)), Some(id("a")));
        assert_eq!(table.pop(Timestamp(40)), Some(id("c")));
        assert_eq!((table.pop(Timestamp(40)), table.next()), (None, None));
    }

    #[test]
    fn f033_news_of_one_schedule_is_told_once() {
        let news = ScheduleNews::default();
        news.tell(id("a"));
        news.tell(id("a"));
        assert_eq!(news.take().into_iter().collect::<Vec<_>>(), [id("a")]);
        assert!(news.take().is_empty());
    }
}
