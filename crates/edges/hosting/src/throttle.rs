//! How much an agent is asked at once and in a time.
//!
//! [`Throttle`] decides and knows no clock of its own; [`Gate`] is the one place that all
//! connections of an agent pass. A call that comes too soon is refused with the time after which
//! it may come again; one that finds all places taken waits for one to become free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use wharf_domain::Provider;
use wharf_domain::provider::{ProviderLimits, Rate, Usage, Usual};
use wharf_vocab::{Code, Executed, Fault, ProviderId, SandboxLevel};

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
pub(crate) fn usual(sandbox: SandboxLevel, of_all: &ProviderLimits) -> Usual {
    let usage = Usage {
        memory_bytes: Some(MEMORY_BYTES),
        processes: Some(PROCESSES),
        open_files: Some(OPEN_FILES),
        disk_bytes: Some(DISK_BYTES),
        ..Usage::default()
    };
    let limits = ProviderLimits { usage, ..ProviderLimits::default() };
    Usual { sandbox, of_all: of_all.clone(), limits }
}

/// How many calls an agent has had and has.
#[derive(Debug, Default)]
struct Throttle {
    /// The rate that `credit` is counted for.
    rate: Option<Rate>,
    /// What is left of the rate, in calls times the milliseconds of the rate: that many parts
    /// make one call, and each millisecond brings as many parts as the rate has calls. So nothing
    /// is lost by rounding.
    credit: u128,
    counted_at_ms: u64,
    open: u32,
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

    /// Takes a place for a call, if one is free.
    fn enter(&mut self, calls_max: u32) -> bool {
        let free = self.open < calls_max.max(1);
        self.open += u32::from(free);
        free
    }

    fn leave(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}

/// The gates of all agents.
#[derive(Debug, Default)]
pub struct Gates(Mutex<HashMap<ProviderId, Arc<Gate>>>);

impl Gates {
    /// The gate of one provider.
    #[must_use]
    pub fn of(&self, id: &ProviderId) -> Arc<Gate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry(id.clone()).or_insert_with(|| Arc::new(Gate::new())))
    }
}

/// What all calls of one agent pass, over whichever connection they go.
#[derive(Debug)]
pub struct Gate {
    started: Instant,
    throttle: Mutex<Throttle>,
    freed: Notify,
}

impl Gate {
    fn new() -> Self {
        Self { started: Instant::now(), throttle: Mutex::default(), freed: Notify::new() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Throttle) -> T) -> T {
        work(&mut self.throttle.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a call that has come, or says that it comes too soon.
    pub fn count(&self, rate: Option<Rate>) -> Result<(), Fault> {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.with(|throttle| throttle.count(now_ms, rate)).map_err(|retry_after_ms| {
            Fault::new(Code::ToolRateLimited, "The agent is called more often than it may be.")
                .with("retry_after_ms", retry_after_ms)
                .executed(Executed::No)
        })
    }

    /// Takes a place for a call, if one is free. It is given back when the place is dropped.
    #[must_use]
    pub fn enter(self: &Arc<Self>, calls_max: u32) -> Option<Place> {
        let entered = self.with(|throttle| throttle.enter(calls_max));
        entered.then(|| Place(Arc::clone(self)))
    }

    /// Waits until a place may have become free.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Lets another connection look for a place.
    pub fn pass_on(&self) {
        self.freed.notify_one();
    }
}

/// A call's place; others wait for it.
#[derive(Debug)]
pub struct Place(Arc<Gate>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.with(Throttle::leave);
        self.0.pass_on();
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

    #[tokio::test]
    async fn a_place_is_given_back_when_its_call_is_over() {
        let gates = Gates::default();
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let (one, other) = (gates.of(&id), gates.of(&id));
        let first = one.enter(2).expect("free");
        let second = other.enter(2).expect("free");
        assert!(one.enter(2).is_none(), "both connections share the places");
        assert!(one.enter(3).is_some(), "a limit that was raised holds at once");
        drop(first);
        one.freed().await;
        assert!(one.enter(2).is_some());
        drop(second);
        assert!(gates.of(&ProviderId::new("dev.example.other").expect("valid")).enter(0).is_some());
    }
}
