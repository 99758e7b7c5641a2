//! Trouble that goes on, as the log tells of it: at once, then how often once a minute, and when it
//! is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a trouble that goes on is told.
const EVERY: Duration = Duration::from_secs(60);

/// What has failed since it last worked.
#[derive(Debug, Default)]
pub struct Trouble(Option<Since>);

#[derive(Debug)]
struct Since {
    began: Instant,
    told: Instant,
    last: Instant,
    failed: u64,
    untold: u64,
}

/// A trouble that many meet at once, and that is told for all of them together.
#[derive(Debug, Clone, Default)]
pub struct SharedTrouble(Arc<Mutex<Trouble>>);

impl SharedTrouble {
    /// It failed for one of them; see [`Trouble::failed`].
    pub fn failed(&self) -> Option<u64> {
        self.0.lock().failed()
    }

    /// It worked for one of them, while it may fail for others; see [`Trouble::calm`].
    pub fn calm(&self) -> Option<TroubleOver> {
        self.0.lock().calm()
    }
}

/// A trouble that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TroubleOver {
    /// How often it failed.
    pub failed: u64,
    /// For how long.
    pub seconds: u64,
}

impl Trouble {
    /// It failed: how often since that was last told, if it is to be told now.
    pub fn failed(&mut self) -> Option<u64> {
        self.count(Instant::now())
    }

    /// It worked: what is over, if it failed before.
    pub fn over(&mut self) -> Option<TroubleOver> {
        self.0.as_ref()?;
        self.end(Instant::now())
    }

    /// It worked, which says little: what is over, if it has not failed for a minute either. For
    /// what fails and works in turn, such as a full disk, which still takes what is small.
    pub fn calm(&mut self) -> Option<TroubleOver> {
        self.end_if_calm(Instant::now())
    }

    fn end_if_calm(&mut self, now: Instant) -> Option<TroubleOver> {
        let since = self.0.as_ref()?;
        if now.duration_since(since.last) < EVERY { None } else { self.end(now) }
    }

    fn count(&mut self, now: Instant) -> Option<u64> {
        let Some(since) = &mut self.0 else {
            self.0 = Some(Since { began: now, told: now, last: now, failed: 1, untold: 0 });
            return Some(1);
        };
        since.failed += 1;
        since.last = now;
        since.untold += 1;
        if now.duration_since(since.told) < EVERY {
            return None;
        }
        since.told = now;
        Some(std::mem::take(&mut since.untold))
    }

    fn end(&mut self, now: Instant) -> Option<TroubleOver> {
        let since = self.0.take()?;
        let seconds = now.duration_since(since.began).as_secs();
        Some(TroubleOver { failed: since.failed, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_told_at_once_then_once_a_minute_and_when_it_is_over() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(trouble.end(at(0)), None, "there is none");
        assert_eq!(trouble.count(at(0)), Some(1));
        for second in 1..60 {
            assert_eq!(trouble.count(at(second)), None);
        }
        assert_eq!(trouble.count(at(60)), Some(60));
        assert_eq!(trouble.count(at(61)), None);
        assert_eq!(trouble.end(at(75)), Some(TroubleOver { failed: 62, seconds: 75 }));
        assert_eq!(trouble.end(at(76)), None, "told once");
        assert_eq!(trouble.count(at(77)), Some(1), "another one");
    }
    #[test]
    fn what_fails_and_works_in_turn_is_over_when_it_only_works() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(trouble.end_if_calm(at(0)), None, "there is none");
        assert_eq!(trouble.count(at(0)), Some(1));
        assert_eq!(trouble.end_if_calm(at(30)), None);
        assert_eq!(trouble.count(at(40)), None);
        assert_eq!(trouble.end_if_calm(at(99)), None);
        assert_eq!(trouble.end_if_calm(at(100)), Some(TroubleOver { failed: 2, seconds: 100 }));
        assert_eq!(trouble.end_if_calm(at(101)), None, "told once");
    }
}
