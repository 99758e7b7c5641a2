//! One entry of any stream.

use wharf_vocab::StreamKind;

use crate::{AgentEntry, AskEntry, GrantEntry, NoticeEntry, RunEntry, SeatEntry, WorldEntry};

/// One entry of any stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// Of a run.
    Run(RunEntry),
    /// Of an ask.
    Ask(AskEntry),
    /// Of a world.
    World(WorldEntry),
    /// Of an agent.
    Agent(Box<AgentEntry>),
    /// Of a seat.
    Seat(SeatEntry),
    /// Of a grant.
    Grant(GrantEntry),
    /// Of a notice.
    Notice(NoticeEntry),
}

impl Entry {
    /// The kind of stream the entry belongs to.
    #[must_use]
    pub fn stream_kind(&self) -> StreamKind {
        match self {
            Self::Run(_) => StreamKind::Run,
            Self::Ask(_) => StreamKind::Ask,
            Self::World(_) => StreamKind::World,
            Self::Agent(_) => StreamKind::Agent,
            Self::Seat(_) => StreamKind::Seat,
            Self::Grant(_) => StreamKind::Grant,
            Self::Notice(_) => StreamKind::Notice,
        }
    }
}
