//! Errors about messages that have no answer of their own. The error stands in the envelope; the
//! payload is empty. Such a message is never answered.

use serde::{Deserialize, Serialize};

/// `core.error`: something the agent sent was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreError {}

/// `agent.error`: something the core sent was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentError {}
