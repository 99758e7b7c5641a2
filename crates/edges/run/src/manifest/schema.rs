//! Schemas: a table in the manifest, or a file of JSON beside it.

use std::path::Path;

use serde_json::{Map, Number, Value};
use toml::Value as Toml;
use wharf_engine::check_schema;
use wharf_vocab::{Code, Fault, shown};

use super::fields::Fields;
use super::file;

/// Reads a schema. The bytes of a file are added to `read`.
pub(super) fn read(
    fields: &Fields<'_>,
    name: &str,
    folder: &Path,
    read: &mut Vec<Vec<u8>>,
) -> Result<Option<Value>, Fault> {
    let schema = match fields.get(name) {
        None => return Ok(None),
        Some(Toml::Table(table)) => {
            let pairs = table.iter().map(|(key, value)| Some((key.clone(), to_json(value)?)));
            let pairs: Option<Map<_, _>> = pairs.collect();
            let why = "it holds a date or a number that JSON does not have";
            Value::Object(pairs.ok_or_else(|| fields.wrong(name, why))?)
        }
        Some(Toml::String(path)) => {
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

/// The same in JSON, unless JSON has nothing for it.
fn to_json(value: &Toml) -> Option<Value> {
    Some(match value {
        Toml::String(text) => Value::String(text.clone()),
        Toml::Integer(number) => Value::from(*number),
        Toml::Float(number) => Value::Number(Number::from_f64(*number)?),
        Toml::Boolean(flag) => Value::Bool(*flag),
        Toml::Datetime(_) => return None,
        Toml::Array(items) => Value::Array(items.iter().map(to_json).collect::<Option<_>>()?),
        Toml::Table(table) => {
            let pairs = table.iter().map(|(key, value)| Some((key.clone(), to_json(value)?)));
            Value::Object(pairs.collect::<Option<_>>()?)
        }
    })
}
