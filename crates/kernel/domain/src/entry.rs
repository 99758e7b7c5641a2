//! One entry of any stream.

use wharf_vocab::StreamKind;

use crate::run::Created;
use crate::{
    AskEntry, GrantEntry, NoticeEntry, ProviderEntry, RunEntry, RunSpec, SeatEntry, WorldEntry,
};

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
    Provider(Box<ProviderEntry>),
    /// Of a seat.
    Seat(SeatEntry),
    /// Of a grant.
    Grant(GrantEntry),
    /// Of a notice.
    Notice(NoticeEntry),
}

impl Entry {
    /// The entry as recovery reads it: without large inputs of a run, which its stream has.
    #[must_use]
    pub fn lean(self) -> Self {
        match self {
            Self::Run(RunEntry::Created(created)) => {
                let spec = RunSpec::lean(&created.spec);
                Self::Run(RunEntry::Created(Created { spec, ..created }))
            }
            other => other,
        }
    }

    /// Whether earlier entries of its kind in its stream need not be kept whole: see
    /// [`Entry::replaced`].
    #[must_use]
    pub fn replaces_earlier(&self) -> bool {
        match self {
            Self::Provider(entry) => entry.replaces_earlier(),
            Self::Seat(SeatEntry::Offered(offered)) => offered.replaced.is_none(),
            _ => false,
        }
    }

    /// Whether a later entry has taken its place.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        match self {
            Self::Provider(entry) => entry.is_replaced(),
            Self::Seat(SeatEntry::Offered(offered)) => offered.replaced.is_some(),
            _ => false,
        }
    }

    /// What is kept of an entry when a later one takes its place; `None` if it stays as it is.
    #[must_use]
    pub fn replaced(&self) -> Option<Self> {
        match self {
            Self::Provider(entry) => entry.replaced().map(|entry| Self::Provider(Box::new(entry))),
            Self::Seat(entry) => entry.replaced().map(Self::Seat),
            _ => None,
        }
    }

    /// The kind of stream the entry belongs to.
    #[must_use]
    pub fn stream_kind(&self) -> StreamKind {
        match self {
            Self::Run(_) => StreamKind::Run,
            Self::Ask(_) => StreamKind::Ask,
            Self::World(_) => StreamKind::World,
            Self::Provider(_) => StreamKind::Provider,
            Self::Seat(_) => StreamKind::Seat,
            Self::Grant(_) => StreamKind::Grant,
            Self::Notice(_) => StreamKind::Notice,
        }
    }
}
