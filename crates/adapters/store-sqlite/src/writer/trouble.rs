//! Writes that fail, as the log tells of them: the first at once, then how many once a minute, and
//! when it is over.

use std::time::{Duration, Instant};

use wharf_ports::StoreError;

/// How often a trouble that goes on is told.
const EVERY: Duration = Duration::from_secs(60);

/// Writes that have failed since one last succeeded.
#[derive(Debug, Default)]
pub(super) struct WriteTrouble(Option<Since>);

#[derive(Debug)]
struct Since {
    began: Instant,
    told: Instant,
    failed: u64,
    untold: u64,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tale {
    /// Nothing, for now.
    None,
    /// A write failed, and so did so many since this was last told.
    Failing { failed: u64 },
    /// Writes are taken again, after so many failed.
    Over { failed: u64, seconds: u64 },
}

impl WriteTrouble {
    /// A write failed.
    pub(super) fn failed(&mut self, error: &StoreError) {
        if let Tale::Failing { failed } = self.count(Instant::now()) {
            tracing::warn!(kind = ?error.kind, error = %error, failed, "writes to the store fail");
        }
    }

    /// A write succeeded.
    pub(super) fn succeeded(&mut self) {
        if let Tale::Over { failed, seconds } = self.end(Instant::now()) {
            tracing::info!(failed, seconds, "the store takes writes again");
        }
    }

    fn count(&mut self, now: Instant) -> Tale {
        let Some(since) = &mut self.0 else {
            self.0 = Some(Since { began: now, told: now, failed: 1, untold: 0 });
            return Tale::Failing { failed: 1 };
        };
        since.failed += 1;
        since.untold += 1;
        if now.duration_since(since.told) < EVERY {
            return Tale::None;
        }
        since.told = now;
        Tale::Failing { failed: std::mem::take(&mut since.untold) }
    }

    fn end(&mut self, now: Instant) -> Tale {
        match self.0.take() {
            None => Tale::None,
            Some(since) => {
                let seconds = now.duration_since(since.began).as_secs();
                Tale::Over { failed: since.failed, seconds }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_told_at_once_then_once_a_minute_and_when_it_is_over() {
        let (mut trouble, start) = (WriteTrouble::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(trouble.end(at(0)), Tale::None, "there is none");
        assert_eq!(trouble.count(at(0)), Tale::Failing { failed: 1 });
        for second in 1..60 {
            assert_eq!(trouble.count(at(second)), Tale::None);
        }
        assert_eq!(trouble.count(at(60)), Tale::Failing { failed: 60 });
        assert_eq!(trouble.count(at(61)), Tale::None);
        assert_eq!(trouble.end(at(75)), Tale::Over { failed: 62, seconds: 75 });
        assert_eq!(trouble.end(at(76)), Tale::None, "told once");
        assert_eq!(trouble.count(at(77)), Tale::Failing { failed: 1 }, "another one");
    }
}
