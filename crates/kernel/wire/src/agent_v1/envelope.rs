//! What every message has around its payload.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::{MessageId, Rfc3339};

/// One message with what goes around it. The `type` is told by the message itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope<M> {
    /// The protocol's version.
    pub v: i64,
    /// The message's id, never used twice by its sender in a session.
    pub id: MessageId,
    /// When the sender made the message, by its own clock.
    pub ts: Rfc3339,
    /// The message this one answers.
    pub in_reply_to: Option<MessageId>,
    /// What comes back unchanged on every message of a call.
    pub echo: Echo,
    /// Who is behind the message: for display, never for authorisation.
    pub actor: Option<Actor>,
    /// What went wrong.
    pub error: Option<ErrorObject>,
    /// The message.
    pub message: M,
}

/// The fields that the other end returns unchanged on every message of a call; what is absent
/// stays absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Echo {
    /// The logical request that the call belongs to.
    pub request_id: Option<String>,
    /// The session, workflow or mission that the call belongs to.
    pub correlation_id: Option<String>,
    /// What immediately caused the call.
    pub causation_id: Option<String>,
    /// The trace the call belongs to, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
}

/// Who is behind a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// What kind of party it is.
    #[serde(rename = "type")]
    pub kind: PartyKind,
    /// Its id.
    pub id: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
}

/// A kind of party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartyKind {
    /// A person.
    Human,
    /// An agent.
    Agent,
    /// The system itself.
    System,
}

/// What went wrong, free of secrets.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// A stable code for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// Facts for programs.
    pub details: Option<Object>,
    /// Whether the same request may succeed later.
    pub retryable: Option<bool>,
    /// The part of the sender that failed.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Fields for debugging. Wharf reads them and never writes them.
    pub debug: Option<Object>,
}
