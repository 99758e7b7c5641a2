//! Pauses that grow between tries of something that may work later.

use std::time::Duration;

/// Pauses between tries: each is twice as long as the one before, up to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Nothing has failed yet.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// How long the next pause is.
    #[must_use]
    pub const fn peek(&self) -> Duration {
        self.next
    }

    /// A try failed: how long to pause before the next.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }

    /// A try worked: pauses begin with the first again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(50), ms(180));
        let pauses: Vec<_> = std::iter::from_fn(|| Some(backoff.pause())).take(4).collect();
        assert_eq!(pauses, [ms(50), ms(100), ms(180), ms(180)]);
        backoff.reset();
        assert_eq!((backoff.peek(), backoff.pause()), (ms(50), ms(50)));
        let mut endless = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!((endless.pause(), endless.pause()), (Duration::MAX, Duration::MAX));
    }
}
