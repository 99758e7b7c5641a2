//! How the edge is set up.

use std::time::Duration;

use wharf_engine::Handle;
use wharf_protocol::operator::SeatLimits;
use wharf_vocab::limits::RECHECK_MS;

use crate::directive;

/// How the edge is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine.
    pub handle: Handle,
    /// The address under which workers reach the core.
    pub base_url: String,
    /// What an operator is told with every spawn.
    pub directive: String,
    /// Limits and times of a seat's connection.
    pub limits: SeatLimits,
    /// How long a seat may be away before it is given up.
    pub away_max: Duration,
    /// Seats at once.
    pub seats_max: usize,
    /// How often it is looked whether the tokens that seats were made with are still good.
    pub recheck: Duration,
}

impl Options {
    /// The usual.
    pub fn new(handle: Handle, base_url: impl Into<String>) -> Self {
        Self {
            handle,
            base_url: base_url.into(),
            directive: directive::USUAL.to_owned(),
            limits: SeatLimits::default(),
            away_max: Duration::from_secs(24 * 60 * 60),
            seats_max: 4_096,
            recheck: Duration::from_millis(RECHECK_MS),
        }
    }
}
