//! Registering and removing tools.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use crate::agent_v1::ErrorObject;

/// `agent.tools.register`: the tools an agent offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsRegister {
    /// The tools.
    pub tools: Vec<ToolEntry>,
    /// Whether these tools take the place of all that the session registered before.
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        deserialize_with = "false_when_null"
    )]
    pub replace: bool,
}

fn false_when_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// One item of a registration. An item that cannot be read does not spoil the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolEntry {
    /// A definition.
    Readable(Box<ToolDefinition>),
    /// Something else.
    Unreadable(UnreadableTool),
}

/// An item of a registration that is no definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UnreadableTool {
    /// The id it gives itself; empty if it gives none.
    pub tool_id: String,
}

/// What an agent says about a tool. Schemas are kept as they came: whether they are valid is
/// judged tool by tool, not when the message is read.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// `agent_id/name`.
    pub tool_id: String,
    /// The name without the agent.
    #[serde(default)]
    pub name: String,
    /// What the tool does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its input; `null` when it is missing.
    #[serde(default)]
    pub input_schema: Value,
    /// The JSON Schema of its output.
    pub output_schema: Option<Value>,
    /// What it can do, such as `streaming`, `cancellation` and `mock`.
    pub capabilities: Option<Vec<String>>,
    /// Whether it can act on the world.
    pub side_effects: Option<bool>,
    /// Whether it acts only with an approved directive.
    pub requires_directive: Option<bool>,
    /// Groups for display.
    pub tags: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for ToolEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let tool_id = value.get("tool_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(match serde_json::from_value(value) {
            Ok(definition) => Self::Readable(Box::new(definition)),
            Err(_) => Self::Unreadable(UnreadableTool { tool_id }),
        })
    }
}

impl From<ToolDefinition> for ToolEntry {
    fn from(definition: ToolDefinition) -> Self {
        Self::Readable(Box::new(definition))
    }
}

/// `core.tools.registered`: which tools were taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolsRegistered {
    /// The ids that were taken.
    pub registered: Vec<String>,
    /// The others, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedTool>,
}

/// A tool that was not taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectedTool {
    /// Its id, as the agent gave it.
    pub tool_id: String,
    /// Why.
    pub error: ErrorObject,
}

/// `agent.tools.unregister`: tools the agent no longer offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsUnregister {
    /// Their ids.
    pub tool_ids: Vec<String>,
}

/// `core.tools.unregistered`: which of them were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsUnregistered {
    /// Their ids.
    pub unregistered: Vec<String>,
}
