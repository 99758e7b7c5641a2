//! Notices: what a seat is told about an attempt that it let pass.
//!
//! A notice is owed from the commit that ends the attempt until a connection of the seat has taken
//! it, across restarts. It names what happened; outputs are read from the run when it is sent.

use serde::{Deserialize, Serialize};
use wharf_vocab::{AskId, Fault, RunKey, SeatId, ToolId};

use crate::run::TaskRef;

/// What a seat is told about an attempt that it let pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The approval that let the attempt pass; the notice is known by it.
    pub ask_id: AskId,
    /// The seat that was asked.
    pub seat: SeatId,
    /// The run.
    pub run: RunKey,
    /// The tool of that run.
    pub tool: ToolId,
    /// The attempt.
    pub task: TaskRef,
    /// Why the attempt did not succeed, without details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

/// What is written about a notice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum NoticeEntry {
    /// It is owed.
    Owed(Box<Notice>),
    /// It is owed no more.
    Over(NoticeOver),
}

/// A notice is owed no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeOver {
    /// Why.
    pub how: NoticeEnd,
}

/// Why a notice is owed no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeEnd {
    /// The seat has it.
    Taken,
    /// There were too many, or the seat or the run is gone.
    Dropped,
}

impl Notice {
    /// Reads a notice back from its stream; `None` once it is owed no more.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a NoticeEntry>) -> Option<Self> {
        entries.into_iter().fold(None, |_, entry| match entry {
            NoticeEntry::Owed(notice) => Some(Self::clone(notice)),
            NoticeEntry::Over(_) => None,
        })
    }
}
