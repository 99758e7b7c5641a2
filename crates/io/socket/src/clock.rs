//! The time of a connection.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use wharf_protocol::Moment;
use wharf_vocab::Timestamp;

/// Counts the milliseconds since a connection began.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Now, on this clock and on the calendar of the machine.
    #[must_use]
    pub fn now(self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.moment(Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Now, on this clock and on another calendar.
    #[must_use]
    pub fn moment(self, at: Timestamp) -> Moment {
        Moment::new(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX), at)
    }
}

/// Sleeps until an instant, or for ever if there is none.
pub async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
