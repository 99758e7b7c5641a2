//! Schemas: a table in the manifest, or a file of JSON beside it.

use std::path::Path;

use serde_json::Value;
use wharf_engine::check_schema;
use wharf_hosting::ManifestFields;
use wharf_vocab::{Code, Fault, shown};

use super::file;

/// Reads a schema. The bytes of a file are added to `read`.
pub(super) fn read(
    fields: &ManifestFields<'_>,
    name: &str,
    folder: &Path,
    read: &mut Vec<Vec<u8>>,
) -> Result<Option<Value>, Fault> {
    let schema = match fields.get(name) {
        None => return Ok(None),
        Some(table @ Value::Object(_)) if holds_null(table) => {
            let why = "it holds a date or a number that JSON does not have";
            return Err(fields.wrong(name, why));
        }
        Some(table @ Value::Object(_)) => table.clone(),
        Some(Value::String(path)) => {
            let wrong =
                |why: &str| fields.wrong(name, &format!("the file {} {why}", shown(path, 200)));
            let bytes = file::read(folder, path).map_err(|why| wrong(&why))?;
            let schema = serde_json::from_slice(&bytes).map_err(|error| {
                wrong(&format!("is not JSON (line {}, column {})", error.line(), error.column()))
            })?;
            read.push(bytes);
            schema
        }
        Some(_) => return Err(fields.wrong(name, "it must be a table or the name of a file")),
    };
    if !schema.is_object() {
        return Err(fields.wrong(name, "it must be a JSON object"));
    }
    check_schema(&schema).map_err(|code| {
        let why = match code {
            Code::ToolSchemaTooLarge => "the schema is too large or costs too much to check with",
            _ => "it is not valid JSON Schema, or refers to something outside of itself",
        };
        fields.wrong(name, why)
    })?;
    Ok(Some(schema))
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(object) => object.values().any(holds_null),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => false,
    }
}
