//! The schema of a question as a form, and a form's answer as a value.
//!
//! Clients show flat forms with plain fields. A question for such an object is shown as it is, one
//! for a plain value as a form with one field, and any other as a text field that takes JSON. What
//! comes back is checked by the schema of the question and not by the form, so a form may say less.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{McpField, McpFieldKind, McpForm, McpOpen, McpRevision};

use crate::shown;

/// The field for an answer that is no object of plain fields.
const ANSWER: &str = "answer";
/// Formats that clients know; one that knows them refuses others.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
/// Words of schemas that make one of several, which no form can show.
const COMPOSED: [&str; 9] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "patternProperties"];
/// Words that mark what nobody may type into a form.
const SECRETS: [&str; 2] = ["writeOnly", "x-wharf-secret"];
/// How deep a schema is searched for secrets.
const DEPTH_MAX: u32 = 64;

/// How a question is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AnswerForm {
    /// The object that is asked for, field by field.
    Fields(McpOpen<McpForm>),
    /// A plain value, in a field of its own.
    One(Box<McpOpen<McpField>>),
    /// Anything else, as JSON in a text field, of which this is said.
    Json(String),
}

impl AnswerForm {
    /// The form of a question with this schema, for clients of a revision.
    pub(super) fn of(schema: Option<&Value>, revision: McpRevision) -> Self {
        let Some(schema) = schema.filter(|schema| !says_nothing(schema)) else {
            return Self::One(McpOpen::boxed(text()));
        };
        let fields = fields(schema, revision).map(Self::Fields);
        let one = || field(schema, revision).map(|field| Self::One(Box::new(field)));
        fields.or_else(one).unwrap_or_else(|| {
            let schema = shown::line(&schema.to_string());
            Self::Json(format!("JSON that fits this schema: {schema}"))
        })
    }

    /// The form as clients are sent it.
    pub(super) fn requested(&self) -> McpOpen<McpForm> {
        let answer = match self {
            Self::Fields(form) => return form.clone(),
            Self::One(field) => McpOpen::clone(field),
            Self::Json(description) => {
                let title = Some("Answer as JSON".to_owned());
                McpField { title, description: Some(description.clone()), ..text() }.into()
            }
        };
        let form = McpForm {
            kind: "object".to_owned(),
            properties: BTreeMap::from([(ANSWER.to_owned(), answer)]),
            required: Some(vec![ANSWER.to_owned()]),
        };
        form.into()
    }

    /// The value that was filled in, or why there is none.
    pub(super) fn value(&self, content: Option<Object>) -> Result<Value, String> {
        let mut content = content.unwrap_or_default();
        if let Self::Fields(_) = self {
            return Ok(content.into());
        }
        let missing = || format!("The field `{ANSWER}` is missing.");
        let answer = content.remove(ANSWER).ok_or_else(missing)?;
        match (self, answer) {
            (Self::Json(_), Value::String(text)) => serde_json::from_str(&text)
                .map_err(|_| format!("The text in the field `{ANSWER}` must be JSON.")),
            (_, answer) => Ok(answer),
        }
    }
}

/// Whether a question with this schema asks for something that must not be typed into a form.
pub(super) fn asks_for_secret(schema: &Value) -> bool {
    is_secret(schema, DEPTH_MAX)
}

fn is_secret(schema: &Value, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    match schema {
        Value::Object(words) => {
            let marked = |word: &str| words.get(word) == Some(&Value::Bool(true));
            words.get("format").and_then(Value::as_str) == Some("password")
                || SECRETS.iter().any(|word| marked(word))
                || words.values().any(|inner| is_secret(inner, depth))
        }
        Value::Array(all) => all.iter().any(|inner| is_secret(inner, depth)),
        _ => false,
    }
}

fn says_nothing(schema: &Value) -> bool {
    match schema {
        Value::Object(words) => words.is_empty(),
        Value::Bool(anything) => *anything,
        _ => false,
    }
}

fn text() -> McpField {
    McpField { kind: "string".to_owned(), ..McpField::default() }
}

/// A schema of an object whose fields are all plain.
fn fields(schema: &Value, revision: McpRevision) -> Option<McpOpen<McpForm>> {
    let words = schema.as_object()?;
    if words.get("type")? != "object" || is_composed(words) {
        return None;
    }
    let properties = words.get("properties")?.as_object()?;
    let plain = |(name, schema): (&String, &Value)| Some((name.clone(), field(schema, revision)?));
    let properties = properties.iter().map(plain).collect::<Option<BTreeMap<_, _>>>()?;
    let others = words.iter().filter(|(word, _)| *word != "properties");
    let mut others: Object = others.map(|(word, value)| (word.clone(), value.clone())).collect();
    others.insert("properties".to_owned(), Object::new().into());
    let mut form = McpOpen::<McpForm>::deserialize(Value::Object(others)).ok()?;
    form.properties = properties;
    let known = |name: &String| form.properties.contains_key(name);
    form.required.iter().flatten().all(known).then_some(form)
}

/// A schema of a plain value.
fn field(schema: &Value, revision: McpRevision) -> Option<McpOpen<McpField>> {
    let mut words = schema.as_object()?.clone();
    if words.get("enum").is_some_and(Value::is_array) {
        // What can be chosen is text, or it is no field.
        words.entry("type").or_insert_with(|| "string".into());
    }
    let mut field = McpOpen::<McpField>::deserialize(Value::Object(words)).ok()?;
    let kind = field.field_kind()?;
    if is_composed(&field.rest) {
        return None;
    }
    if field.format.as_deref().is_some_and(|format| !FORMATS.contains(&format)) {
        field.format = None;
    }
    if revision.rules() > McpRevision::V2025_06_18 {
        return Some(field);
    }
    if kind != McpFieldKind::Boolean {
        field.default = None;
    }
    match kind {
        McpFieldKind::Some(_) => return None,
        McpFieldKind::One(choices) if field.one_of.take().is_some() => {
            let (values, names) = choices.into_iter().unzip();
            (field.values, field.enum_names) = (Some(values), Some(names));
        }
        _ => {}
    }
    Some(field)
}

