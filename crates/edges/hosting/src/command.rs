//! What the core wants of whoever speaks with a process, and how that may end.

use wharf_domain::Resolution;
use wharf_engine::Dispatch;
use wharf_vocab::AttemptId;

/// What the core wants of a connection.
#[derive(Debug)]
pub enum Command {
    /// Make a call of an attempt.
    Call(Box<Dispatch>),
    /// Stop an attempt.
    Cancel {
        /// The attempt.
        attempt_id: AttemptId,
        /// Why, as people read it.
        reason: String,
        /// How long it may take to end.
        grace_ms: u64,
    },
    /// Pass on how an ask ended.
    Answer {
        /// The attempt that asked.
        attempt_id: AttemptId,
        /// Its name for the ask.
        key: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// End in order: calls may still finish within this time.
    Goodbye {
        /// Why.
        reason: &'static str,
        /// How long calls may take.
        drain_ms: u64,
        /// Whether the core starts another process in its place at once.
        again: bool,
    },
}

/// How a connection to a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// It is over; how its process ends says why.
    Over,
    /// For this reason; its process is ended in order.
    Because(String),
    /// For this reason; its process is past hearing and is ended at once.
    Unresponsive(String),
}
