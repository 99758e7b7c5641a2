//! `sampling/createMessage`: a server asks the client's model.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::{McpContent, McpMeta, McpOpen, McpRole, McpTaskWish, McpTool};

/// Parameters of `sampling/createMessage`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpSample {
    /// What was said so far.
    pub messages: Vec<McpOpen<McpSampleMessage>>,
    /// Which model would be good.
    pub model_preferences: Option<McpOpen<McpModelPreferences>>,
    /// What the model is told first.
    pub system_prompt: Option<String>,
    /// `none`, `thisServer` or `allServers`.
    pub include_context: Option<String>,
    /// How freely it may speak.
    pub temperature: Option<Number>,
    /// How much it may say.
    pub max_tokens: Number,
    /// Where it stops.
    pub stop_sequences: Option<Vec<String>>,
    /// For the model's provider.
    pub metadata: Option<Object>,
    /// What it may call.
    pub tools: Option<Vec<McpOpen<McpTool>>>,
    /// Whether it must call something.
    pub tool_choice: Option<McpOpen<McpToolChoice>>,
    /// That it is to be a task; 2025-11-25.
    pub task: Option<McpOpen<McpTaskWish>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// One message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpSampleMessage {
    /// Who says it.
    pub role: McpRole,
    /// What is said.
    pub content: McpSampleContent,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// One block or, from 2025-11-25 on, a list of them. Which of the two it was is written again.
#[derive(Debug, Clone, PartialEq)]
pub enum McpSampleContent {
    /// One.
    One(Box<McpContent>),
    /// A list.
    Many(Vec<McpContent>),
}

impl McpSampleContent {
    /// The blocks.
    #[must_use]
    pub fn blocks(&self) -> &[McpContent] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

impl<'de> Deserialize<'de> for McpSampleContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany)
    }
}

struct OneOrMany;

impl<'de> Visitor<'de> for OneOrMany {
    type Value = McpSampleContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<McpSampleContent, A::Error> {
        McpContent::deserialize(MapAccessDeserializer::new(map))
            .map(|one| McpSampleContent::One(Box::new(one)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<McpSampleContent, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(McpSampleContent::Many)
    }
}

impl Serialize for McpSampleContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(block) => block.serialize(serializer),
            Self::Many(blocks) => blocks.serialize(serializer),
        }
    }
}

/// Which model would be good. Each priority is from 0 to 1.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpModelPreferences {
    /// Names, best first.
    pub hints: Option<Vec<McpOpen<McpModelHint>>>,
    /// How much it matters what it costs.
    pub cost_priority: Option<Number>,
    /// How much it matters how long it takes.
    pub speed_priority: Option<Number>,
    /// How much it matters what it can do.
    pub intelligence_priority: Option<Number>,
}

/// A part of a model's name.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpModelHint {
    /// The part.
    pub name: Option<String>,
}

/// Whether the model must call something.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpToolChoice {
    /// `auto`, `required` or `none`.
    pub mode: Option<String>,
}

/// Result of `sampling/createMessage`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpSampleResult {
    /// Who says it.
    pub role: McpRole,
    /// What is said.
    pub content: McpSampleContent,
    /// The model that was asked.
    pub model: String,
    /// Why it stopped.
    pub stop_reason: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}
