//! What time it is, for machines that are told.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use wharf_protocol::Moment;
use wharf_vocab::Timestamp;

/// A clock that never goes back, beside the calendar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { origin: Instant::now() }
    }

    pub(super) fn now(self) -> Moment {
        let ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Moment::new(ms, Timestamp(at))
    }

    /// The instant of a deadline; without one, a time that does not come.
    pub(super) fn instant(self, deadline_ms: Option<u64>) -> Instant {
        const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
        self.origin + deadline_ms.map_or(NEVER + self.origin.elapsed(), Duration::from_millis)
    }
}
