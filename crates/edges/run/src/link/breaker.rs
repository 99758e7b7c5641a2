//! Leaving a server alone that cannot be reached.

use std::time::Duration;

use tokio::time::Instant;

/// Counts connections that could not be made. After so many in a row the server is left alone;
/// after a rest one more is tried, and its success lets all others through again.
#[derive(Debug)]
pub(super) struct Breaker {
    failures_max: u32,
    rest: Duration,
    failures: u32,
    open: Option<BreakerRest>,
}

#[derive(Debug)]
struct BreakerRest {
    until: Instant,
    why: String,
}

impl Breaker {
    pub(super) fn new(failures_max: u32, rest: Duration) -> Self {
        Self { failures_max: failures_max.max(1), rest, failures: 0, open: None }
    }

    /// Why nobody may try now; `None` if one may. Whoever is the first after a rest tries for all.
    pub(super) fn refuses(&mut self, now: Instant) -> Option<String> {
        let open = self.open.as_mut()?;
        if now < open.until {
            return Some(open.why.clone());
        }
        open.until = now + self.rest;
        None
    }

    /// A connection was made; whether that is news.
    pub(super) fn succeeded(&mut self) -> bool {
        self.failures = 0;
        self.open.take().is_some()
    }

    /// A connection could not be made; whether the server is left alone from now on.
    pub(super) fn failed(&mut self, now: Instant, why: &str) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < self.failures_max {
            return false;
        }
        let was_open = self.open.is_some();
        self.open = Some(BreakerRest { until: now + self.rest, why: why.to_owned() });
        !was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(10);

    #[test]
    fn t042_a_server_that_cannot_be_reached_is_left_alone_and_tried_by_one_after_a_rest() {
        let mut breaker = Breaker::new(3, REST);
        let now = Instant::now();
        assert!(!breaker.failed(now, "a"));
        assert!(!breaker.failed(now, "b"));
        assert_eq!(breaker.refuses(now), None);
        assert!(breaker.failed(now, "c"), "it is left alone from now on");
        assert_eq!(breaker.refuses(now), Some("c".to_owned()));
        let later = now + REST;
        assert_eq!(breaker.refuses(later), None, "one may try");
        assert_eq!(breaker.refuses(later), Some("c".to_owned()), "and no other");
        assert!(!breaker.failed(later, "d"), "that is no news");
        assert_eq!(breaker.refuses(later), Some("d".to_owned()));
        assert_eq!(breaker.refuses(later + REST), None);
        assert!(breaker.succeeded());
        assert_eq!(breaker.refuses(later + REST), None);
    }

    #[test]
    fn t042_failures_count_only_in_a_row() {
        let mut breaker = Breaker::new(2, REST);
        let now = Instant::now();
        for _ in 0..5 {
            assert!(!breaker.failed(now, "x"));
            assert!(!breaker.succeeded());
        }
        assert_eq!(breaker.refuses(now), None);
    }
}
