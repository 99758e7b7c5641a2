//! The session itself: hello, welcome, goodbye, signs of life, and errors about messages.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use crate::agent_v1::SessionId;

/// `agent.hello`: who connects, and the proof that this core launched it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The token the core gave at launch; empty when it was missing or no text.
    #[serde(default)]
    pub session_token: SessionToken,
    /// The id of the agent's manifest.
    pub agent_id: String,
    /// The agent's version.
    pub agent_version: String,
    /// The hash of the agent's manifest.
    pub manifest_hash: Option<String>,
    /// What the agent can speak.
    #[serde(default)]
    pub protocol: ProtocolOffer,
    /// What the agent was built with; for display only, so that nothing in it is a reason to
    /// refuse a hello.
    #[serde(default, deserialize_with = "shown")]
    pub sdk: Option<Sdk>,
}

/// What an agent can speak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProtocolOffer {
    /// Versions of the protocol.
    #[serde(default)]
    pub supported_versions: Vec<i64>,
    /// Optional parts of it; unknown ones are ignored.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// With the capability `idempotency`: how long keys are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<IdempotencyPromise>,
}

/// How long an agent remembers idempotency keys.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyPromise {
    /// What the memory of keys outlives.
    pub kept_for: IdempotencyKept,
    /// How long a key is kept after its call has ended; as long as `kept_for` says when absent.
    pub kept_for_ms: Option<u64>,
    /// How many keys are kept; beyond it the oldest may be forgotten sooner.
    pub keys_max: Option<u64>,
}

/// For how long an agent remembers idempotency keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdempotencyKept {
    /// As long as its process lives.
    #[serde(rename = "process")]
    Process,
    /// For at least 24 hours, across restarts.
    #[serde(rename = "24h")]
    Day,
    /// Something this end does not know.
    #[serde(other, rename = "unknown")]
    Unknown,
}

/// What an agent was built with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sdk {
    /// Its name; empty when the agent does not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its version; empty when the agent does not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// Takes of an `sdk` what is text.
fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Sdk>, D::Error> {
    let Value::Object(sdk) = Value::deserialize(deserializer)? else { return Ok(None) };
    let text = |name| sdk.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(Sdk { name: text("name"), version: text("version") }))
}

/// A session token. It is shown nowhere and compared in constant time.
#[derive(Clone, Default, Serialize)]
pub struct SessionToken(String);

impl SessionToken {
    /// Takes a token.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The token itself, for the one place that compares it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(hidden)")
    }
}

impl PartialEq for SessionToken {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        let differs = a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b));
        a.len() == b.len() && std::hint::black_box(differs) == 0
    }
}

impl Eq for SessionToken {}

/// A token that is no text counts as missing, so that both are refused in the same way.
impl<'de> Deserialize<'de> for SessionToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(token) => Self(token),
            _ => Self::default(),
        })
    }
}

/// `core.welcome`: the session begins, or it does not.
#[derive(Debug, Clone, PartialEq)]
pub enum WelcomeReply {
    /// The session begins.
    Accepted(Welcome),
    /// It does not; the envelope's error says why, and the payload is empty.
    Refused,
}

impl Serialize for WelcomeReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Accepted(welcome) => welcome.serialize(serializer),
            Self::Refused => serializer.collect_map::<&str, (), _>([]),
        }
    }
}

/// How the session will be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version both ends speak from now on.
    pub accepted_version: i64,
    /// The session's id.
    pub session_id: SessionId,
    /// How often the agent has to show that it is alive.
    pub heartbeat_interval_ms: u64,
    /// The largest frame, in both directions.
    pub max_frame_bytes: u32,
    /// Who welcomes.
    pub server: Server,
    /// Which of the agent's capabilities that go beyond version 1 the core grants. Left out when
    /// the agent offered none, so that plain peers see a plain welcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// The core that welcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its version.
    pub core_version: String,
    /// Its instance.
    pub instance_id: String,
}

/// `core.goodbye`: the core is about to close the connection.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreGoodbye {
    /// Why, free of secrets.
    pub reason: String,
    /// How long to wait before connecting again.
    pub retry_after_ms: Option<u64>,
    /// How long calls that are under way may still take; none are added.
    pub drain_ms: Option<u64>,
}

/// `agent.goodbye`: the agent wants to end; calls that are under way are finished first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentGoodbye {
    /// Why, free of secrets.
    pub reason: String,
}

/// `agent.heartbeat`: the agent is alive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The session the agent believes to be in.
    pub session_id: SessionId,
    /// How long the agent has been up.
    pub uptime_ms: u64,
    /// How many calls it works on.
    pub inflight_calls: u64,
    /// How it feels.
    pub status: HealthStatus,
    /// Figures such as queue depth, free of secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Object>,
}

/// How an agent feels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// Well.
    Ok,
    /// It works, but not well.
    Degraded,
    /// It does not work.
    Unhealthy,
}

/// `core.ping`: show that you are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {}

/// `agent.pong`: the answer to a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {}

/// `core.error`: something the agent sent was wrong. The error stands in the envelope, and such a
/// message is never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreError {}

/// `agent.error`: something the core sent was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentError {}
