//! Tools of the catalog, and how their definitions changed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{ProviderId, Retain, ToolId, ToolState};

use super::ToolServer;

/// A tool of the catalog.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    /// `provider/name`.
    pub tool_id: ToolId,
    /// The name alone.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Who executes it.
    pub provider: ProviderId,
    /// JSON Schema of the inputs.
    pub input_schema: Value,
    /// JSON Schema of the outputs.
    pub output_schema: Option<Value>,
    /// Whether it acts on the world.
    pub side_effects: bool,
    /// Whether each run needs an approval.
    pub requires_directive: bool,
    /// Whether it supports mock runs.
    #[serde(default)]
    pub mock: bool,
    /// What is kept of the values of its runs once they have ended.
    #[serde(default, skip_serializing_if = "super::is_full")]
    pub retain: Retain,
    /// Capabilities its provider declares, such as `streaming`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Groups for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether it can be called.
    pub state: ToolState,
    /// Why it is in that state, when there is something to say.
    pub state_reason: Option<String>,
    /// The most an attempt costs, according to its author.
    pub max_cost_micro: Option<u64>,
    /// Whether it is declared free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
    /// Hash of its whole definition.
    pub definition_hash: Option<String>,
    /// Its server, if it has one of its own; not in lists.
    pub server: Option<Box<ToolServer>>,
}

/// `GET /v1/tools/{provider}/{name}/diff`: the approved definition and the one offered now.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolDiff {
    /// `provider/name`.
    pub tool_id: ToolId,
    /// Whether the two differ. If so, the tool may not be called until it is approved again.
    pub changed: bool,
    /// The parts that differ, such as `description` or `input_schema`.
    pub changes: Vec<String>,
    /// The approved definition.
    pub pinned: Option<ToolDefinition>,
    /// The offered definition.
    pub offered: Option<ToolDefinition>,
}

/// A tool's definition: everything an approval covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolDefinition {
    /// Hash of the whole definition.
    pub hash: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of the inputs.
    pub input_schema: Value,
    /// JSON Schema of the outputs.
    pub output_schema: Option<Value>,
    /// Whether it acts on the world; null when it does not say.
    pub side_effects: Option<bool>,
    /// Whether each run needs an approval.
    pub requires_directive: bool,
    /// Whether it supports mock runs.
    pub mock: bool,
    /// Whether its provider honours idempotency keys.
    pub idempotency: bool,
    /// Longest running time of an attempt.
    pub timeout_ms: Option<u64>,
    /// The most an attempt costs, according to its author.
    pub max_cost_micro: Option<u64>,
    /// Whether it is declared free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
    /// What else its MCP server says of it, if it comes from one: its title, its annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Value>,
}
