//! Limits and times of a seat's connection.

/// Limits and times of a seat's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatLimits {
    /// How often the core pings.
    pub ping_ms: u64,
    /// How long nothing may come before the seat counts as away.
    pub silence_ms: u64,
    /// Violations within a minute after which the connection is closed.
    pub violations_max: usize,
    /// Largest frame of an operator.
    pub frame_bytes_max: usize,
    /// Most that may wait to be read by an operator, in bytes.
    pub queue_bytes_max: usize,
    /// Replies that are remembered so that a repeated one is known.
    pub replies_kept_max: usize,
}

impl Default for SeatLimits {
    fn default() -> Self {
        Self {
            ping_ms: 30_000,
            silence_ms: 90_000,
            violations_max: 20,
            frame_bytes_max: 1024 * 1024,
            queue_bytes_max: 4 * 1024 * 1024,
            replies_kept_max: 4_096,
        }
    }
}
