//! Values that are no objects.
//!
//! Inside the core every tool takes and gives an object. A tool of another type has its value in
//! an object with the one key `value`; the schema in the catalog says so by a mark, and wherever
//! types are known the value is itself again.

use serde_json::{Map, Value, json};
use wharf_vocab::Object;

/// The mark in a schema of the catalog.
const MARK: &str = "x-wharf-value";
/// The one key.
const KEY: &str = "value";
/// How many references are followed to see what a schema describes.
const HOPS_MAX: usize = 16;
/// How many parts of a schema are looked at for the same reason.
const PARTS_MAX: usize = 1_000;

/// How a tool's values travel inside the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// They are objects.
    Object,
    /// They always stand under the one key.
    Wrapped,
    /// They may be anything; those that are no objects stand under the one key.
    Any,
}

impl Form {
    /// What the catalog's schema says.
    #[must_use]
    pub fn of(schema: &Value) -> Self {
        match schema.get(MARK) {
            Some(Value::Bool(true)) => Self::Wrapped,
            Some(Value::String(text)) if text == "any" => Self::Any,
            _ => Self::Object,
        }
    }

    /// A value as the core keeps it.
    #[must_use]
    pub fn pack(self, value: Value) -> Object {
        let wrap = |value| Object::from_iter([(KEY.to_owned(), value)]);
        match (self, value) {
            (Self::Object | Self::Any, Value::Null) => Object::new(),
            (Self::Object, Value::Object(object)) => object,
            // An object that looks like a wrapped value is wrapped, too, so that both come back
            // as they were.
            (Self::Any, Value::Object(object)) if !is_wrapped(&object) => object,
            (_, value) => wrap(value),
        }
    }

    /// A value as it is where its type is known.
    #[must_use]
    pub fn unpack(self, mut object: Object) -> Value {
        match self {
            Self::Wrapped => object.remove(KEY).unwrap_or_default(),
            Self::Any if is_wrapped(&object) => object.remove(KEY).unwrap_or_default(),
            Self::Object | Self::Any => Value::Object(object),
        }
    }
}

fn is_wrapped(object: &Object) -> bool {
    object.len() == 1 && object.contains_key(KEY)
}

/// The schema that the catalog keeps for values that a provider describes so; nothing describes
/// anything.
#[must_use]
pub fn kept(given: &Value) -> Value {
    match given {
        Value::Null | Value::Bool(true) => json!({"type": "object", MARK: "any"}),
        Value::Object(map) if is_anything(map) => {
            let mut kept = map.clone();
            kept.insert("type".to_owned(), "object".into());
            kept.insert(MARK.to_owned(), "any".into());
            Value::Object(kept)
        }
        Value::Object(map)
            if SchemaWalk { root: given, left: PARTS_MAX }.is_object(given, HOPS_MAX) =>
        {
            let mut kept = map.clone();
            kept.remove(MARK);
            Value::Object(kept)
        }
        other => wrapped(other),
    }
}

/// Whether a schema says nothing about the type of a value.
fn is_anything(schema: &Map<String, Value>) -> bool {
    const SAYING: [&str; 11] = [
        "type",
        "$ref",
        "$dynamicRef",
        "anyOf",
        "oneOf",
        "allOf",
        "const",
        "enum",
        "not",
        "if",
        "properties",
    ];
    !SAYING.iter().any(|key| schema.contains_key(*key))
}

/// Looks at what a schema describes. References can lead anywhere, also back, so what is looked at
/// is counted.
struct SchemaWalk<'a> {
    root: &'a Value,
    left: usize,
}

impl SchemaWalk<'_> {
    /// Whether a part describes objects and nothing else, as far as can be seen soon.
    fn is_object(&mut self, schema: &Value, hops: usize) -> bool {
        let Some(map) = schema.as_object().filter(|_| hops > 0 && self.left > 0) else {
            return false;
        };
        self.left -= 1;
        if let Some(kind) = map.get("type") {
            let only = |kinds: &Vec<Value>| kinds.len() == 1 && kinds[0] == "object";
            return kind == "object" || kind.as_array().is_some_and(only);
        }
        if map.contains_key("properties") {
            return true;
        }
        let parts = |key: &str| map.get(key).and_then(Value::as_array).filter(|it| !it.is_empty());
        for key in ["anyOf", "oneOf"] {
            let mut all = |parts: &Vec<Value>| parts.iter().all(|it| self.is_object(it, hops - 1));
            if parts(key).is_some_and(&mut all) {
                return true;
            }
        }
        let some = |parts: &Vec<Value>| parts.iter().any(|it| self.is_object(it, hops - 1));
        if parts("allOf").is_some_and(some) {
            return true;
        }
        let place = map.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
        let root = self.root;
        let pointed = place.and_then(|place| root.pointer(place));
        pointed.is_some_and(|found| self.is_object(found, hops - 1))
    }
}

