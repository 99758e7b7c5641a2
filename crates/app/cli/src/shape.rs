//! A look at a JSON Schema: enough to type what a person writes, and to ask for it.
//!
//! It does not validate; the core does that for inputs and the form does it for answers.

use serde_json::{Number, Value};

/// How many references are followed before a schema counts as circular.
const REFERENCES_MAX: usize = 16;

/// The order in which types are tried when a schema allows several: what is hardest to hit first.
const ORDER: [&str; 7] = ["null", "boolean", "integer", "number", "array", "object", "string"];

/// One place in a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaNode<'a> {
    root: &'a Value,
    node: &'a Value,
}

impl<'a> SchemaNode<'a> {
    /// The schema as a whole.
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root, node: root }.resolved()
    }

    fn at(self, node: &'a Value) -> Self {
        Self { root: self.root, node }.resolved()
    }

    /// The place a local reference points to; anything else stays where it is.
    fn resolved(mut self) -> Self {
        for _ in 0..REFERENCES_MAX {
            let target = self
                .node
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|reference| reference.strip_prefix('#'))
                .and_then(|pointer| self.root.pointer(pointer));
            match target {
                Some(node) => self.node = node,
                None => break,
            }
        }
        self
    }

    /// The schema of this place with the definitions it may refer to.
    pub(crate) fn standalone(self) -> Value {
        let mut schema = self.node.clone();
        if let (Value::Object(schema), Value::Object(root)) = (&mut schema, self.root) {
            for key in ["$defs", "definitions"] {
                if let Some(definitions) = root.get(key) {
                    schema.entry(key).or_insert_with(|| definitions.clone());
                }
            }
        }
        schema
    }

    /// The types that are allowed; none means any.
    pub(crate) fn types(self) -> Vec<&'a str> {
        match self.node.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ if self.node.get("properties").is_some() => vec!["object"],
            _ => Vec::new(),
        }
    }

    /// Whether a value of this type, and of no other but null, is wanted.
    pub(crate) fn is_only(self, name: &str) -> bool {
        let types = self.types();
        types.contains(&name) && types.iter().all(|t| *t == name || *t == "null")
    }

    /// The only values that are allowed, if the schema names them.
    pub(crate) fn choices(self) -> Option<Vec<&'a Value>> {
        if let Some(value) = self.node.get("const") {
            return Some(vec![value]);
        }
        self.node.get("enum").and_then(Value::as_array).map(|values| values.iter().collect())
    }

    /// The fields of an object, in the order of their names.
    pub(crate) fn fields(self) -> Vec<(&'a str, SchemaNode<'a>)> {
        self.node
            .get("properties")
            .and_then(Value::as_object)
            .map(|fields| fields.iter().map(|(key, node)| (key.as_str(), self.at(node))).collect())
            .unwrap_or_default()
    }

    /// One field of an object.
    pub(crate) fn field(self, key: &str) -> Option<SchemaNode<'a>> {
        let node = self.node.get("properties")?.get(key)?;
        Some(self.at(node))
    }

    /// Whether the object must have the field.
    pub(crate) fn requires(self, key: &str) -> bool {
        self.node
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|keys| keys.iter().any(|name| name == key))
    }

    /// Whether the object takes no fields but those it names.
    pub(crate) fn is_closed(self) -> bool {
        self.node.get("additionalProperties") == Some(&Value::Bool(false))
    }

    /// What an array holds.
    pub(crate) fn items(self) -> Option<SchemaNode<'a>> {
        self.node.get("items").filter(|node| node.is_object()).map(|node| self.at(node))
    }

    /// What is taken when nothing is said.
    pub(crate) fn default(self) -> Option<&'a Value> {
        self.node.get("default")
    }

    /// What the schema says about itself in words.
    pub(crate) fn words(self) -> Option<&'a str> {
        ["description", "title"].into_iter().find_map(|key| self.node.get(key)?.as_str())
    }

    /// The type in a few words.
    pub(crate) fn kind(self) -> String {
        self.kind_within(REFERENCES_MAX)
    }

    fn kind_within(self, depth: usize) -> String {
        let any = || "any".to_owned();
        if depth == 0 {
            return any();
        }
        if let Some(choices) = self.choices() {
            return choices.into_iter().map(plain_text).collect::<Vec<_>>().join("|");
        }
        let types = self.types();
        if types == ["array"] {
            let items = self.items().map_or_else(any, |items| items.kind_within(depth - 1));
            return format!("list of {items}");
        }
        if !types.is_empty() {
            return types.join("|");
        }
        let kinds: Vec<_> =
            self.alternatives().into_iter().map(|shape| shape.kind_within(depth - 1)).collect();
        if kinds.is_empty() { any() } else { kinds.join("|") }
    }

    fn alternatives(self) -> Vec<SchemaNode<'a>> {
        ["anyOf", "oneOf"]
            .into_iter()
            .find_map(|key| self.node.get(key)?.as_array())
            .map(|nodes| nodes.iter().map(|node| self.at(node)).collect())
            .unwrap_or_default()
    }

    /// Reads text as the type this place wants; the error completes "key must be …".
    pub(crate) fn read(self, text: &str) -> Result<Value, String> {
        self.read_within(text, REFERENCES_MAX)
    }

    fn read_within(self, text: &str, depth: usize) -> Result<Value, String> {
        if let Some(choices) = self.choices() {
            return choices
                .iter()
                .find(|choice| plain_text(choice) == text)
                .map(|choice| (*choice).clone())
                .ok_or_else(|| {
                    let names: Vec<_> = choices.into_iter().map(plain_text).collect();
                    format!("one of: {}", names.join(", "))
                });
        }
        let types = self.types();
        if types.is_empty() {
            let mut alternatives = self.alternatives();
            if alternatives.is_empty() || depth == 0 {
                return Ok(guess(text));
            }
            // Any text is a string, so a string is only what nothing else would take.
            alternatives.sort_by_key(|shape| shape.types().contains(&"string"));
            let read = |shape: &SchemaNode<'_>| shape.read_within(text, depth - 1).ok();
            return alternatives.iter().find_map(read).ok_or_else(|| self.kind());
        }
        let wanted = ORDER.into_iter().filter(|name| types.contains(name));
        wanted.into_iter().find_map(|name| self.read_type(name, text)).ok_or_else(|| {
            let articled = |name: &&str| match *name {
                "integer" => "a whole number".to_owned(),
                "number" => "a number".to_owned(),
                "boolean" => "true or false".to_owned(),
                "array" => "a JSON array".to_owned(),
                "object" => "a JSON object".to_owned(),
                other => other.to_owned(),
            };
            types.iter().map(articled).collect::<Vec<_>>().join(" or ")
        })
    }

    fn read_type(self, name: &str, text: &str) -> Option<Value> {
        match name {
            "null" => (text == "null").then_some(Value::Null),
            "boolean" => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "y" => Some(Value::Bool(true)),
                "false" | "no" | "n" => Some(Value::Bool(false)),
                _ => None,
            },
            "integer" => read_integer(text).map(Value::Number),
            "number" => read_integer(text)
                .or_else(|| text.parse().ok().and_then(Number::from_f64))
                .map(Value::Number),
            "array" => serde_json::from_str(text).ok().filter(Value::is_array),
            "object" => serde_json::from_str(text).ok().filter(Value::is_object),
            "string" => Some(Value::String(text.to_owned())),
            _ => None,
        }
    }

    /// An example of a value, for hints.
    pub(crate) fn example(self) -> String {
        if let Some(choice) = self.choices().and_then(|choices| choices.first().copied()) {
            return plain_text(choice);
        }
        if let Some(default) = self.default() {
            return plain_text(default);
        }
        let types = self.types();
        let name = types.iter().find(|name| **name != "null").copied();
        match name {
            Some("boolean") => "true".to_owned(),
            Some("integer") => "3".to_owned(),
            Some("number") => "0.5".to_owned(),
            Some("array") => "[]".to_owned(),
            Some("object") => "{}".to_owned(),
            _ => "TEXT".to_owned(),
        }
    }
}