fn is_composed(words: &Object) -> bool {
    COMPOSED.iter().any(|word| words.contains_key(*word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OF_06: McpRevision = McpRevision::V2025_06_18;
    const OF_11: McpRevision = McpRevision::V2025_11_25;

    fn shown(schema: &Value, revision: McpRevision) -> Value {
        AnswerForm::of(Some(schema), revision).requested().to_object().into()
    }

    #[test]
    fn m032_flat_objects_are_forms_as_they_are() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 9},
                "mail": {"type": "string", "format": "email", "description": "Yours."},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "share": {"type": "number"},
                "sure": {"type": "boolean", "default": true},
                "color": {"type": "string", "enum": ["red", "green"]},
            },
            "required": ["name"],
        });
        for revision in [OF_06, OF_11, McpRevision::V2026_07_28] {
            assert_eq!(shown(&schema, revision), schema, "{revision}");
        }
        let given = json!({"name": "a", "sure": false});
        let form = AnswerForm::of(Some(&schema), OF_06);
        assert_eq!(form.value(given.as_object().cloned()), Ok(given));
        assert_eq!(form.value(None), Ok(json!({})), "what is missing the schema says");
    }

    #[test]
    fn m032_titles_defaults_and_several_choices_come_with_2025_11_25() {
        let color = json!({"type": "string", "default": "r",
            "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]});
        let schema = json!({"type": "object", "properties": {"color": color}});
        assert_eq!(shown(&schema, OF_11), schema);
        let older = json!({"type": "object", "properties": {"color":
            {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}}});
        assert_eq!(shown(&schema, OF_06), older);
        let some = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}});
        let schema = json!({"type": "object", "properties": {"some": some}});
        assert_eq!(shown(&schema, OF_11), schema);
        assert!(matches!(AnswerForm::of(Some(&schema), OF_06), AnswerForm::Json(_)));
        assert!(matches!(AnswerForm::of(Some(&some), OF_11), AnswerForm::One(_)));
    }

    #[test]
    fn m032_a_plain_value_is_a_form_of_one_field() {
        for schema in [
            json!({"type": "string", "minLength": 2}),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "boolean"}),
            json!({"type": "string", "enum": ["a", "b"]}),
        ] {
            let form = AnswerForm::of(Some(&schema), OF_06);
            let requested = json!({
                "type": "object", "properties": {"answer": schema}, "required": ["answer"]});
            assert_eq!(Value::Object(form.requested().to_object()), requested);
            assert_eq!(form.value(json!({"answer": 3}).as_object().cloned()), Ok(json!(3)));
            assert!(form.value(Some(Object::new())).expect_err("no answer").contains("`answer`"));
        }
        let untyped = shown(&json!({"enum": ["a"]}), OF_11);
        assert_eq!(untyped["properties"]["answer"], json!({"type": "string", "enum": ["a"]}));
        for schema in [None, Some(json!({})), Some(json!(true))] {
            let form = AnswerForm::of(schema.as_ref(), OF_06).requested().to_object();
            assert_eq!(form["properties"], json!({"answer": {"type": "string"}}));
        }
    }

    #[test]
    fn m032_anything_richer_is_text_that_takes_json() {
        let number = json!({"type": "number"});
        for schema in [
            json!({"type": "array", "items": number}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"inner": {"type": "object"}}}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}),
            json!({"type": "object", "properties": {"a": {"type": "integer", "enum": [1, 2]}}}),
            json!({"type": "object", "properties": {}, "required": ["unlisted"]}),
            json!({"type": "object", "properties": {"a": number}, "anyOf": [{}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ] {
            let form = AnswerForm::of(Some(&schema), OF_11);
            assert!(matches!(&form, AnswerForm::Json(said) if said.contains("schema")), "{schema}");
            let field = &form.requested().to_object()["properties"]["answer"];
            assert_eq!(field["type"], "string", "{schema}");
            let text = |text: &str| json!({"answer": text}).as_object().cloned();
            assert_eq!(form.value(text("[1, {\"a\": null}]")), Ok(json!([1, {"a": null}])));
            assert!(form.value(text("no json")).expect_err("refused").contains("JSON"));
        }
    }

    #[test]
    fn m032_formats_that_clients_do_not_know_are_left_out() {
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "string", "format": "uuid"}, "at": {"type": "string", "format": "date"}}});
        let form = shown(&schema, OF_11);
        assert_eq!(form["properties"]["id"], json!({"type": "string"}));
        assert_eq!(form["properties"]["at"]["format"], "date");
    }

    #[test]
    fn m032_secrets_are_seen_at_any_depth() {
        for secret in [
            json!({"type": "string", "format": "password"}),
            json!({"type": "string", "writeOnly": true}),
            json!({"type": "object", "properties": {"k": {"x-wharf-secret": true}}}),
            json!({"anyOf": [{"type": "null"}, {"type": "string", "format": "password"}]}),
        ] {
            assert!(asks_for_secret(&secret), "{secret}");
        }
        let mut deep = json!({"type": "string"});
        assert!(!asks_for_secret(&deep));
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        assert!(asks_for_secret(&deep), "what cannot be looked through is not shown");
    }
}
