//! What happens in a run, as everybody outside sees it.
//!
//! The journal's entries are turned into public events here and nowhere else; edges only write
//! them in their own form. An entry that says nothing to a reader has no event, so the numbers of
//! public events may have holes.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::run::AskResolved;
use wharf_domain::run::flow::FlowRunEntry;
use wharf_domain::{Ask, Entry, Progress, Run, RunEntry};
use wharf_ports::HistoryItem;
use wharf_vocab::{Code, Executed, FaultCode, RunId, Seq, Timestamp};

/// One record of a run's stream.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// Its place in the run's stream.
    pub seq: Seq,
    /// When it was committed.
    pub at: Timestamp,
    /// What was committed.
    pub item: HistoryItem,
    /// Why there is another attempt, with the event that begins it.
    pub retry: Option<Retry>,
    /// The run as it ended, with the event that ends it.
    pub ended: Option<Arc<Run>>,
}

/// How the attempt before failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Why.
    pub reason: FaultCode,
    /// Whether it acted on the world.
    pub executed: Executed,
}

/// One event of a run, as readers are shown it.
#[derive(Debug, Clone)]
pub struct PublicEvent {
    /// Its place in the run's stream.
    pub seq: Seq,
    /// The run.
    pub run_id: RunId,
    /// When it was committed.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What happened in a run.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// The run was accepted, or waits for room; then with why.
    Queued {
        /// What it waits for.
        reason: Option<String>,
    },
    /// The first attempt began.
    Started {
        /// Its number.
        attempt: u32,
    },
    /// A later attempt began.
    Attempt {
        /// Its number.
        attempt: u32,
        /// Why there is another.
        retry: Retry,
    },
    /// Partial output.
    Progress(Progress),
    /// A question or an approval was raised.
    Asked(Box<Ask>),
    /// It was decided, expired or is needed no more.
    Decided(AskResolved),
    /// The run is over.
    Finished(Arc<Run>),
}

impl RunRecord {
    /// The event as readers are shown it, if they are.
    pub fn public(self, run_id: &RunId) -> Option<PublicEvent> {
        let Self { seq, at, item, retry, ended } = self;
        let kind = match item {
            HistoryItem::Progress(Progress::Withheld) => return None,
            HistoryItem::Progress(piece) => EventKind::Progress(piece),
            HistoryItem::Entry(Entry::Run(entry)) => match entry {
                RunEntry::Created(_) => EventKind::Queued { reason: None },
                RunEntry::RoomAwaited(awaited) => {
                    EventKind::Queued { reason: Some(awaited.reason) }
                }
                RunEntry::AttemptStarted(started) => match (started.attempt, retry) {
                    (attempt @ 0..=1, _) => EventKind::Started { attempt },
                    (attempt, retry) => {
                        EventKind::Attempt { attempt, retry: retry.unwrap_or_else(Retry::unknown) }
                    }
                },
                RunEntry::Flow(entry) => match *entry {
                    // A flow has no attempts; it starts once.
                    FlowRunEntry::Began(_) => EventKind::Started { attempt: 1 },
                    _ => return None,
                },
                RunEntry::AskRaised(raised) => {
                    EventKind::Asked(Box::new(Ask::raised(*raised.ask, at)))
                }
                RunEntry::AskResolved(resolved) => EventKind::Decided(resolved),
                RunEntry::Ended(_) => EventKind::Finished(ended?),
                RunEntry::AttemptFailed(_)
                | RunEntry::AttemptNoted(_)
                | RunEntry::ProviderAwaited(_)
                | RunEntry::CostReported(_)
                | RunEntry::Publishing(_)
                | RunEntry::CancelRequested(_)
                | RunEntry::ChildrenAllowed(_)
                | RunEntry::Step(_) => return None,
            },
            HistoryItem::Entry(_) => return None,
        };
        Some(PublicEvent { seq, run_id: run_id.clone(), at, kind })
    }
}

impl Retry {
    /// What is said of an attempt before which no failure is on record.
    fn unknown() -> Self {
        Self { reason: Code::ToolFailed.into(), executed: Executed::Maybe }
    }

    /// What an entry says about why the next attempt follows.
    pub(super) fn from_item(item: &HistoryItem) -> Option<Self> {
        match item {
            HistoryItem::Entry(Entry::Run(RunEntry::AttemptFailed(failed))) => {
                Some(Self { reason: failed.error.code.clone(), executed: failed.executed })
            }
            _ => None,
        }
    }
}

/// A piece of progress as one JSON value. A value that a tool gave stands as it is; a gap has none.
pub fn progress_value(piece: Progress) -> Option<Value> {
    Some(match piece {
        Progress::Partial { key: None, value } => value,
        Progress::Partial { key: Some(key), value } => json!({"key": key, "value": value}),
        Progress::Text { channel, text } => json!({"channel": channel, "text": text}),
        Progress::Phase { phase, fraction } => json!({"phase": phase, "fraction": fraction}),
        Progress::Log { level, text } => json!({"level": level.as_str(), "text": text}),
        Progress::Gap { .. } | Progress::Withheld => return None,
    })
}
