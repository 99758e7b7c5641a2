//! The events of a run, as `GET /v1/runs/{id}/events` streams them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wharf_vocab::{AskId, AskOutcome, DateTime, Executed, Level, RunId};

use super::{Ask, Run};

/// One event of a run. The variant's name is the SSE event name.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The run was accepted.
    Queued(MarkEvent),
    /// The first attempt began.
    Started(MarkEvent),
    /// A further attempt began.
    Attempt(AttemptEvent),
    /// A line for the log.
    Log(LogEvent),
    /// Text that was added to a channel.
    Text(TextEvent),
    /// A value that is not final yet.
    Partial(PartialEvent),
    /// How far the run is.
    Progress(ProgressEvent),
    /// A question was raised.
    Question(AskEvent),
    /// An approval was asked for.
    Approval(AskEvent),
    /// An ask was decided.
    Decided(DecidedEvent),
    /// Part of the provider's stream is missing.
    Gap(GapEvent),
    /// The run is over.
    Finished(Box<FinishedEvent>),
}

/// In a list an event is one of its kinds, with its name under `event`.
impl PartialSchema for Event {
    fn schema() -> RefOr<Schema> {
        let kinds = [
            MarkEvent::name(),
            AttemptEvent::name(),
            LogEvent::name(),
            TextEvent::name(),
            PartialEvent::name(),
            ProgressEvent::name(),
            AskEvent::name(),
            DecidedEvent::name(),
            GapEvent::name(),
            FinishedEvent::name(),
        ];
        let any = kinds.into_iter().fold(AnyOfBuilder::new(), |any, kind| {
            any.item(Ref::from_schema_name(kind.into_owned()))
        });
        any.into()
    }
}

impl ToSchema for Event {}

/// `queued` and `started`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarkEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// The attempt; 0 before the first.
    pub attempt: u32,
    /// With `queued`: why the run waits for room at its provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `attempt`: a retry begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// The new attempt's number.
    pub attempt: u32,
    /// The error code that ended the previous attempt.
    pub reason: String,
    /// Whether the previous attempt acted.
    pub executed: Executed,
}

/// `log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LogEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// How severe it is.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// `text`: a delta on a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TextEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// `stdout`, `stderr`, `status` or an output key.
    pub channel: String,
    /// What was added.
    pub text: String,
}

/// `partial`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartialEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// The output it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The value so far.
    pub value: Value,
}

/// `progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProgressEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// What the run is doing.
    pub phase: String,
    /// How far it is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
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

/// `decided`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecidedEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// The ask.
    pub ask_id: AskId,
    /// How the ask ended.
    pub decision: AskOutcome,
    /// Who decided.
    pub by: String,
}

/// `gap`: part of the provider's stream is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GapEvent {
    /// The event's number in the run's stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    pub at: DateTime,
    /// First missing number of the provider's stream.
    pub from: u64,
    /// Last missing number of the provider's stream.
    pub to: u64,
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

impl Event {
    /// The SSE event name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued(_) => "queued",
            Self::Started(_) => "started",
            Self::Attempt(_) => "attempt",
            Self::Log(_) => "log",
            Self::Text(_) => "text",
            Self::Partial(_) => "partial",
            Self::Progress(_) => "progress",
            Self::Question(_) => "question",
            Self::Approval(_) => "approval",
            Self::Decided(_) => "decided",
            Self::Gap(_) => "gap",
            Self::Finished(_) => "finished",
        }
    }

    /// The event's number in the run's stream.
    #[must_use]
    pub fn seq(&self) -> u64 {
        match self {
            Self::Queued(event) | Self::Started(event) => event.seq,
            Self::Attempt(event) => event.seq,
            Self::Log(event) => event.seq,
            Self::Text(event) => event.seq,
            Self::Partial(event) => event.seq,
            Self::Progress(event) => event.seq,
            Self::Question(event) | Self::Approval(event) => event.seq,
            Self::Decided(event) => event.seq,
            Self::Gap(event) => event.seq,
            Self::Finished(event) => event.seq,
        }
    }

    /// The event's data as JSON text, on one line.
    pub fn to_json(&self) -> serde_json::Result<String> {
        match self {
            Self::Queued(event) | Self::Started(event) => serde_json::to_string(event),
            Self::Attempt(event) => serde_json::to_string(event),
            Self::Log(event) => serde_json::to_string(event),
            Self::Text(event) => serde_json::to_string(event),
            Self::Partial(event) => serde_json::to_string(event),
            Self::Progress(event) => serde_json::to_string(event),
            Self::Question(event) | Self::Approval(event) => serde_json::to_string(event),
            Self::Decided(event) => serde_json::to_string(event),
            Self::Gap(event) => serde_json::to_string(event),
            Self::Finished(event) => serde_json::to_string(event),
        }
    }

    /// Reads an event; `None` for a name this version does not know, which readers skip.
    pub fn parse(name: &str, data: &str) -> serde_json::Result<Option<Self>> {
        Ok(Some(match name {
            "queued" => Self::Queued(serde_json::from_str(data)?),
            "started" => Self::Started(serde_json::from_str(data)?),
            "attempt" => Self::Attempt(serde_json::from_str(data)?),
            "log" => Self::Log(serde_json::from_str(data)?),
            "text" => Self::Text(serde_json::from_str(data)?),
            "partial" => Self::Partial(serde_json::from_str(data)?),
            "progress" => Self::Progress(serde_json::from_str(data)?),
            "question" => Self::Question(serde_json::from_str(data)?),
            "approval" => Self::Approval(serde_json::from_str(data)?),
            "decided" => Self::Decided(serde_json::from_str(data)?),
            "gap" => Self::Gap(serde_json::from_str(data)?),
            "finished" => Self::Finished(serde_json::from_str(data)?),
            _ => return Ok(None),
        }))
    }
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
