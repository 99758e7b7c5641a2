//! Errors never repeat what was sent: a canary in every field of every route that takes a body.
//! They name fields, also those that a caller made up.

use serde_json::{Map, Value, json};

use crate::support::{Api, TestHome};

const CANARY: &str = "c4nary-value";
/// A canary among numbers.
const NUMBER: u64 = 987_612_345_987;

/// What a schema stands for, without references.
fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(pointer) => document.pointer(pointer.trim_start_matches('#')).expect("it is there"),
        None => schema,
    }
}

/// A value that fits a schema well enough to get further than its field.
fn plausible(document: &Value, schema: &Value) -> Value {
    let schema = resolved(document, schema);
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("string") => json!("x"),
        _ => json!({}),
    }
}

/// Bodies with a canary in one field each.
fn bodies(document: &Value, schema: &Value) -> Vec<Value> {
    let schema = resolved(document, schema);
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut usual = Map::new();
    for name in required.iter().filter_map(Value::as_str) {
        usual.insert(name.to_owned(), plausible(document, &fields[name]));
    }
    let mut all = vec![json!(CANARY), json!([CANARY]), json!({"unknown": CANARY})];
    for name in fields.keys() {
        for value in [
            json!(CANARY),
            json!([CANARY]),
            json!([{"key": CANARY}]),
            json!({"key": CANARY}),
            json!({"key": {"x": [CANARY]}}),
            json!(NUMBER),
        ] {
            let mut body = usual.clone();
            body.insert(name.clone(), value);
            all.push(Value::Object(body));
        }
    }
    all
}

#[test]
fn no_error_repeats_a_value() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let document = api.get("/openapi.json");
    let (mut routes, mut refused, mut echoes) = (0, 0, Vec::new());
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() {
                continue;
            }
            routes += 1;
            // Names in a path are shown: they are what is asked for.
            let path = path.replace("{world}", "default").replace(['{', '}'], "");
            for body in bodies(&document, schema) {
                let (status, answer) = api.ask(&method.to_ascii_uppercase(), &path, &body);
                if status < 400 {
                    continue;
                }
                refused += 1;
                let shown = answer.to_string();
                if shown.contains(CANARY) || shown.contains(&NUMBER.to_string()) {
                    echoes.push(format!("{method} {path} {body}: {shown}"));
                }
            }
        }
    }
    assert!(echoes.is_empty(), "{}", echoes.join("\n"));
    assert!(routes > 20 && refused > 300, "{routes} routes, {refused} refusals");
}
