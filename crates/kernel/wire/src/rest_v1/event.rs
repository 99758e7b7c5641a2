//! The events of a run, as `GET /v1/runs/{id}/events` streams them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wharf_vocab::{AskId, AskOutcome, DateTime, Executed, Level, RunId};

use super::{Ask, Run};

/// The events there are, each with its name on the wire and its message.
macro_rules! events {
    ($($(#[$meta:meta])* $name:literal = $variant:ident($message:ident $(in $box:ident)?),)+) => {
        /// One event of a run. The variant's name is the SSE event name.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($(#[$meta])* $variant(events!(@ $message $($box)?)),)+
        }

        impl Event {
            /// The SSE event name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// The event's number in the run's stream.
            #[must_use]
            pub fn seq(&self) -> u64 {
                match self { $(Self::$variant(event) => event.seq,)+ }
            }

            /// The event's data as JSON text, on one line.
            pub fn to_json(&self) -> serde_json::Result<String> {
                match self { $(Self::$variant(event) => serde_json::to_string(event),)+ }
            }

            /// Reads an event; `None` for a name this version does not know, which readers skip.
            pub fn parse(name: &str, data: &str) -> serde_json::Result<Option<Self>> {
                Ok(Some(match name {
                    $($name => Self::$variant(serde_json::from_str(data)?),)+
                    _ => return Ok(None),
                }))
            }

            fn messages() -> Vec<String> {
                let mut all = vec![$($message::name().into_owned()),+];
                all.dedup();
                all
            }
        }
    };
    (@ $message:ident) => { $message };
    (@ $message:ident $box:ident) => { $box<$message> };
}

events! {
    /// The run was accepted.
    "queued" = Queued(MarkEvent),
    /// The first attempt began.
    "started" = Started(MarkEvent),
    /// A further attempt began.
    "attempt" = Attempt(AttemptEvent),
    /// A line for the log.
    "log" = Log(LogEvent),
    /// Text that was added to a channel.
    "text" = Text(TextEvent),
    /// A value that is not final yet.
    "partial" = Partial(PartialEvent),
    /// How far the run is.
    "progress" = Progress(ProgressEvent),
    /// A question was raised.
    "question" = Question(AskEvent),
    /// An approval was asked for.
    "approval" = Approval(AskEvent),
    /// An ask was decided.
    "decided" = Decided(DecidedEvent),
    /// Part of the provider's stream is missing.
    "gap" = Gap(GapEvent),
    /// The run is over.
    "finished" = Finished(FinishedEvent in Box),
}

/// In a list an event is one of its kinds, with its name under `event`.
impl PartialSchema for Event {
    fn schema() -> RefOr<Schema> {
        let kinds = Self::messages().into_iter().map(Ref::from_schema_name);
        kinds.fold(AnyOfBuilder::new(), AnyOfBuilder::item).into()
    }
}

impl ToSchema for Event {}

/// Messages that say of which run they are, and what else they have.
macro_rules! of_run {
    ($($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)+
    })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            /// The event's number in the run's stream.
            pub seq: u64,
            /// The run.
            pub run_id: RunId,
            /// When it happened.
            pub at: DateTime,
            $($(#[$field_meta])* pub $field: $type,)+
        }
    )+};
}

of_run! {
    /// `queued` and `started`.
    MarkEvent {
        /// The attempt; 0 before the first.
        attempt: u32,
        /// With `queued`: why the run waits for room at its provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    /// `attempt`: a retry begins.
    AttemptEvent {
        /// The new attempt's number.
        attempt: u32,
        /// The error code that ended the previous attempt.
        reason: String,
        /// Whether the previous attempt acted.
        executed: Executed,
    }

    /// `log`.
    LogEvent {
        /// How severe it is.
        level: Level,
        /// The line.
        text: String,
    }

    /// `text`: a delta on a channel.
    TextEvent {
        /// `stdout`, `stderr`, `status` or an output key.
        channel: String,
        /// What was added.
        text: String,
    }

    /// `partial`.
    PartialEvent {
        /// The output it is part of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The value so far.
        value: Value,
    }

    /// `progress`.
    ProgressEvent {
        /// What the run is doing.
        phase: String,
        /// How far it is, from 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
    }

    /// `decided`.
    DecidedEvent {
        /// The ask.
        ask_id: AskId,
        /// How the ask ended.
        decision: AskOutcome,
        /// Who decided.
        by: String,
    }

    /// `gap`: part of the provider's stream is missing.
    GapEvent {
        /// First missing number of the provider's stream.
        from: u64,
        /// Last missing number of the provider's stream.
        to: u64,
    }
}

/// `question` and `approval`: the ask as the inbox shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AskEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// When it happened.
    pub at: DateTime,
    /// The ask.
    #[serde(flatten)]
    pub ask: Ask,
}

/// `finished`: the run as `GET` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinishedEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// When it happened.
    pub at: DateTime,
    /// The run.
    #[serde(flatten)]
    pub run: Run,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/events.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            let event = Event::parse(name, data).expect("parses").expect("known");
            assert_eq!(event.name(), name);
            assert_eq!(event.to_json().expect("writes"), data);
            names.insert(name);
        }
        assert_eq!(names.len(), 12, "each event has an example");
    }

    #[test]
    fn an_unknown_event_is_skipped() {
        assert_eq!(Event::parse("telepathy", "{}").expect("no error"), None);
    }
}
