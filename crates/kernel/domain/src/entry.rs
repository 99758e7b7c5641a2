//! One entry of any stream.

use crate::flow::FlowEntry;
use crate::run::Created;
use crate::run::flow::FlowRunEntry;
use crate::trigger::FiringEntry;
use crate::{
    AskEntry, GrantEntry, NoticeEntry, NotificationEntry, ProviderEntry, ReceiverEntry, RunEntry,
    RunSpec, ScheduleEntry, SeatEntry, TriggerEntry, WorldEntry,
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
    /// Of a schedule.
    Schedule(ScheduleEntry),
    /// Of a receiver of notifications.
    Receiver(Box<ReceiverEntry>),
    /// Of a notification.
    Notification(NotificationEntry),
    /// Of a trigger.
    Trigger(TriggerEntry),
    /// Of a run that a trigger owes.
    Firing(FiringEntry),
    /// Of a flow: a version of its document.
    Flow(FlowEntry),
}

impl Entry {
    /// Whether it begins anew what is known of a flow's steps.
    pub fn is_fold(&self) -> bool {
        matches!(self, Self::Run(RunEntry::Flow(entry)) if matches!(**entry, FlowRunEntry::Folded(_)))
    }

    /// Whether it says nothing that a later fold does not say.
    pub fn is_folded(&self) -> bool {
        matches!(self, Self::Run(RunEntry::Flow(_)))
    }

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

    /// What is kept of an entry when the values of its run are not kept any more.
    #[must_use]
    pub fn withheld(self) -> Self {
        match self {
            Self::Run(entry) => Self::Run(entry.withheld()),
            Self::Ask(entry) => Self::Ask(entry.withheld()),
            Self::Notice(entry) => Self::Notice(entry.withheld()),
            other => other,
        }
    }

    /// Whether earlier entries of its kind in its stream need not be kept whole: see
    /// [`Entry::replaced`].
    pub fn replaces_earlier(&self) -> bool {
        match self {
            Self::Provider(entry) => entry.replaces_earlier(),
            Self::Seat(SeatEntry::Offered(offered)) => offered.replaced.is_none(),
            _ => false,
        }
    }

    /// Whether a later entry has taken its place.
    pub fn is_replaced(&self) -> bool {
        match self {
            Self::Provider(entry) => entry.is_replaced(),
            Self::Seat(SeatEntry::Offered(offered)) => offered.replaced.is_some(),
            _ => false,
        }
    }

    /// What is kept of an entry when a later one takes its place; `None` if it stays as it is.
    pub fn replaced(&self) -> Option<Self> {
        match self {
            Self::Provider(entry) => entry.replaced().map(|entry| Self::Provider(Box::new(entry))),
            Self::Seat(entry) => entry.replaced().map(Self::Seat),
            _ => None,
        }
    }
}
