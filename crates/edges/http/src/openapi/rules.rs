//! What the document says beyond the types: which texts and numbers are taken, what every
//! operation has in common, and how pages and files are written.
//!
//! `rules.json` names what fits a parameter (by its name, which means the same everywhere, unless
//! its tag stands before it or its place behind it) and a field of a message (`Message.field`), in the words of JSON Schema. Two words are our own:
//! `choice` stands for one of the words of the vocabulary, and `"null": false` takes null away.

use serde_json::{Map, Value, json};

/// What fits parameters, fields and whole messages.
const RULES: &str = include_str!("rules.json");
/// Finishes a document that was made from routes and types.
pub(super) fn finish(document: &mut Value) {
    let rules: Value = serde_json::from_str(RULES).unwrap_or_default();
    document["servers"] = json!([{ "url": "/" }]);
    document["components"]["responses"] = common_answers();
    let schemas = &mut document["components"]["schemas"];
    for (name, rule) in entries(&rules["fields"]) {
        let found = name.split_once('.').and_then(|(message, field)| {
            schemas.get_mut(message)?.get_mut("properties")?.get_mut(field)
        });
        found.into_iter().for_each(|field| constrain(field, rule));
    }
    for (name, rule) in entries(&rules["schemas"]) {
        schemas.get_mut(name).into_iter().for_each(|schema| merge(schema, rule));
    }
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        if let Some(item) = name.strip_prefix("Page_") {
            // Items are of the type that is shown alone, too.
            schema["properties"]["items"]["items"] = reference("schemas", item);
        }
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, methods) in paths {
        for (_, operation) in methods.as_object_mut().into_iter().flatten() {
            finish_operation(operation, &rules["parameters"]);
        }
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Answers that operations have in common.
fn common_answers() -> Value {
    let error = |description: &str| {
        let schema = reference("schemas", "ErrorBody");
        json!({
            "description": description,
            "content": { "application/json": { "schema": schema } },
        })
    };
    json!({
        "NoToken": error("No token was sent, or none that is good here."),
        "OtherHost": error("The request names a host that this core does not serve."),
        "AnyError": error("Any other error."),
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Adds a rule to a schema.
fn constrain(schema: &mut Value, rule: &Value) {
    if rule["null"] == false {
        take_null_away(schema);
    }
    let mut rule = rule.as_object().cloned().unwrap_or_default();
    rule.remove("null");
    if let Some(items) = rule.get_mut("items") {
        let choice = items["choice"].as_str().map(|name| reference("schemas", name));
        choice.into_iter().for_each(|choice| *items = choice);
    }
    if let Some(Value::String(choice)) = rule.remove("choice") {
        let may_be_null = schema["type"].as_array().is_some_and(|all| all.contains(&json!("null")));
        let choice = reference("schemas", &choice);
        schema.as_object_mut().into_iter().for_each(|schema| drop(schema.remove("type")));
        let choice =
            if may_be_null { json!({ "oneOf": [{ "type": "null" }, choice] }) } else { choice };
        merge(schema, &choice);
    }
    merge(schema, &Value::Object(rule));
}

fn merge(into: &mut Value, from: &Value) {
    if let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) {
        into.extend(from.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// What may be left out is not null when it is there.
fn take_null_away(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let not_null = |schema: &&Value| schema["type"] != "null";
    let either = schema.get("oneOf").and_then(Value::as_array);
    let either: Option<Vec<Value>> =
        either.map(|all| all.iter().filter(not_null).cloned().collect());
    if let Some([Value::Object(only)]) = either.as_deref() {
        let only: Map<String, Value> = only.clone();
        schema.remove("oneOf");
        schema.extend(only);
    }
}

fn finish_operation(operation: &mut Value, rules: &Value) {
    let tag = operation["tags"][0].as_str().unwrap_or_default().to_owned();
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        let place = parameter["in"].as_str().unwrap_or_default().to_owned();
        let may_be_empty = parameter["in"] == "query" && parameter["required"] != true;
        let schema = &mut parameter["schema"];
        let names = [format!("{tag}.{name}"), format!("{name} in {place}"), name];
        let rule = names.iter().find_map(|name| rules.get(name));
        rule.into_iter().for_each(|rule| constrain(schema, rule));
        if may_be_empty && let Some(pattern) = schema["pattern"].as_str() {
            // A parameter that is empty counts as absent.
            schema["pattern"] = format!("^$|{pattern}").into();
        }
    }
    let is_open = operation["security"] == json!([{}]);
    let (status, answer) = if is_open { ("421", "OtherHost") } else { ("401", "NoToken") };
    if let Some(answers) = operation["responses"].as_object_mut() {
        answers.entry(status).or_insert_with(|| reference("responses", answer));
        answers.entry("default").or_insert_with(|| reference("responses", "AnyError"));
    }
    if let Some(operation) = operation.as_object_mut() {
        operation.retain(|_, value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_vocab::limits::{LOG_LINES_SHOWN_MAX, PAGE_ITEMS_MAX, UPLOAD_PARTS_MAX};

    #[test]
    fn rules_are_about_what_there_is_and_say_the_limits_that_hold() {
        let rules: Value = serde_json::from_str(RULES).expect("JSON");
        let document: Value = serde_json::from_str(&super::super::text(&crate::routes::all(), &[]))
            .expect("a document");
        let schemas = &document["components"]["schemas"];
        for (name, _) in entries(&rules["fields"]) {
            let (message, field) = name.split_once('.').expect("a field of a message");
            assert!(schemas[message]["properties"][field].is_object(), "there is no {name}");
        }
        for (name, _) in entries(&rules["schemas"]) {
            assert!(schemas[name].is_object(), "there is no {name}");
        }
        let max = |name: &str| rules["parameters"][name]["maximum"].as_u64();
        assert_eq!(max("limit"), Some(PAGE_ITEMS_MAX as u64));
        assert_eq!(max("lines"), Some(LOG_LINES_SHOWN_MAX as u64));
        assert_eq!(max("part"), Some(u64::from(UPLOAD_PARTS_MAX)));
    }

    #[test]
    fn null_is_taken_away_where_nobody_takes_it() {
        let mut schema = json!({"type": ["string", "null"], "pattern": "x"});
        take_null_away(&mut schema);
        assert_eq!(schema, json!({"type": "string", "pattern": "x"}));
        let mut schema = json!({"oneOf": [{"type": "null"}, {"$ref": "#/a"}]});
        take_null_away(&mut schema);
        assert_eq!(schema, json!({"$ref": "#/a"}));
        let mut schema = json!({"type": ["string", "null"]});
        constrain(&mut schema, &json!({"choice": "Mode"}));
        let mode = json!({"$ref": "#/components/schemas/Mode"});
        assert_eq!(schema, json!({"oneOf": [{"type": "null"}, mode]}));
    }
}