fn read_integer(text: &str) -> Option<Number> {
    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// What text most likely means when nothing says so: JSON if it is JSON, else itself.
pub(crate) fn guess(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// A value as a person would type it.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, text: &str, expect: Result<Value, &str>) {
        let read = SchemaNode::new(schema).read(text);
        assert_eq!(read, expect.map_err(str::to_owned), "{schema} {text:?}");
    }

    #[test]
    fn text_becomes_what_the_schema_wants() {
        check(&json!({"type": "integer"}), "20", Ok(json!(20)));
        check(&json!({"type": "integer"}), "18446744073709551615", Ok(json!(u64::MAX)));
        check(&json!({"type": "integer"}), "2.5", Err("a whole number"));
        check(&json!({"type": "number"}), "2.5", Ok(json!(2.5)));
        check(&json!({"type": "number"}), "2", Ok(json!(2)));
        check(&json!({"type": "number"}), "NaN", Err("a number"));
        check(&json!({"type": "boolean"}), "yes", Ok(json!(true)));
        check(&json!({"type": "boolean"}), "maybe", Err("true or false"));
        check(&json!({"type": "string"}), "20", Ok(json!("20")));
        check(&json!({"type": "string"}), "", Ok(json!("")));
        check(&json!({"type": "array"}), "[1]", Ok(json!([1])));
        check(&json!({"type": "object"}), "[1]", Err("a JSON object"));
        check(&json!({"type": ["string", "null"]}), "null", Ok(json!(null)));
        check(&json!({"type": ["integer", "string"]}), "x5", Ok(json!("x5")));
        check(&json!({"enum": ["red", 3]}), "3", Ok(json!(3)));
        check(&json!({"enum": ["red", 3]}), "blue", Err("one of: red, 3"));
        check(&json!({"const": "only"}), "only", Ok(json!("only")));
    }

    #[test]
    fn what_no_schema_describes_is_guessed() {
        check(&json!({}), "5", Ok(json!(5)));
        check(&json!({}), "five", Ok(json!("five")));
        check(&json!(true), "{\"a\":1}", Ok(json!({"a": 1})));
    }

    #[test]
    fn references_and_alternatives_are_followed() {
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}});
        check(&schema, "7", Ok(json!(7)));
        check(&schema, "x", Err("a whole number"));
        let either = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
        check(&either, "7", Ok(json!(7)));
        check(&either, "x", Ok(json!("x")));
        let circular = json!({"$ref": "#"});
        check(&circular, "7", Ok(json!(7)));
        let nested = json!({"anyOf": [{"$ref": "#"}]});
        check(&nested, "7", Ok(json!(7)));
    }

    #[test]
    fn a_shape_is_named_in_words() {
        assert_eq!(SchemaNode::new(&json!({"type": "integer"})).kind(), "integer");
        assert_eq!(SchemaNode::new(&json!({"enum": ["a", "b"]})).kind(), "a|b");
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(SchemaNode::new(&list).kind(), "list of string");
        assert_eq!(SchemaNode::new(&json!({})).kind(), "any");
        assert_eq!(SchemaNode::new(&json!({"anyOf": [{"$ref": "#"}]})).kind(), "any");
    }
}
