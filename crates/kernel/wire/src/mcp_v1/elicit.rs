//! `elicitation/create`: a server asks a person, by form or by an address to open.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::{McpMeta, McpOpen, McpTaskWish};

/// How a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpElicitMode {
    /// By form.
    Form,
    /// By an address to open.
    Url,
}

/// Parameters of `elicitation/create`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpElicit {
    /// How the person is asked; by form if it is not said.
    pub mode: Option<McpElicitMode>,
    /// What is asked, for people.
    pub message: String,
    /// The form: a flat object.
    pub requested_schema: Option<McpOpen<McpForm>>,
    /// The address.
    pub url: Option<String>,
    /// Names what is asked by address; 2025-11-25.
    pub elicitation_id: Option<String>,
    /// That it is to be a task; 2025-11-25.
    pub task: Option<McpOpen<McpTaskWish>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

impl McpElicit {
    /// The address to open, if that is how the person is asked.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.url.as_deref().filter(|_| self.mode == Some(McpElicitMode::Url))
    }

    /// The form to fill in, if that is how the person is asked.
    #[must_use]
    pub fn form(&self) -> Option<&McpOpen<McpForm>> {
        self.requested_schema.as_ref().filter(|_| self.mode != Some(McpElicitMode::Url))
    }
}

/// A form: JSON Schema of an object whose fields are all plain.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpForm {
    /// Always `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The fields by name.
    pub properties: BTreeMap<String, McpOpen<McpField>>,
    /// Those that must be filled in.
    pub required: Option<Vec<String>>,
}

/// One field: the union of what fields of any kind may say.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpField {
    /// `string`, `number`, `integer`, `boolean` or `array`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What it is before somebody fills it in.
    pub default: Option<Value>,
    /// Shortest text.
    pub min_length: Option<Number>,
    /// Longest text.
    pub max_length: Option<Number>,
    /// `email`, `uri`, `date` or `date-time`.
    pub format: Option<String>,
    /// Smallest number.
    pub minimum: Option<Number>,
    /// Largest number.
    pub maximum: Option<Number>,
    /// What can be chosen.
    #[serde(rename = "enum")]
    pub values: Option<Vec<String>>,
    /// What people call it; 2025-06-18.
    pub enum_names: Option<Vec<String>>,
    /// What can be chosen, and what people call it; from 2025-11-25 on.
    pub one_of: Option<Vec<McpOpen<McpChoice>>>,
    /// What several can be chosen of; from 2025-11-25 on.
    pub items: Option<McpOpen<McpFieldItems>>,
    /// Fewest that must be chosen.
    pub min_items: Option<Number>,
    /// Most that may be chosen.
    pub max_items: Option<Number>,
}

/// What several can be chosen of.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpFieldItems {
    /// `string`, where there are no titles.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What can be chosen.
    #[serde(rename = "enum")]
    pub values: Option<Vec<String>>,
    /// What can be chosen, and what people call it.
    pub any_of: Option<Vec<McpOpen<McpChoice>>>,
}

/// Something that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpChoice {
    /// For programs.
    #[serde(rename = "const")]
    pub value: String,
    /// For people.
    pub title: String,
}

/// What is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpFieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// One of these: value, and what people call it.
    One(Vec<(String, String)>),
    /// Some of these.
    Some(Vec<(String, String)>),
}

impl McpField {
    /// What is filled in; `None` if no revision has such a field.
    #[must_use]
    pub fn field_kind(&self) -> Option<McpFieldKind> {
        let choices = |titled: &Option<Vec<McpOpen<McpChoice>>>, plain: &Option<Vec<String>>| {
            let pair = |it: &McpOpen<McpChoice>| (it.value.clone(), it.title.clone());
            let titled = titled.as_ref().map(|all| all.iter().map(pair).collect::<Vec<_>>());
            titled.or_else(|| {
                let names = self.enum_names.as_deref().unwrap_or_default();
                let name = |at: usize, value: &String| names.get(at).unwrap_or(value).clone();
                let plain = plain.as_ref()?.iter().enumerate();
                Some(plain.map(|(at, value)| (value.clone(), name(at, value))).collect())
            })
        };
        match self.kind.as_str() {
            "string" => Some(
                choices(&self.one_of, &self.values).map_or(McpFieldKind::Text, McpFieldKind::One),
            ),
            "number" => Some(McpFieldKind::Number),
            "integer" => Some(McpFieldKind::Integer),
            "boolean" => Some(McpFieldKind::Boolean),
            "array" => {
                let items = self.items.as_ref()?;
                choices(&items.any_of, &items.values).map(McpFieldKind::Some)
            }
            _ => None,
        }
    }
}

/// What a person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpElicitAction {
    /// Answered, or opened the address.
    Accept,
    /// Said no.
    Decline,
    /// Went away.
    Cancel,
}

/// Result of `elicitation/create`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpElicitResult {
    /// What the person did.
    pub action: McpElicitAction,
    /// What was filled in.
    pub content: Option<Object>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}
