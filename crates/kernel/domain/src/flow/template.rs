//! Expressions, and values with expressions in them.
//!
//! A text with `${…}` in it is a template. Where the expression is the whole text, its result keeps
//! its type; else results are written into the text. `$${` stands for `${` itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::Object;

/// The text of an expression, not evaluated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expression(Arc<str>);

impl Expression {
    /// An expression with this text. Whether it compiles is for a check to say.
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A value in which expressions may stand.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// No expression stands in it.
    Literal(Value),
    /// It is what an expression gives, whatever its type.
    Whole(Expression),
    /// A text with the results of expressions in it.
    Text(Vec<TemplatePart>),
    /// A list of which at least one element is no literal.
    List(Vec<Template>),
    /// An object of which at least one value is no literal.
    Object(BTreeMap<String, Template>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// As it stands.
    Plain(String),
    /// The result of an expression: a text as it is, everything else as JSON.
    Expression(Expression),
}

/// Why a text is no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It ends within an expression.
    #[error("a `${{` has no `}}`")]
    Open,
    /// Nothing stands between the braces.
    #[error("nothing stands between `${{` and `}}`")]
    Empty,
}

/// What begins an expression.
const BEGIN: &str = "${";
/// What stands for the beginning of an expression that is meant as text.
const ESCAPED: &str = "$${";

impl Template {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = parts(text)?;
        Ok(match parts.as_mut_slice() {
            [] => Self::Literal(Value::String(String::new())),
            [TemplatePart::Plain(text)] => Self::Literal(Value::String(std::mem::take(text))),
            [TemplatePart::Expression(expression)] => Self::Whole(expression.clone()),
            _ => Self::Text(parts),
        })
    }

    /// What an expression alone gives.
    pub fn of(expression: &Expression) -> Self {
        Self::Whole(expression.clone())
    }

    /// Whether no expression stands in it.
    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    /// Calls `visit` with every expression in it and the place where it stands below `place`.
    pub fn visit<'a>(&'a self, place: &str, visit: &mut dyn FnMut(String, &'a Expression)) {
        match self {
            Self::Literal(_) => {}
            Self::Whole(expression) => visit(place.to_owned(), expression),
            Self::Text(parts) => {
                for part in parts {
                    if let TemplatePart::Expression(expression) = part {
                        visit(place.to_owned(), expression);
                    }
                }
            }
            Self::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    item.visit(&format!("{place}[{at}]"), visit);
                }
            }
            Self::Object(fields) => {
                for (name, field) in fields {
                    let below =
                        if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                    field.visit(&below, visit);
                }
            }
        }
    }

    /// The JSON that it is read from.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Literal(value) => escaped(value),
            Self::Whole(expression) => Value::String(format!("${{{}}}", expression.as_str())),
            Self::Text(parts) => {
                let text = |part: &TemplatePart| match part {
                    TemplatePart::Plain(text) => text.replace(BEGIN, ESCAPED),
                    TemplatePart::Expression(expression) => format!("${{{}}}", expression.as_str()),
                };
                Value::String(parts.iter().map(text).collect())
            }
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                let field = |(name, field): (&String, &Self)| (name.clone(), field.to_value());
                Value::Object(fields.iter().map(field).collect())
            }
        }
    }
}

/// A literal as it is written where templates are read.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(BEGIN, ESCAPED)),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(object) => {
            let fields = object.iter().map(|(name, value)| (name.clone(), escaped(value)));
            Value::Object(fields.collect::<Object>())
        }
        other => other.clone(),
    }
}

/// The parts of a text, none of them empty.
fn parts(text: &str) -> Result<Vec<TemplatePart>, TemplateError> {
    let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix(ESCAPED) {
            plain.push_str(BEGIN);
            rest = after;
        } else if let Some(after) = rest.strip_prefix(BEGIN) {
            let end = end(after).ok_or(TemplateError::Open)?;
            let expression = Expression::new(&after[..end]);
            if expression.as_str().is_empty() {
                return Err(TemplateError::Empty);
            }
            if !plain.is_empty() {
                parts.push(TemplatePart::Plain(std::mem::take(&mut plain)));
            }
            parts.push(TemplatePart::Expression(expression));
            rest = &after[end + 1..];
        } else {
            plain.push('$');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(TemplatePart::Plain(plain));
    }
    Ok(parts)
}

/// Where the brace stands that ends an expression: one that no other opened, and not in a text.
fn end(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth == 0 => return Some(at),
            (None, b'}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expression(text: &str) -> Expression {
        Expression::new(text)
    }

    #[test]
    fn f003_a_text_that_is_one_expression_keeps_the_type_of_its_result() {
        let whole = Template::parse("${ inputs.n }").expect("a template");
        assert_eq!(whole, Template::Whole(expression("inputs.n")));
        assert_eq!(whole.to_value(), json!("${inputs.n}"));
    }

    #[test]
    fn f003_a_text_may_hold_several_expressions_with_braces_and_texts_in_them() {
        let read = Template::parse("a ${ {'k': '}'}.k } b $${x} $5 ${size(\"}\")}").expect("reads");
        let expected = vec![
            TemplatePart::Plain("a ".to_owned()),
            TemplatePart::Expression(expression("{'k': '}'}.k")),
            TemplatePart::Plain(" b ${x} $5 ".to_owned()),
            TemplatePart::Expression(expression("size(\"}\")")),
        ];
        assert_eq!(read, Template::Text(expected));
        let again = read.to_value();
        assert_eq!(Template::parse(again.as_str().expect("text")).expect("reads"), read);
    }

    #[test]
    fn f003_an_expression_that_does_not_end_is_no_template() {
        assert_eq!(Template::parse("a ${b"), Err(TemplateError::Open));
        assert_eq!(Template::parse("${'}"), Err(TemplateError::Open));
        assert_eq!(Template::parse("${ }"), Err(TemplateError::Empty));
        assert_eq!(Template::parse("$"), Ok(Template::Literal(json!("$"))));
    }
}
