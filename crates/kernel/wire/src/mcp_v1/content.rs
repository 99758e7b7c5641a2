//! Blocks of content: what tools answer with, and what prompts and samples are made of.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::open::{McpWritten, known_by};
use super::{McpOpen, McpResource};

/// Who says something, or is meant to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpRole {
    /// A person.
    User,
    /// A model.
    Assistant,
}

/// For whom something is, and how much it matters.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpAnnotations {
    /// For whom.
    pub audience: Option<Vec<McpRole>>,
    /// From 0 to 1.
    pub priority: Option<Number>,
    /// When it last changed.
    pub last_modified: Option<String>,
}

/// One block.
#[derive(Debug, Clone, PartialEq)]
pub enum McpContent {
    /// `text`
    Text(McpOpen<McpText>),
    /// `image`
    Image(McpOpen<McpMedia>),
    /// `audio`
    Audio(McpOpen<McpMedia>),
    /// `resource_link`
    Link(McpOpen<McpResource>),
    /// `resource`
    Embedded(McpOpen<McpEmbedded>),
    /// `tool_use`, in samples
    ToolUse(McpOpen<McpToolUse>),
    /// `tool_result`, in samples
    ToolResult(McpOpen<McpToolResult>),
    /// A type that nobody here knows, as it came.
    Other(Object),
}

/// Words.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpText {
    /// The words.
    pub text: String,
    /// For whom they are.
    pub annotations: Option<McpOpen<McpAnnotations>>,
    /// What travels beside them.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// A picture or a sound.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpMedia {
    /// In Base64.
    pub data: String,
    /// Its type.
    pub mime_type: String,
    /// For whom it is.
    pub annotations: Option<McpOpen<McpAnnotations>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// A resource with what it contains.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpEmbedded {
    /// The resource.
    pub resource: McpOpen<McpResourceContents>,
    /// For whom it is.
    pub annotations: Option<McpOpen<McpAnnotations>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// What a resource contains: words, or bytes in Base64.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceContents {
    /// The resource.
    pub uri: String,
    /// Its type.
    pub mime_type: Option<String>,
    /// Words.
    pub text: Option<String>,
    /// Bytes in Base64.
    pub blob: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// A model wants a tool to be called.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpToolUse {
    /// Names the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Object,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// What came of a call that a model wanted.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpToolResult {
    /// The call.
    pub tool_use_id: String,
    /// What it says.
    #[serde(default)]
    pub content: Vec<McpContent>,
    /// The same as a value.
    pub structured_content: Option<Value>,
    /// Whether the call failed.
    pub is_error: Option<bool>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

impl McpContent {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(McpText { text: text.into(), ..McpText::default() }.into())
    }
}

impl<'de> Deserialize<'de> for McpContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WHAT: &str = "a block of content";
        let mut object = Object::deserialize(deserializer)?;
        let Some(kind) = object.get("type").and_then(Value::as_str).map(str::to_owned) else {
            return Err(serde::de::Error::custom("a block of content has no type"));
        };
        // What comes behind is read without it, and the type is written again by the variant.
        let mut untyped = || {
            object.remove("type");
            std::mem::take(&mut object)
        };
        Ok(match kind.as_str() {
            "text" => Self::Text(known_by(untyped(), WHAT)?),
            "image" => Self::Image(known_by(untyped(), WHAT)?),
            "audio" => Self::Audio(known_by(untyped(), WHAT)?),
            "resource_link" => Self::Link(known_by(untyped(), WHAT)?),
            "resource" => Self::Embedded(known_by(untyped(), WHAT)?),
            "tool_use" => Self::ToolUse(known_by(untyped(), WHAT)?),
            "tool_result" => Self::ToolResult(known_by(untyped(), WHAT)?),
            _ => Self::Other(object),
        })
    }
}

impl Serialize for McpContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn typed<T: Serialize, S: Serializer>(
            kind: &'static str,
            open: &McpOpen<T>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            McpWritten { kind: Some(kind), known: &open.known, rest: &open.rest }
                .serialize(serializer)
        }
        match self {
            Self::Text(text) => typed("text", text, serializer),
            Self::Image(media) => typed("image", media, serializer),
            Self::Audio(media) => typed("audio", media, serializer),
            Self::Link(resource) => typed("resource_link", resource, serializer),
            Self::Embedded(embedded) => typed("resource", embedded, serializer),
            Self::ToolUse(tool_use) => typed("tool_use", tool_use, serializer),
            Self::ToolResult(result) => typed("tool_result", result, serializer),
            Self::Other(object) => object.serialize(serializer),
        }
    }
}
