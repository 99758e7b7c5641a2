//! One run of the book.

use std::collections::BTreeSet;

use wharf_vocab::Digest;

use super::speech::Speech;
use super::{Credential, RunNo, WatcherNo};

/// What names a run: who asked, the world it belongs to, its id, and which attempt.
pub(super) type Name = (Credential, Option<String>, String, u32);

#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Name,
    pub(super) digest: Digest,
    pub(super) speech: Speech,
    pub(super) watchers: BTreeSet<WatcherNo>,
    pub(super) stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is waited for or executed. When nobody watches, since when.
    Open { alone_since_ms: Option<u64>, is_canceled: bool },
    /// Its final response is there.
    Ended { at_ms: u64 },
}

/// A reader of a run: a position in what the run says.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) run: RunNo,
    /// The index of the frame it gets next.
    pub(super) next: usize,
    /// What was there when it came; only what comes behind counts as waiting for it.
    pub(super) live_from: usize,
    pub(super) waiting_bytes: usize,
    pub(super) is_slow: bool,
}

impl Record {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended { .. })
    }
}
