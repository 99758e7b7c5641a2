//! The clock, read only at the rim.

mod steady;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use wharf_vocab::Timestamp;

pub use steady::{Sources, SteadyClock};

/// Says what time it is.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// The moment it is now.
    fn now(&self) -> Timestamp;

    /// The moment it is now for what must not be used any more after a moment that somebody
    /// chose: the latest that any clock of the machine says.
    fn latest(&self) -> Timestamp {
        self.now()
    }

    /// Milliseconds that have passed since a moment of the clock's own choice. Nobody sets them,
    /// and time in which the machine slept counts.
    fn passed_ms(&self) -> u64 {
        self.now().0
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands still until it is moved by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows this moment.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
