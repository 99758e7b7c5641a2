//! Schemas of servers, made fit for the catalog or found unfit.
//!
//! A schema is of 2020-12 unless it says that it is of draft-07; such a one is written anew in the
//! words of 2020-12. Nothing that a schema refers to is ever fetched: what it does not have within
//! itself makes it unfit.

use serde_json::{Map, Value, json};
use wharf_vocab::Object;
use wharf_vocab::limits::{JSON_DEPTH_MAX, SCHEMA_BYTES_MAX};

use crate::blocks::MCP_OUTPUTS;

/// What `$schema` may say, without an empty fragment.
const NEWEST: &str = "https://json-schema.org/draft/2020-12/schema";
const DRAFT_7: [&str; 2] =
    ["http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema"];
const DIALECT: &str = "$schema";
/// What the schema of structured content is called inside of that of the outputs, so that its
/// references lead to itself.
const STRUCTURED_ID: &str = "urn:wharf:structured";
/// What counts beside a reference of draft-07.
const BESIDE_REF: [&str; 9] = [
    "$ref",
    "$defs",
    "definitions",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "$id",
];

/// A schema that the catalog takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FitSchema {
    /// The schema, of 2020-12.
    pub(super) schema: Value,
    /// How many regular expressions it has.
    pub(super) patterns: u64,
}

/// The schema of a tool's arguments. What is wrong is the end of a sentence.
pub(super) fn arguments(schema: &Object) -> Result<FitSchema, String> {
    let kind = schema.get("type");
    if kind.is_some_and(|kind| kind != "object") {
        return Err("its input schema is not that of an object".to_owned());
    }
    let schema = modern(schema).map_err(|why| format!("its input schema {why}"))?;
    judged(schema).map_err(|why| format!("its input schema {why}"))
}

/// The schema of a tool's outputs, as runs have them, for one whose results have this schema.
pub(super) fn outputs(schema: Option<&Object>) -> Result<FitSchema, String> {
    let mut outputs = json!({
        "type": "object",
        MCP_OUTPUTS: true,
        "properties": {"content": {"type": "array"}},
        "required": ["content"],
    });
    if let Some(schema) = schema {
        let mut structured = modern(schema).map_err(|why| format!("its output schema {why}"))?;
        if let Value::Object(structured) = &mut structured {
            structured.remove(DIALECT);
            structured.entry("$id").or_insert_with(|| STRUCTURED_ID.into());
        }
        outputs["properties"]["structured"] = structured;
        outputs["required"] = json!(["content", "structured"]);
    }
    judged(outputs).map_err(|why| format!("its output schema {why}"))
}

fn judged(schema: Value) -> Result<FitSchema, String> {
    let patterns = wharf_engine::schema_patterns(&schema);
    let patterns = patterns.map_err(|why| why.trim_end_matches('.').to_owned())?;
    Ok(FitSchema { schema, patterns })
}

/// A schema in the words of 2020-12.
fn modern(schema: &Object) -> Result<Value, String> {
    let bytes = wharf_vocab::json::json_bytes(schema);
    if bytes > SCHEMA_BYTES_MAX {
        return Err(format!("is {bytes} bytes long; {SCHEMA_BYTES_MAX} are allowed"));
    }
    if is_deeper(schema.values(), JSON_DEPTH_MAX - 1) {
        return Err(format!("is nested more than {JSON_DEPTH_MAX} deep"));
    }
    let dialect = match schema.get(DIALECT) {
        None => NEWEST,
        Some(Value::String(dialect)) => dialect.strip_suffix('#').unwrap_or(dialect),
        Some(_) => "",
    };
    match dialect {
        NEWEST => Ok(Value::Object(schema.clone())),
        _ if DRAFT_7.contains(&dialect) => {
            let mut schema = from_draft_7(schema.clone());
            schema.remove(DIALECT);
            Ok(Value::Object(schema))
        }
        _ => Err("is of neither JSON Schema 2020-12 nor draft-07".to_owned()),
    }
}

fn is_deeper<'a>(values: impl Iterator<Item = &'a Value>, levels: usize) -> bool {
    // Reading a message has bounded how deep this goes.
    let deeper = |value: &'a Value| match value {
        Value::Object(fields) => levels == 0 || is_deeper(fields.values(), levels - 1),
        Value::Array(items) => levels == 0 || is_deeper(items.iter(), levels - 1),
        _ => false,
    };
    let mut values = values;
    values.any(deeper)
}

/// Writes a schema of draft-07 in the words of 2020-12.
fn from_draft_7(mut schema: Object) -> Object {
    if schema.contains_key("$ref") {
        schema.retain(|key, _| BESIDE_REF.contains(&key.as_str()) || key == DIALECT);
    }
    if let Some(anchor) =
        schema.get("$id").and_then(Value::as_str).and_then(|id| id.strip_prefix('#'))
    {
        let anchor = Value::from(anchor);
        schema.remove("$id");
        schema.insert("$anchor".to_owned(), anchor);
    }
    let rest = schema.remove("additionalItems");
    if schema.get("items").is_some_and(Value::is_array) {
        let places = schema.remove("items");
        schema.extend(places.map(|places| ("prefixItems".to_owned(), places)));
        schema.extend(rest.map(|rest| ("items".to_owned(), rest)));
    }
    depend(&mut schema);
    for (key, value) in &mut schema {
        match (key.as_str(), &mut *value) {
            (
                "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas",
                Value::Object(all),
            ) => all.values_mut().for_each(rewrite),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(rewrite);
            }
            (
                "items"
                | "additionalProperties"
                | "contains"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else",
                each,
            ) => rewrite(each),
            _ => {}
        }
    }
    schema
}

