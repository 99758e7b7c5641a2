//! The events of a run, and what changed: the same as REST streams, in the same words.

use async_graphql::resolver_utils::EnumType;
use async_graphql::{Enum, SimpleObject};
use serde_json::{Value, json};
use wharf_wire::rest_v1::Event;

use super::Run;
use super::choice::ChangeKind;
use super::view::view;
use crate::scalars::{DateTime, Int64};

/// One event of a run.
#[derive(Debug, SimpleObject)]
pub(crate) struct RunEvent {
    /// Its place in the run's stream; `after` for what comes after it.
    seq: Int64,
    /// When it happened.
    at: DateTime,
    /// What happened.
    #[graphql(name = "type")]
    kind: EventType,
    /// What REST sends as the event's data, but the run itself is in `run` instead.
    data: Value,
    /// The run as it ended; only with `finished`.
    run: Option<Run>,
}

/// What an event of a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(rename_items = "snake_case")]
pub(crate) enum EventType {
    /// The run was accepted.
    Queued,
    /// The first attempt began.
    Started,
    /// A further attempt began.
    Attempt,
    /// A line for the log.
    Log,
    /// Text that was added to a channel.
    Text,
    /// A value that is not final yet.
    Partial,
    /// How far the run is.
    Progress,
    /// A question was raised.
    Question,
    /// An approval was asked for.
    Approval,
    /// An ask was decided.
    Decided,
    /// Something is missing in the provider's stream.
    Gap,
    /// The run is over.
    Finished,
}

impl EventType {
    /// The event's name in REST.
    pub(crate) fn name(self) -> &'static str {
        let mut items = Self::items().iter();
        items.find(|item| item.value == self).map_or("", |item| item.name)
    }
}

impl RunEvent {
    /// What REST tells, and the run that has ended by it.
    pub(crate) fn new(
        event: &Event,
        at: wharf_vocab::Timestamp,
        ended: Option<&wharf_domain::Run>,
    ) -> Option<Self> {
        let item = EventType::items().iter().find(|item| item.name == event.name())?;
        let data = match event {
            Event::Finished(event) => {
                let run = &event.run;
                json!({
                    "seq": event.seq, "at": event.at, "run_id": run.run_id, "status": run.status,
                })
            }
            event => serde_json::from_str(&event.to_json().ok()?).ok()?,
        };
        Some(Self {
            seq: Int64(event.seq()),
            at: DateTime(at),
            kind: item.value,
            data,
            run: ended.map(Run::from),
        })
    }
}

view! {
    /// What changed since the frame before.
    Changes of Changes {
        /// Whether something may have been missed: what is shown must be read again.
        reset: bool,
        /// What changed, each thing once.
        items: Vec<Change>,
    }
}

view! {
    /// Something that changed. What it is now is to be read where it is shown.
    Change of Change {
        /// What it is.
        kind: ChangeKind,
        /// Its world, if it has one.
        world: Option<String>,
        /// Its id.
        id: String,
        /// Grows with every change of the same thing.
        seq: Int64,
        /// How it stands now.
        status: String,
    }
}
