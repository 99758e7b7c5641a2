//! The numbers of a tool server, and which dialect it writes.

use wharf_wire::run_v1::{self as wire, Frame};

/// What a tool server bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take to send its request.
    pub first_frame_ms: u64,
    /// After how much silence a connection is sent a sign of life.
    pub keep_alive_ms: u64,
    /// Largest frame, in both directions.
    pub frame_bytes_max: usize,
    /// What may wait for a reader before it counts as slow. A run never waits for readers. Of a
    /// text that grows only what is new counts, as it is kept.
    pub queue_bytes_max: usize,
    /// What a run may give as partial and final outputs.
    pub output_bytes_max: usize,
    /// What a run may say as lines and events; more is left out.
    pub log_bytes_max: usize,
    /// How long a run that ended can be asked for.
    pub retain_ms: u64,
    /// What all runs that ended may hold.
    pub retain_bytes_max: usize,
    /// How long a run goes on while nobody watches it.
    pub grace_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_frame_ms: 10_000,
            keep_alive_ms: 9_000,
            frame_bytes_max: wire::limits::FRAME_BYTES_MAX,
            queue_bytes_max: 8 * 1024 * 1024,
            output_bytes_max: 16 * 1024 * 1024,
            log_bytes_max: 1024 * 1024,
            retain_ms: 3_600_000,
            retain_bytes_max: 32 * 1024 * 1024,
            grace_ms: 30_000,
        }
    }
}

/// Which dialect a server writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// The protocol and nothing else.
    #[default]
    Default,
    /// Also what peers of the half-migrated wire look for.
    Upstream,
}

impl Profile {
    /// The text of a frame.
    #[must_use]
    pub fn encode(self, frame: &Frame) -> String {
        match self {
            Self::Default => wire::encode(frame),
            Self::Upstream => wire::encode_upstream(frame),
        }
    }
}