fn rewrite(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        *fields = from_draft_7(std::mem::take(fields));
    }
}

/// What one keyword said of draft-07 two say now.
fn depend(schema: &mut Object) {
    let Some(Value::Object(all)) = schema.remove("dependencies") else { return };
    let (mut required, mut schemas) = (Map::new(), Map::new());
    for (name, wanted) in all {
        match wanted {
            Value::Array(_) => required.insert(name, wanted),
            _ => schemas.insert(name, wanted),
        };
    }
    for (key, all) in [("dependentRequired", required), ("dependentSchemas", schemas)] {
        if !all.is_empty() {
            schema.insert(key.to_owned(), all.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        }
    }

    fn refused(schema: Value) -> String {
        arguments(&object(schema)).expect_err("unfit")
    }

    fn deep(levels: usize) -> Value {
        (1..levels).fold(json!({"type": "object"}), |inner, n| match n % 2 {
            1 => json!({ "a": inner }),
            _ => json!({ "properties": inner }),
        })
    }

    #[test]
    fn m054_schemas_that_the_catalog_does_not_take_are_unfit_with_a_reason() {
        for (schema, why) in [
            (json!({"type": "array"}), "not that of an object"),
            (json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "neither JSON Schema"),
            (json!({"$schema": 7}), "neither JSON Schema"),
            (json!({"properties": {"a": {"$ref": "https://example.dev/a.json"}}}), "outside"),
            (json!({"properties": {"a": {"$ref": "a.json#/b"}}}), "outside"),
            (json!({"type": "object", "properties": 7}), "not valid JSON Schema"),
            (json!({"properties": {"a": {"items": [{"type": "string"}]}}}), "not valid"),
            (json!({"description": "x".repeat(SCHEMA_BYTES_MAX)}), "bytes long"),
            (deep(JSON_DEPTH_MAX + 1), "deep"),
        ] {
            let refused = refused(schema);
            assert!(refused.starts_with("its input schema ") && refused.contains(why), "{refused}");
        }
        arguments(&object(deep(JSON_DEPTH_MAX))).expect("as deep as may be");
        let wrong = object(json!({"type": "object", "$ref": "http://127.0.0.1/canary"}));
        assert!(outputs(Some(&wrong)).expect_err("unfit").starts_with("its output schema "));
    }

    #[test]
    fn m054_schemas_of_2020_12_stay_as_they_are() {
        for schema in [
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                   "$defs": {"a": {"$anchor": "here"}}, "properties": {"a": {"$ref": "#here"}}}),
            json!({"type": "object", "properties": {"dependencies": {"type": "string"}}}),
            json!({}),
        ] {
            assert_eq!(arguments(&object(schema.clone())).expect("fits").schema, schema);
        }
    }

    #[test]
    fn m054_schemas_of_draft_7_are_written_anew() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "pair": {"items": [{"type": "string"}, {"$ref": "#/definitions/n", "minimum": 9}],
                         "additionalItems": false},
                "list": {"type": "array", "items": {"$ref": "#name"}, "additionalItems": false},
                "dependencies": {"type": "string", "default": {"items": [1]}},
            },
            "dependencies": {"pair": ["list"], "list": {"required": ["pair"]}},
            "definitions": {"n": {"type": "integer"}, "s": {"$id": "#name", "type": "string"}},
        });
        let written = json!({
            "type": "object",
            "properties": {
                "pair": {"prefixItems": [{"type": "string"}, {"$ref": "#/definitions/n"}],
                         "items": false},
                "list": {"type": "array", "items": {"$ref": "#name"}},
                "dependencies": {"type": "string", "default": {"items": [1]}},
            },
            "dependentRequired": {"pair": ["list"]},
            "dependentSchemas": {"list": {"required": ["pair"]}},
            "definitions": {"n": {"type": "integer"}, "s": {"$anchor": "name", "type": "string"}},
        });
        assert_eq!(arguments(&object(schema)).expect("fits").schema, written);
    }

    #[test]
    fn m059_the_schema_of_results_stands_inside_of_that_of_outputs() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}, "self": {"$ref": "#"}},
            "$defs": {"a": {"type": "integer"}},
        });
        let outputs_schema = outputs(Some(&object(schema.clone()))).expect("fits").schema;
        assert_eq!(outputs_schema[MCP_OUTPUTS], true);
        let structured = &outputs_schema["properties"]["structured"];
        assert_eq!(structured["properties"], schema["properties"], "references stay");
        let any = outputs(None).expect("fits").schema;
        assert_eq!(any["required"], json!(["content"]));
        let list = json!({"type": "array", "items": {"type": "integer"}});
        outputs(Some(&object(list))).expect("results may be anything");
    }
}
