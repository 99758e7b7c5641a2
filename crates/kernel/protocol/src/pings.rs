//! A rate limit on pings: how often a peer may ask for a sign of life.
//!
//! Every ping is answered, and whoever reads no answers makes the other end keep them. So pings are
//! counted, on every socket and at both ends alike. Pongs are not: they ask for nothing.

use wharf_vocab::limits::{SOCKET_PINGS_FIRST_MAX, SOCKET_PINGS_MAX, SOCKET_PINGS_MS};

/// The pings of one peer. The time is its owner's, in milliseconds from any beginning.
#[derive(Debug, Clone)]
pub struct Pings {
    max: u32,
    since_ms: u64,
    count: u32,
}

impl Pings {
    /// Why a peer that sends too many is ended, as it is told.
    pub const TOO_MANY: &str = "too many pings";

    /// A peer that need not say anything first.
    #[must_use]
    pub const fn new() -> Self {
        Self { max: SOCKET_PINGS_MAX, since_ms: 0, count: 0 }
    }

    /// A peer that has still to say what it wants.
    #[must_use]
    pub const fn of_a_stranger() -> Self {
        Self { max: SOCKET_PINGS_FIRST_MAX, since_ms: 0, count: 0 }
    }

    /// The peer has said what it wants.
    pub fn greeted(&mut self) {
        self.max = SOCKET_PINGS_MAX;
    }

    /// Counts a ping; `false` if it is one too many.
    #[must_use]
    pub fn take(&mut self, now_ms: u64) -> bool {
        if now_ms.saturating_sub(self.since_ms) >= SOCKET_PINGS_MS {
            (self.since_ms, self.count) = (now_ms, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.max
    }
}

impl Default for Pings {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_seen_and_a_steady_beat_is_not() {
        let mut pings = Pings::new();
        for ms in 0..u64::from(SOCKET_PINGS_MAX) {
            assert!(pings.take(ms), "{ms}");
        }
        assert!(!pings.take(SOCKET_PINGS_MS - 1));
        assert!(pings.take(SOCKET_PINGS_MS), "a new interval has begun");
        let mut steady = Pings::new();
        assert!((0..1_000).all(|n| steady.take(n * 200)), "five a second are no flood");
    }

    #[test]
    fn whoever_has_said_nothing_yet_may_send_few() {
        let mut pings = Pings::of_a_stranger();
        assert!((0..SOCKET_PINGS_FIRST_MAX).all(|_| pings.take(0)));
        assert!(!pings.take(0));
        pings.greeted();
        assert!((SOCKET_PINGS_FIRST_MAX + 1..SOCKET_PINGS_MAX).all(|_| pings.take(0)));
        assert!(!pings.take(0));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_opens_no_door() {
        let mut pings = Pings::new();
        assert!((0..SOCKET_PINGS_MAX).all(|_| pings.take(5_000)));
        assert!(!pings.take(0));
        assert!(!pings.take(5_000));
    }
}
