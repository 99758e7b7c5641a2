//! Signs of life.

use serde::{Deserialize, Serialize};
use wharf_vocab::Object;

use crate::agent_v1::SessionId;

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
