//! How often an agent is called, and what it may use up. A call that comes too soon is refused
//! with the time after which it may come again. How many may be open is the pool's to say.

use tokio::time::Instant;
use wharf_domain::Provider;
use wharf_domain::provider::{DefaultTerms, ProviderLimits, Rate, Usage};
use wharf_vocab::{Code, Executed, Fault, SandboxLevel};

/// What a process may use up when nobody says anything about it.
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
const PROCESSES: u64 = 256;
const OPEN_FILES: u64 = 1024;
const DISK_BYTES: u64 = 1024 * 1024 * 1024;

/// What holds for an agent: the strictest of what it keeps to itself, what its owner approved
/// it with, and what holds for all agents; and where neither of the latter says anything, at most
/// what is usual.
#[must_use]
pub fn limits(agent: &Provider, of_all: &ProviderLimits) -> ProviderLimits {
    usual(SandboxLevel::Standard, of_all).limits(agent)
}

/// What holds for whatever is launched, unless its owner says something else about it.
pub(crate) fn usual(sandbox: SandboxLevel, of_all: &ProviderLimits) -> DefaultTerms {
    let usage = Usage {
        memory_bytes: Some(MEMORY_BYTES),
        processes: Some(PROCESSES),
        open_files: Some(OPEN_FILES),
        disk_bytes: Some(DISK_BYTES),
        ..Usage::default()
    };
    let limits = ProviderLimits { usage, ..ProviderLimits::default() };
    DefaultTerms { sandbox, of_all: of_all.clone(), limits }
}

/// How many calls an agent has had of late.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When the first call came.
    since: Option<Instant>,
    /// The rate that `credit` is counted for.
    rate: Option<Rate>,
    /// What is left of the rate, in calls times the milliseconds of the rate: that many parts
    /// make one call, and each millisecond brings as many parts as the rate has calls. So nothing
    /// is lost by rounding.
    credit: u128,
    counted_at_ms: u64,
}

impl Throttle {
    /// Counts a call that has come; an error says after which time it may come again.
    fn count(&mut self, now_ms: u64, rate: Option<Rate>) -> Result<(), u64> {
        let Some(rate) = rate else {
            self.rate = None;
            return Ok(());
        };
        let (calls, one) = (u128::from(rate.count), u128::from(rate.per_ms.max(1)));
        let full = calls * one;
        if self.rate != Some(rate) {
            (self.rate, self.credit) = (Some(rate), full);
        } else {
            let passed = u128::from(now_ms.saturating_sub(self.counted_at_ms));
            self.credit = self.credit.saturating_add(passed.saturating_mul(calls)).min(full);
        }
        self.counted_at_ms = now_ms;
        match self.credit.checked_sub(one) {
            Some(rest) => {
                self.credit = rest;
                Ok(())
            }
            // A rate of nothing brings nothing, however long one waits.
            None if calls == 0 => Err(rate.per_ms.max(1)),
            None => Err(u64::try_from((one - self.credit).div_ceil(calls)).unwrap_or(u64::MAX)),
        }
    }

    /// Counts a call that has come now, or says that it comes too soon.
    pub(crate) fn count_call(&mut self, now: Instant, rate: Option<Rate>) -> Result<(), Fault> {
        let since = *self.since.get_or_insert(now);
        let now_ms = u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        self.count(now_ms, rate).map_err(|retry_after_ms| {
            Fault::new(Code::ToolRateLimited, "The agent is called more often than it may be.")
                .with("retry_after_ms", retry_after_ms)
                .executed(Executed::No)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE_A_SECOND: Option<Rate> = Some(Rate { count: 5, per_ms: 1_000 });

    #[test]
    fn a_rate_lets_a_burst_through_and_then_one_by_one() {
        let mut throttle = Throttle::default();
        for _ in 0..5 {
            assert_eq!(throttle.count(10, FIVE_A_SECOND), Ok(()));
        }
        assert_eq!(throttle.count(10, FIVE_A_SECOND), Err(200));
        assert_eq!(throttle.count(209, FIVE_A_SECOND), Err(1), "what is refused costs nothing");
        assert_eq!(throttle.count(210, FIVE_A_SECOND), Ok(()));
        assert_eq!(throttle.count(210, FIVE_A_SECOND), Err(200));
        assert_eq!(throttle.count(10_000_000, FIVE_A_SECOND), Ok(()));
        for _ in 0..4 {
            assert_eq!(throttle.count(10_000_000, FIVE_A_SECOND), Ok(()));
        }
        assert_eq!(throttle.count(10_000_000, FIVE_A_SECOND), Err(200), "no more than a burst");
    }

    #[test]
    fn no_time_is_lost_by_rounding() {
        let rate = Some(Rate { count: 3, per_ms: 1_000 });
        let mut throttle = Throttle::default();
        let taken = (0..=100_000).filter(|&ms| throttle.count(ms, rate).is_ok()).count();
        assert_eq!(taken, 3 + 300, "the burst, and three in each of a hundred seconds");
    }

    #[test]
    fn whoever_waits_as_long_as_told_gets_through() {
        for rate in [(1, 1), (1, 7), (7, 1), (13, 60_000), (u32::MAX, 3), (1, u64::MAX)] {
            let rate = Rate { count: rate.0, per_ms: rate.1 };
            let mut throttle = Throttle { rate: Some(rate), ..Throttle::default() };
            let Err(wait) = throttle.count(0, Some(rate)) else { panic!("{rate:?}") };
            assert_eq!(throttle.count(wait, Some(rate)), Ok(()), "{rate:?} after {wait}");
        }
    }

    #[test]
    fn odd_rates_and_clocks_do_no_harm() {
        let mut throttle = Throttle::default();
        assert_eq!(throttle.count(0, Some(Rate { count: 0, per_ms: 50 })), Err(50));
        assert_eq!(throttle.count(0, Some(Rate { count: 2, per_ms: 0 })), Ok(()));
        assert_eq!(throttle.count(0, None), Ok(()));
        assert_eq!(throttle.count(100, FIVE_A_SECOND), Ok(()));
        assert_eq!(throttle.count(50, FIVE_A_SECOND), Ok(()), "a clock that goes back");
        assert_eq!(throttle.count(u64::MAX, FIVE_A_SECOND), Ok(()));
    }
}
