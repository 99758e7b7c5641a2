//! Files in the inputs and outputs of a tool.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// The mark of a file in a schema.
pub(super) const MARK: &str = "x-wharf-file";

/// An input that is a file and stays where it is until it is asked for: with
/// [`ToolCx::open`](super::ToolCx::open), [`read`](super::ToolCx::read) or
/// [`path`](super::ToolCx::path). Other inputs that refer to files are read before the handler
/// starts: as text where the field is text, else as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ToolFile {
    /// The input's key, which stands in the stead of its value.
    key: String,
}

impl AsRef<str> for ToolFile {
    fn as_ref(&self) -> &str {
        &self.key
    }
}

impl JsonSchema for ToolFile {
    fn schema_name() -> Cow<'static, str> {
        "ToolFile".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", MARK: true })
    }
}

/// An output that was written to its place. In the run's outputs it becomes the name of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// How large it is.
    pub bytes: u64,
    /// Its BLAKE3 hash, in hexadecimal.
    pub b3: String,
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The server names the place of what was written, whatever stands here.
        serializer.serialize_none()
    }
}

impl JsonSchema for Stored {
    fn schema_name() -> Cow<'static, str> {
        "Stored".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], MARK: true })
    }
}
