//! A rate limit on registrations: how often what a provider offers may change. Each change is
//! written down and audited, so a peer that changes its tools in a loop would fill the disk.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use wharf_vocab::Timestamp;
use wharf_vocab::limits::{OFFER_EVERY_MS, OFFERS_AT_ONCE_MAX};

use super::ProviderCalls;

/// Names that are remembered before those that have not changed for long are forgotten.
const NAMES_MAX: usize = 1_024;

/// What has changed lately, by the names of those who offer.
#[derive(Debug, Default)]
pub(super) struct Offers(Mutex<HashMap<String, Changes>>);

#[derive(Debug)]
struct Changes {
    lately: u64,
    since: Timestamp,
}

impl Changes {
    fn refill(&mut self, now: Timestamp) {
        let passed = now.ms_since(self.since) / OFFER_EVERY_MS;
        if passed > 0 {
            self.lately = self.lately.saturating_sub(passed);
            self.since = self.since.plus_ms(passed * OFFER_EVERY_MS);
        }
    }
}

impl Offers {
    /// Takes one change, or says when there may be one.
    fn take(&self, name: &str, now: Timestamp) -> Result<(), Duration> {
        let mut all = self.0.lock();
        if all.len() >= NAMES_MAX && !all.contains_key(name) {
            all.retain(|_, changes| {
                changes.refill(now);
                changes.lately > 0
            });
        }
        let new = || Changes { lately: 0, since: now };
        let changes = all.entry(name.to_owned()).or_insert_with(new);
        changes.refill(now);
        if changes.lately >= OFFERS_AT_ONCE_MAX {
            let next = changes.since.plus_ms(OFFER_EVERY_MS);
            return Err(Duration::from_millis(next.ms_since(now).max(1)));
        }
        if changes.lately == 0 {
            changes.since = now;
        }
        changes.lately += 1;
        Ok(())
    }
}

impl ProviderCalls<'_> {
    /// Whether what somebody offers may change once more now; if not, when it may.
    pub fn may_offer(self, name: &str) -> Result<(), Duration> {
        self.0.inner.offers.take(name, self.0.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_changes_so_often_at_once_and_then_slowly() {
        let offers = Offers::default();
        let taken =
            |at: u64| (0..1_000).filter(|_| offers.take("a", Timestamp(at)).is_ok()).count();
        assert_eq!(taken(1_000) as u64, OFFERS_AT_ONCE_MAX);
        let wait = offers.take("a", Timestamp(2_000)).expect_err("too often");
        assert_eq!(wait, Duration::from_millis(OFFER_EVERY_MS - 1_000));
        offers.take("b", Timestamp(2_000)).expect("each for itself");
        assert_eq!(taken(1_000 + 3 * OFFER_EVERY_MS), 3);
    }

    #[test]
    fn names_that_change_nothing_are_forgotten() {
        let offers = Offers::default();
        for n in 0..3 * NAMES_MAX as u64 {
            let now = Timestamp(n * OFFER_EVERY_MS);
            offers.take(&format!("n{n}"), now).expect("its first");
        }
        assert!(offers.0.lock().len() <= NAMES_MAX);
    }
}
