//! Inputs that somebody gives once for many runs, with expressions over what starts each of them,
//! and conditions on what happened.
//!
//! They are looked at when they are given and evaluated when something starts, both outside the
//! tasks of shards: either may take all of an [`EvaluationBudget`].

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_expression::NameScope;
use wharf_vocab::{Fault, Object};

use super::{EvaluationBudget, Expression, Template, TemplateError};

/// Whether an expression may stand in these inputs.
pub fn has_expressions(inputs: &Object) -> bool {
    fn any(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains("${"),
            Value::Array(items) => items.iter().any(any),
            Value::Object(object) => object.values().any(any),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    inputs.values().any(any)
}

/// Checks the expressions in inputs: that they can be read, and see nothing but these names.
pub fn check_given(inputs: &Object, field: &str, names: &[&str]) -> Result<(), Fault> {
    let at = |place: &str| if place.is_empty() { field.to_owned() } else { place.to_owned() };
    for (name, value) in inputs {
        let template = template(value).map_err(|error| {
            wrong(field, &at(&format!("{field}.{name}")), &format!("has a text where {error}"))
        })?;
        let mut found = Ok(());
        template.visit(&format!("{field}.{name}"), &mut |place, expression| {
            if found.is_ok() {
                found = check(expression, field, &place, names);
            }
        });
        found?;
    }
    Ok(())
}

/// Checks a condition: that it can be read, and sees nothing but these names.
pub fn check_condition(text: &str, field: &str, names: &[&str]) -> Result<(), Fault> {
    check(&Expression::new(text), field, field, names)
}

/// The inputs with the results of their expressions.
pub fn fill_given(inputs: &Object, scope: &NameScope<'_>) -> Result<Object, Fault> {
    let mut budget = EvaluationBudget::default();
    let mut filled = Object::new();
    for (name, value) in inputs {
        let template =
            template(value).map_err(|error| wrong(name, name, &format!("has {error}")))?;
        filled.insert(name.clone(), budget.fill(&template, scope)?);
    }
    Ok(filled)
}

/// Whether a condition holds.
pub fn holds(text: &str, scope: &NameScope<'_>) -> Result<bool, Fault> {
    EvaluationBudget::default().holds(&Expression::new(text), scope)
}

fn check(of: &Expression, field: &str, place: &str, names: &[&str]) -> Result<(), Fault> {
    let program = of.compile().map_err(|error| wrong(field, place, &error.to_string()))?;
    match program.references().roots().into_iter().find(|root| !names.contains(root)) {
        None => Ok(()),
        Some(unknown) => {
            let known = names.join(", ");
            let text = format!("refers to `{unknown}`; there is only {known}");
            Err(wrong(field, place, &text))
        }
    }
}

fn wrong(field: &str, place: &str, what: &str) -> Fault {
    Fault::invalid(field, format!("The expression in `{place}`: {what}."))
}

/// A value in which expressions may stand.
fn template(value: &Value) -> Result<Template, TemplateError> {
    Ok(match value {
        Value::String(text) => Template::parse(text)?,
        Value::Array(items) => {
            Template::List(items.iter().map(template).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let field = |(name, value): (&String, &Value)| Ok((name.clone(), template(value)?));
            Template::Object(object.iter().map(field).collect::<Result<BTreeMap<_, _>, _>>()?)
        }
        plain => Template::Literal(plain.clone()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_vocab::Code;

    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn f032_inputs_are_filled_and_keep_the_types_of_their_results() {
        let at = json!("2026-12-24T03:00:00Z");
        let scope = NameScope::default().with("planned_at", &at);
        let inputs = object(&json!({
            "day": "${planned_at.substring(0, 10)}",
            "text": "for ${planned_at.substring(0, 4)}, $${kept}",
            "n": "${1 + 1}",
            "list": ["${planned_at}", 3],
            "plain": {"a": true},
        }));
        assert!(has_expressions(&inputs));
        check_given(&inputs, "inputs", &["planned_at"]).expect("fits");
        let expected = json!({
            "day": "2026-12-24", "text": "for 2026, ${kept}", "n": 2,
            "list": ["2026-12-24T03:00:00Z", 3], "plain": {"a": true},
        });
        assert_eq!(fill_given(&inputs, &scope).expect("fills"), object(&expected));
        assert!(!has_expressions(&object(&json!({"a": ["$5", {"b": 1}]}))));
    }

    #[test]
    fn f032_what_cannot_be_meant_is_refused_when_it_is_given() {
        for (inputs, part) in [
            (json!({"a": "${planned_at"}), "inputs.a"),
            (json!({"a": "${1 +}"}), "inputs.a"),
            (json!({"a": {"b": ["${steps.x}"]}}), "inputs.a.b[0]"),
            (json!({"a": "${now}"}), "`now`"),
        ] {
            let fault = check_given(&object(&inputs), "inputs", &["planned_at"]);
            let fault = fault.expect_err("refused");
            assert_eq!(fault.details["field"], "inputs", "{inputs}");
            assert!(fault.message.contains(part), "{}", fault.message);
        }
        assert!(check_condition("status == 'failed'", "when", &["status"]).is_ok());
        assert!(check_condition("state == 'failed'", "when", &["status"]).is_err());
    }

    #[test]
    fn f032_inputs_share_one_bound() {
        let scope = NameScope::default();
        let many = "${[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, \
                    [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, a + b + c + d))))}";
        let inputs: Object = (0..20).map(|n| (format!("i{n}"), json!(many))).collect();
        check_given(&inputs, "inputs", &[]).expect("each fits");
        assert!(fill_given(&inputs, &scope).expect_err("too much").is(Code::FlowExpressionLimit));
    }
}
