//! Bounds of a session.

/// How long a session waits, and how much it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How long the server may take to answer a request at all.
    pub ack_ms: u64,
    /// How long the server may say nothing. After half of it the server is asked for a sign of
    /// life.
    pub silence_ms: u64,
    /// How long the server may take to close the connection after the end.
    pub linger_ms: u64,
    /// Largest message.
    pub message_bytes_max: usize,
    /// Outputs that one message may have.
    pub outputs_max: usize,
    /// Longest line of the log; a longer one is cut.
    pub line_bytes_max: usize,
    /// Lines and phases that are taken per second, on average; what is more is left out and
    /// counted.
    pub lines_per_second_max: u32,
    /// Whether the server is known to number its messages before it has sent any.
    pub numbered: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ack_ms: 10_000,
            silence_ms: 15_000,
            linger_ms: 2_000,
            message_bytes_max: 8 * 1024 * 1024,
            outputs_max: 1_024,
            line_bytes_max: 64 * 1024,
            lines_per_second_max: 1_000,
            numbered: false,
        }
    }
}
