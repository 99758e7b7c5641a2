//! How fast a server may talk.

/// Lets so many lines per second pass, and a second's worth at once.
#[derive(Debug)]
pub(super) struct LogPace {
    per_second: u64,
    /// Thousandths of a line that may pass.
    left: u64,
    at: u64,
    dropped: u64,
}

impl LogPace {
    pub(super) fn new(per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self { per_second, left: per_second * 1000, at: 0, dropped: 0 }
    }

    /// Whether a line may pass at this millisecond; if it may, also how many were left out before
    /// it.
    pub(super) fn pass(&mut self, now: u64) -> Result<Option<u64>, ()> {
        let gained = now.saturating_sub(self.at).saturating_mul(self.per_second);
        self.at = self.at.max(now);
        self.left = self.left.saturating_add(gained).min(self.per_second * 1000);
        if self.left < 1000 {
            self.dropped += 1;
            return Err(());
        }
        self.left -= 1000;
        Ok(self.rest())
    }

    /// How many were left out and not told yet.
    pub(super) fn rest(&mut self) -> Option<u64> {
        match std::mem::take(&mut self.dropped) {
            0 => None,
            dropped => Some(dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_fast_is_left_out_and_counted() {
        let mut pace = LogPace::new(10);
        let passed = (0..100).filter(|_| pace.pass(5).is_ok()).count();
        assert_eq!(passed, 10);
        assert_eq!(pace.pass(104), Err(()), "not yet");
        assert_eq!(pace.pass(105), Ok(Some(91)));
        assert_eq!(pace.pass(105), Err(()));
        assert_eq!(pace.rest(), Some(1));
        assert_eq!(pace.rest(), None);
    }
}
