//! What can be said about a tool's schema without a schema compiler: how large it is, how deep,
//! and whether it points outside of itself. Whether it is a valid schema is asked of the owner.

use serde_json::Value;
use wharf_vocab::{Code, Fault};

use super::CoreLimits;

/// Says whether a schema is valid JSON Schema and costs little enough to check values with. The
/// session asks only about schemas that are objects, small enough, and refer to nothing outside.
pub trait SchemaCheck: Send + Sync {
    /// Whether the schema is taken; else why not: [`Code::ToolSchemaTooLarge`] for one that costs
    /// too much, any other for one that is not valid. The session writes the message for the
    /// agent, so that no part of a schema is ever echoed.
    fn check(&self, schema: &Value) -> Result<(), Code>;
}

/// Takes every schema for valid.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnySchema;

impl SchemaCheck for AnySchema {
    fn check(&self, _schema: &Value) -> Result<(), Code> {
        Ok(())
    }
}

impl<F: Fn(&Value) -> Result<(), Code> + Send + Sync> SchemaCheck for F {
    fn check(&self, schema: &Value) -> Result<(), Code> {
        self(schema)
    }
}

/// Looks at one schema.
pub(super) fn check(
    schema: &Value,
    limits: &CoreLimits,
    valid: &dyn SchemaCheck,
) -> Result<(), Fault> {
    let invalid = |message: &str| Err(Fault::new(Code::ToolSchemaInvalid, message));
    if !schema.is_object() {
        return invalid("A schema must be a JSON object.");
    }
    let mut size = Size { bytes_left: limits.schema_bytes_max };
    if !size.fits(schema, limits.schema_depth_max) {
        let (bytes, depth) = (limits.schema_bytes_max, limits.schema_depth_max);
        return Err(Fault::new(
            Code::ToolSchemaTooLarge,
            format!("A schema may have at most {bytes} bytes and {depth} levels."),
        ));
    }
    if !is_self_contained(schema) {
        return invalid("A schema may refer only to parts of itself (`#…`).");
    }
    match valid.check(schema) {
        Ok(()) => Ok(()),
        Err(Code::ToolSchemaTooLarge) => Err(Fault::new(
            Code::ToolSchemaTooLarge,
            "The schema asks too much once its references are followed.",
        )),
        Err(_) => invalid(
            "The schema is not valid JSON Schema, or has a pattern that looks around or is too large.",
        ),
    }
}

/// Counts the JSON text of a value and stops as soon as it is too much, so that a huge schema
/// costs no more than a large one.
struct Size {
    bytes_left: usize,
}

impl Size {
    fn take(&mut self, bytes: usize) -> bool {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                true
            }
            None => false,
        }
    }

    fn fits(&mut self, value: &Value, levels: usize) -> bool {
        match value {
            Value::Null => self.take(4),
            Value::Bool(_) => self.take(5),
            Value::Number(number) => self.take(number.to_string().len()),
            Value::String(text) => self.take(text.len() + 2),
            Value::Array(items) => {
                levels > 0
                    && self.take(2)
                    && items.iter().all(|item| self.take(1) && self.fits(item, levels - 1))
            }
            Value::Object(fields) => {
                levels > 0
                    && self.take(2)
                    && fields
                        .iter()
                        .all(|(key, item)| self.take(key.len() + 4) && self.fits(item, levels - 1))
            }
        }
    }
}

/// Whether every reference stays inside the schema. Text under a reference keyword is looked at
/// wherever it stands: a schema that hides an address in an example is not worth the risk.
fn is_self_contained(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_self_contained),
        Value::Object(fields) => fields.iter().all(|(key, item)| match (key.as_str(), item) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                target.starts_with('#')
            }
            _ => is_self_contained(item),
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn verdict(schema: &Value) -> Option<&'static str> {
        check(schema, &CoreLimits::default(), &AnySchema).err().map(|fault| match fault.code {
            wharf_vocab::FaultCode::Known(code) => code.as_str(),
            wharf_vocab::FaultCode::Provider(_) => "foreign",
        })
    }

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!({}), |inner, _| json!({"not": inner}))
    }

    #[test]
    fn r072_a_schema_is_an_object_and_the_owner_calls_it_valid() {
        for wrong in [json!(null), json!([]), json!("object"), json!(true), json!(7)] {
            assert_eq!(verdict(&wrong), Some("tool.schema_invalid"), "{wrong}");
        }
        let never = |_: &Value| Err(Code::ToolSchemaInvalid);
        let refused = check(&json!({}), &CoreLimits::default(), &never).expect_err("refused");
        assert!(refused.is(Code::ToolSchemaInvalid));
    }

    #[test]
    fn r073_a_schema_that_its_owner_finds_too_dear_is_too_large() {
        let dear = |_: &Value| Err(Code::ToolSchemaTooLarge);
        let refused = check(&json!({}), &CoreLimits::default(), &dear).expect_err("refused");
        assert!(refused.is(Code::ToolSchemaTooLarge));
    }

    #[test]
    fn r073_size_and_depth_are_limited() {
        let of_size = |bytes: usize| json!({"description": "x".repeat(bytes)});
        assert_eq!(verdict(&of_size(65_000)), None);
        assert_eq!(verdict(&of_size(65_536)), Some("tool.schema_too_large"));
        assert_eq!(verdict(&of_size(3_000_000)), Some("tool.schema_too_large"));
        assert_eq!(verdict(&json!({"enum": vec![0; 100_000]})), Some("tool.schema_too_large"));
        assert_eq!(verdict(&nested(32)), None);
        assert_eq!(verdict(&nested(33)), Some("tool.schema_too_large"));
    }

    #[test]
    fn r074_references_stay_inside() {
        assert_eq!(verdict(&json!({"$ref": "#/$defs/a", "$defs": {"a": {}}})), None);
        assert_eq!(verdict(&json!({"properties": {"$ref": {"type": "string"}}})), None);
        for target in ["https://example.dev/s", "file:///etc/passwd", "other.json", "/a", ""] {
            for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
                let schema = json!({"properties": {"a": {"anyOf": [{key: target}]}}});
                assert_eq!(verdict(&schema), Some("tool.schema_invalid"), "{key} {target}");
            }
        }
    }
}