/// Whether nothing is a value of the schema, so that it need not be given.
fn takes_null(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return *schema == Value::Bool(true) };
    let kind = map.get("type");
    let among = |kinds: &Vec<Value>| kinds.iter().any(|kind| kind == "null");
    let some = |key: &str| {
        let parts = map.get(key).and_then(Value::as_array);
        parts.is_some_and(|parts| parts.iter().any(takes_null))
    };
    kind.is_some_and(|kind| kind == "null" || kind.as_array().is_some_and(among))
        || some("anyOf")
        || some("oneOf")
}

/// The schema of an object that has a value of this schema under the one key.
fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut outer = json!({"type": "object", "additionalProperties": false, MARK: true});
    if !takes_null(schema) {
        outer["required"] = json!([KEY]);
    }
    if let Some(inner) = inner.as_object_mut() {
        inner.remove("$schema");
        inner.remove(MARK);
        // What is referred to keeps its place at the root.
        for name in ["$defs", "definitions"] {
            if let Some(definitions) = inner.remove(name) {
                outer[name] = definitions;
            }
        }
    }
    outer["properties"] = json!({ KEY: inner });
    moved(&mut outer);
    outer
}

/// Lets references to the former root lead to its new place.
fn moved(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(moved),
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                match (key.as_str(), item) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("$ref", Value::String(place)) => {
                        let kept =
                            place.starts_with("#/$defs/") || place.starts_with("#/definitions/");
                        if let Some(rest) = place.strip_prefix('#').filter(|_| !kept) {
                            *place = format!("#/properties/{KEY}{rest}");
                        }
                    }
                    (_, item) => moved(item),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k032_values_of_every_type_come_back_as_they_were() {
        let values = [
            json!(5),
            json!([1, {"a": 2}]),
            json!("text"),
            json!({"a": 1}),
            json!({"value": 5}),
            json!({"value": 5, "b": 1}),
            json!({"value": {"value": 5}}),
            json!({}),
        ];
        for form in [Form::Any, Form::Wrapped] {
            for value in &values {
                assert_eq!(form.unpack(form.pack(value.clone())), *value, "{form:?}");
            }
        }
        for value in values.iter().filter(|value| value.is_object()) {
            assert_eq!(Form::Object.unpack(Form::Object.pack(value.clone())), *value);
        }
        assert_eq!(Form::Wrapped.unpack(Form::Wrapped.pack(Value::Null)), Value::Null);
    }

    #[test]
    fn k032_only_schemas_of_other_types_are_wrapped() {
        let form = |schema: Value| Form::of(&kept(&schema));
        for object in [
            json!({"type": "object"}),
            json!({"properties": {"a": {}}}),
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
            json!({"oneOf": [{"type": "object"}, {"type": ["object"]}]}),
            json!({"allOf": [{"type": "object"}, {"minProperties": 1}]}),
        ] {
            assert_eq!(form(object.clone()), Form::Object, "{object}");
        }
        for any in [Value::Null, json!(true), json!({}), json!({"description": "whatever"})] {
            assert_eq!(form(any.clone()), Form::Any, "{any}");
        }
        for other in [
            json!({"type": "array", "items": {"type": "number"}}),
            json!({"type": ["object", "null"]}),
            json!({"enum": ["a", "b"]}),
            json!({"oneOf": [{"type": "object"}, {"type": "string"}]}),
            json!({"$ref": "#"}),
        ] {
            assert_eq!(form(other.clone()), Form::Wrapped, "{other}");
        }
    }

    #[test]
    fn k032_a_schema_that_leads_back_to_itself_is_looked_at_for_a_short_time_only() {
        let many = vec![json!({"$ref": "#"}); 1_000];
        for key in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(Form::of(&kept(&json!({ key: many }))), Form::Wrapped, "{key}");
        }
    }

    #[test]
    fn k032_a_wrapped_schema_checks_what_the_schema_itself_checked() {
        let list = json!({
            "$defs": {"Item": {"type": "number"}},
            "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Item"}},
                      {"type": "array", "items": {"$ref": "#"}}],
        });
        let kept = kept(&list);
        assert_eq!(kept["$defs"]["Item"], json!({"type": "number"}));
        assert_eq!(kept["properties"]["value"]["anyOf"][0]["items"]["$ref"], "#/$defs/Item");
        assert_eq!(kept["properties"]["value"]["anyOf"][1]["items"]["$ref"], "#/properties/value");
        assert_eq!(kept["required"], json!(["value"]));
        assert_eq!(wrapped(&json!({"type": "null"})).get("required"), None);
    }
}
