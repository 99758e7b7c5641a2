//! Values that may be null: one that is there is kept apart from one that is not.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a field that is there, also when it is null.
pub(crate) fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}
