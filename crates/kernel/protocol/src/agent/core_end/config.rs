//! What a core's session is told when it begins.

use wharf_vocab::limits::{
    CANCEL_GRACE_MS, OFFER_BYTES_MAX, RUN_ASKS_OPEN_MAX, SCHEMA_BYTES_MAX, VALUE_BYTES_MAX,
};
use wharf_wire::agent_v1::SessionId;
use wharf_wire::agent_v1::limits::{FRAME_BYTES_MAX, HELLO_FRAME_BYTES_MAX};

use crate::agent::outbox::IdPrefix;

/// What a core's session is told when it begins.
#[derive(Debug, Clone)]
pub struct CoreConfig {
    /// The id of this session, fresh for each connection.
    pub session_id: SessionId,
    /// What the ids of this session's messages begin with.
    pub id_prefix: IdPrefix,
    /// The core's version, for the welcome.
    pub core_version: String,
    /// The core's instance, for the welcome.
    pub instance_id: String,
    /// Limits and times.
    pub limits: CoreLimits,
    /// What happens to a frame above the limit once the session has begun.
    pub oversize: OversizePolicy,
    /// Whether a message of unknown type closes the connection.
    pub close_on_unknown_type: bool,
}

impl CoreConfig {
    /// The defaults.
    #[must_use]
    pub fn new(session_id: SessionId, id_prefix: IdPrefix) -> Self {
        Self {
            session_id,
            id_prefix,
            core_version: env!("CARGO_PKG_VERSION").to_owned(),
            instance_id: "core".to_owned(),
            limits: CoreLimits::default(),
            oversize: OversizePolicy::Close,
            close_on_unknown_type: false,
        }
    }
}

/// What happens to a frame above the limit once the session has begun. Before that the connection
/// is always closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OversizePolicy {
    /// The connection is closed.
    Close,
    /// The frame is let go by unread and answered with an error.
    Reject,
}

/// What may differ from agent to agent, and so is known only after the hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRules {
    /// Largest frame in both directions.
    pub frame_bytes_max: u32,
    /// Calls that may be open.
    pub calls_open_max: usize,
    /// What happens to a frame above the limit.
    pub oversize: OversizePolicy,
    /// Whether a message of unknown type closes the connection.
    pub close_on_unknown_type: bool,
}

impl SessionRules {
    /// The rules of an agent of which nothing else is said.
    #[must_use]
    pub fn new(limits: &CoreLimits) -> Self {
        Self {
            frame_bytes_max: limits.frame_bytes_max,
            calls_open_max: limits.calls_open_max,
            oversize: OversizePolicy::Close,
            close_on_unknown_type: false,
        }
    }
}

/// Limits and times of a core's session.
#[derive(Debug, Clone)]
pub struct CoreLimits {
    /// How long a handshake may take.
    pub handshake_ms: u64,
    /// How often an agent has to show that it is alive.
    pub heartbeat_interval_ms: u64,
    /// Intervals without a heartbeat until the agent is unhealthy.
    pub unhealthy_intervals: u64,
    /// Intervals without a heartbeat until the session ends.
    pub dead_intervals: u64,
    /// Intervals without a call and without a word but heartbeats until the agent is pinged; 0
    /// for never.
    pub ping_intervals: u64,
    /// Heartbeats that may come in one interval.
    pub heartbeats_per_interval_max: u32,
    /// Largest frame before the welcome.
    pub hello_frame_bytes_max: u32,
    /// Largest frame in both directions from the welcome on.
    pub frame_bytes_max: u32,
    /// Bytes that may wait to be written before calls are refused.
    pub outbox_bytes_max: usize,
    /// Calls that may be open.
    pub calls_open_max: usize,
    /// Finished calls that are remembered.
    pub tombstones_max: usize,
    /// Tools that a session may register.
    pub tools_max: usize,
    /// What all tools of a session may take together, as JSON text.
    pub offer_bytes_max: usize,
    /// Largest schema of a tool.
    pub schema_bytes_max: usize,
    /// Deepest schema of a tool.
    pub schema_depth_max: usize,
    /// Bytes that one call may stream.
    pub stream_bytes_max: u64,
    /// Chunks that one call may stream.
    pub stream_chunks_max: u64,
    /// Largest output of a call that names no limit of its own.
    pub output_bytes_max: u64,
    /// How long a call may take to stop when the cancel does not say.
    pub cancel_grace_ms: u64,
    /// How long an agent that said goodbye may take to finish its calls.
    pub drain_ms: u64,
    /// Violations within a minute that close the connection.
    pub violations_per_minute_max: usize,
    /// Calls that the agent may have open through the core.
    pub invokes_open_max: usize,
    /// Questions that one call may have open.
    pub questions_open_max: usize,
    /// Notices within a minute that are passed on.
    pub notices_per_minute_max: u32,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            handshake_ms: 10_000,
            heartbeat_interval_ms: 10_000,
            unhealthy_intervals: 3,
            dead_intervals: 6,
            ping_intervals: 3,
            heartbeats_per_interval_max: 10,
            hello_frame_bytes_max: HELLO_FRAME_BYTES_MAX,
            frame_bytes_max: FRAME_BYTES_MAX,
            outbox_bytes_max: 16 * 1024 * 1024,
            calls_open_max: 256,
            tombstones_max: 1_024,
            tools_max: 1_024,
            offer_bytes_max: OFFER_BYTES_MAX,
            schema_bytes_max: SCHEMA_BYTES_MAX,
            schema_depth_max: 32,
            stream_bytes_max: 8 * 1024 * 1024,
            stream_chunks_max: 10_000,
            output_bytes_max: VALUE_BYTES_MAX as u64,
            cancel_grace_ms: CANCEL_GRACE_MS,
            drain_ms: 30_000,
            violations_per_minute_max: 10,
            invokes_open_max: 256,
            questions_open_max: RUN_ASKS_OPEN_MAX,
            notices_per_minute_max: 60,
        }
    }
}
