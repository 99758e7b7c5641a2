//! What an agent's session is told when it begins.

use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;
use wharf_wire::agent_v1::{IdempotencyKept, IdempotencyPromise, Sdk, SessionToken};

use crate::agent::outbox::IdPrefix;

/// What an agent's session is told when it begins.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The token the core gave at launch.
    pub token: SessionToken,
    /// The id of the agent's manifest.
    pub agent_id: String,
    /// The agent's version.
    pub agent_version: String,
    /// The hash of the agent's manifest.
    pub manifest_hash: Option<String>,
    /// What the agent can do: `tools`, `streaming`, `cancellation`, and of the additions `invoke`,
    /// `ask` and `notify`.
    pub capabilities: Vec<String>,
    /// Whether the agent keeps idempotency keys, and for how long.
    pub idempotency: Option<IdempotencyOffer>,
    /// What the agent was built with.
    pub sdk: Option<Sdk>,
    /// What the ids of this session's messages begin with.
    pub id_prefix: IdPrefix,
    /// Limits and times.
    pub limits: AgentLimits,
}

impl AgentConfig {
    /// The defaults of an agent with tools, streams and cancellation.
    #[must_use]
    pub fn new(token: SessionToken, agent_id: impl Into<String>, id_prefix: IdPrefix) -> Self {
        Self {
            token,
            agent_id: agent_id.into(),
            agent_version: "0.1.0".to_owned(),
            manifest_hash: None,
            capabilities: ["tools", "streaming", "cancellation"].map(str::to_owned).to_vec(),
            idempotency: None,
            sdk: None,
            id_prefix,
            limits: AgentLimits::default(),
        }
    }
}

/// How long an agent keeps idempotency keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdempotencyOffer {
    /// In its process: each key for so long, and so many of them.
    Process {
        /// How long a key is kept after its call has ended.
        kept_ms: u64,
        /// How many keys are kept.
        keys_max: u64,
    },
    /// For at least 24 hours, across restarts.
    Day,
}

impl From<IdempotencyOffer> for IdempotencyPromise {
    fn from(offer: IdempotencyOffer) -> Self {
        let (kept_for, kept_for_ms, keys_max) = match offer {
            IdempotencyOffer::Process { kept_ms, keys_max } => {
                (IdempotencyKept::Process, Some(kept_ms), Some(keys_max))
            }
            IdempotencyOffer::Day => (IdempotencyKept::Day, None, None),
        };
        Self { kept_for, kept_for_ms, keys_max }
    }
}

/// Limits and times of an agent's session.
#[derive(Debug, Clone)]
pub struct AgentLimits {
    /// How long the agent waits for the welcome.
    pub welcome_ms: u64,
    /// Largest frame before the welcome says otherwise.
    pub frame_bytes_max: u32,
    /// Bytes that may wait to be written before streams are refused.
    pub outbox_bytes_max: usize,
    /// Calls that may be open.
    pub calls_open_max: usize,
    /// Finished calls that are remembered.
    pub finished_calls_max: usize,
    /// Bytes that one call may stream. Below what a core takes, so that there is room to say that
    /// the output was cut.
    pub stream_bytes_max: u64,
    /// Chunks that one call may stream, the one that says that the output was cut not counted.
    pub stream_chunks_max: u64,
    /// The longest a call may take, if the agent wants to be stricter than the core.
    pub call_ms_max: Option<u64>,
    /// Violations within a minute that close the connection.
    pub violations_per_minute_max: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            welcome_ms: 10_000,
            frame_bytes_max: FRAME_BYTES_MAX,
            outbox_bytes_max: 16 * 1024 * 1024,
            calls_open_max: 256,
            finished_calls_max: 1_024,
            stream_bytes_max: 8 * 1024 * 1024 - 4 * 1024,
            stream_chunks_max: 9_999,
            call_ms_max: None,
            violations_per_minute_max: 10,
        }
    }
}
