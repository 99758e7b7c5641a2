//! From inputs as they came to inputs as the handler's type wants them.

use serde_json::Value;
use wharf_toolserver::{Call, Failure};
use wharf_wire::run_v1::code;

use crate::Object;
use crate::host::file::MARK;

/// The largest file that becomes a value.
const VALUE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a field wants of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    /// Nothing yet: the handler opens it.
    File,
    /// Its text.
    Text,
    /// Its JSON.
    Json,
    /// Whatever it is.
    Anything,
}

/// Reads what inputs refer to, as far as the schema wants values of them.
pub(super) async fn hydrate(schema: &Value, call: &Call) -> Result<Object, Failure> {
    let mut inputs = call.inputs.clone();
    for (key, value) in &mut inputs {
        let wants = wants(schema, key);
        if wants != Wants::File && call.files.is_reference(key, value) {
            let bytes = call.files.read(key, VALUE_BYTES_MAX).await?;
            *value = valued(key, &bytes, wants)?;
        }
    }
    Ok(inputs)
}

fn valued(key: &str, bytes: &[u8], wants: Wants) -> Result<Value, Failure> {
    let unfit = |what: &str| {
        Failure::new(code::INPUTS, format!("The file that the input {key:?} names is not {what}."))
    };
    let text = || std::str::from_utf8(bytes).map(|text| Value::String(text.to_owned()));
    match wants {
        Wants::Text => text().map_err(|_| unfit("text")),
        Wants::Json | Wants::File => serde_json::from_slice(bytes).map_err(|_| unfit("JSON")),
        Wants::Anything => match serde_json::from_slice(bytes) {
            Ok(value) => Ok(value),
            Err(_) => text().map_err(|_| unfit("text")),
        },
    }
}

/// What the schema says of one field.
fn wants(schema: &Value, key: &str) -> Wants {
    let Some(field) = schema.get("properties").and_then(|fields| fields.get(key)) else {
        return Wants::Anything;
    };
    wanted_by(schema, field)
}

fn wanted_by(schema: &Value, field: &Value) -> Wants {
    if field.get(MARK).is_some_and(|mark| mark == true) {
        return Wants::File;
    }
    if let Some(name) = field.get("$ref").and_then(Value::as_str) {
        let named = name.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
        // A definition that leads to itself wants a structure, so it is not followed further.
        return named
            .filter(|it| it.get("$ref").is_none())
            .map_or(Wants::Json, |field| wanted_by(schema, field));
    }
    if let Some(Value::Array(ways)) = field.get("anyOf") {
        let wanted = ways.iter().filter(|way| way.get("type").is_none_or(|kind| kind != "null"));
        let mut wanted = wanted.map(|way| match way.get("anyOf") {
            Some(_) => Wants::Json,
            None => wanted_by(schema, way),
        });
        let first = wanted.next().unwrap_or(Wants::Anything);
        return if wanted.all(|other| other == first) { first } else { Wants::Anything };
    }
    let is_text = |kind: &Value| kind == "string";
    match field.get("type") {
        Some(Value::Array(kinds)) if kinds.iter().any(is_text) => Wants::Text,
        Some(kind) if is_text(kind) => Wants::Text,
        Some(_) => Wants::Json,
        None => Wants::Anything,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{File, JsonSchema, schema};

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Input {
        prompt: String,
        maybe: Option<String>,
        kind: Kind,
        state: Option<State>,
        table: BTreeMap<String, u8>,
        image: File,
        mask: Option<File>,
        any: Value,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Kind {
        Large,
        Small,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct State {
        turns: Vec<String>,
    }

    #[test]
    fn t016_the_type_of_a_field_says_what_a_file_becomes() {
        let schema = schema::of_input::<Input>();
        for (key, expected) in [
            ("prompt", Wants::Text),
            ("maybe", Wants::Text),
            ("kind", Wants::Text),
            ("state", Wants::Json),
            ("table", Wants::Json),
            ("image", Wants::File),
            ("mask", Wants::File),
            ("any", Wants::Anything),
            ("unknown", Wants::Anything),
        ] {
            assert_eq!(wants(&schema, key), expected, "{key}: {schema}");
        }
    }

    #[test]
    fn t016_files_become_values() {
        let text = json!("{\"a\":1}");
        assert_eq!(valued("k", b"{\"a\":1}", Wants::Text), Ok(text));
        assert_eq!(valued("k", b"{\"a\":1}", Wants::Json), Ok(json!({"a": 1})));
        assert_eq!(valued("k", b"[1]", Wants::Anything), Ok(json!([1])));
        assert_eq!(valued("k", b"hello", Wants::Anything), Ok(json!("hello")));
        for (bytes, wants) in [
            (&b"\xff"[..], Wants::Text),
            (b"hello", Wants::Json),
            (b"NaN", Wants::Json),
            (b"\xff", Wants::Anything),
        ] {
            let failure = valued("k", bytes, wants).expect_err("unfit");
            assert_eq!(failure.code, "ERR_INPUTS");
        }
    }
}
