//! Evaluates expressions and templates of flows, within one bound for all that belong together.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_expression::{EvaluateError, NameScope, Program, References};
use wharf_vocab::limits::{EXPRESSION_OPERATIONS_MAX, EXPRESSION_RESULT_BYTES_MAX};
use wharf_vocab::{Code, Fault, Object};

use super::{Expression, Template, TemplatePart};

/// What is left of the work that expressions may take and of the room their results may have.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationBudget {
    operations: u64,
    bytes: usize,
}

impl Default for EvaluationBudget {
    fn default() -> Self {
        Self { operations: EXPRESSION_OPERATIONS_MAX, bytes: EXPRESSION_RESULT_BYTES_MAX }
    }
}

impl EvaluationBudget {
    /// What an expression gives.
    pub fn evaluate(&mut self, of: &Expression, scope: &NameScope<'_>) -> Result<Value, Fault> {
        let program = of.compile().map_err(|error| invalid(of, &error.to_string()))?;
        program.evaluate(scope, &mut self.operations, &mut self.bytes).map_err(
            |error| match error {
                EvaluateError::Fault(text) => invalid(of, &text),
                EvaluateError::Operations(_) => {
                    let text = format!("takes more than {EXPRESSION_OPERATIONS_MAX} operations");
                    limit(of, &text)
                }
                EvaluateError::Size(_) => {
                    limit(of, &format!("gives more than {EXPRESSION_RESULT_BYTES_MAX} bytes"))
                }
            },
        )
    }

    /// Whether a condition holds.
    pub fn holds(&mut self, of: &Expression, scope: &NameScope<'_>) -> Result<bool, Fault> {
        match self.evaluate(of, scope)? {
            Value::Bool(truth) => Ok(truth),
            _ => Err(invalid(of, "it is a condition and gives no truth value")),
        }
    }

    /// A value with the results of its expressions in their places.
    pub fn fill(&mut self, template: &Template, scope: &NameScope<'_>) -> Result<Value, Fault> {
        Ok(match template {
            Template::Literal(value) => value.clone(),
            Template::Whole(expression) => self.evaluate(expression, scope)?,
            Template::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TemplatePart::Plain(plain) => text.push_str(plain),
                        TemplatePart::Expression(expression) => {
                            match self.evaluate(expression, scope)? {
                                Value::String(result) => text.push_str(&result),
                                other => text.push_str(&other.to_string()),
                            }
                        }
                    }
                }
                Value::String(text)
            }
            Template::List(items) => {
                let filled: Result<Vec<Value>, Fault> =
                    items.iter().map(|item| self.fill(item, scope)).collect();
                Value::Array(filled?)
            }
            Template::Object(fields) => Value::Object(self.fields(fields, scope)?),
        })
    }

    fn fields(
        &mut self,
        fields: &BTreeMap<String, Template>,
        scope: &NameScope<'_>,
    ) -> Result<Object, Fault> {
        let mut object = Object::new();
        for (name, field) in fields {
            object.insert(name.clone(), self.fill(field, scope)?);
        }
        Ok(object)
    }
}

impl Expression {
    /// The expression, ready to be evaluated.
    pub(super) fn compile(&self) -> Result<Program, wharf_expression::CompileError> {
        Program::compile(self.as_str())
    }

    /// What it refers to; nothing if it does not compile.
    pub fn references(&self) -> References {
        self.compile().map(|program| program.references().clone()).unwrap_or_default()
    }
}

impl Template {
    /// What its expressions refer to.
    pub fn references(&self) -> References {
        let mut all = References::default();
        self.visit("", &mut |_, expression| all.paths.extend(expression.references().paths));
        all
    }
}

/// Longest part of an expression that an error repeats.
const SHOWN_CHARS: usize = 120;

fn shown(of: &Expression) -> String {
    let text = of.as_str();
    if text.chars().count() <= SHOWN_CHARS {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{beginning}…")
}

fn invalid(of: &Expression, text: &str) -> Fault {
    Fault::new(Code::FlowExpression, format!("The expression `{}`: {text}.", shown(of)))
}

fn limit(of: &Expression, text: &str) -> Fault {
    Fault::new(Code::FlowExpressionLimit, format!("The expression `{}` {text}.", shown(of)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fill(text: &Value, inputs: &Value) -> Result<Value, Fault> {
        let document = json!({"name": "x", "steps": [{"id": "a", "return": {"v": text}}],
            "output": {}});
        let document = crate::flow::Document::read(&document).expect("reads");
        let crate::flow::StepKind::Return(template) = &document.steps[0].kind else {
            panic!("a return");
        };
        let scope = NameScope::default().with("inputs", inputs);
        let filled = EvaluationBudget::default().fill(template, &scope)?;
        Ok(filled["v"].clone())
    }

    #[test]
    fn f004_templates_keep_types_and_write_results_into_texts() {
        let inputs = json!({"n": 2, "list": [1, "a"], "name": "Ada"});
        for (template, expected) in [
            (json!("${inputs.n}"), json!(2)),
            (json!("${inputs.list}"), json!([1, "a"])),
            (
                json!("Hi ${inputs.name}, ${inputs.n} of ${inputs.list}"),
                json!("Hi Ada, 2 of [1,\"a\"]"),
            ),
            (json!(["${inputs.n + 1}", {"k": "$${x}"}]), json!([3, {"k": "${x}"}])),
        ] {
            assert_eq!(fill(&template, &inputs), Ok(expected), "{template}");
        }
    }

    #[test]
    fn f004_faults_name_the_expression_and_no_value() {
        let secret = json!({"key": "s3cret"});
        let fault = fill(&json!("${inputs.key + 1}"), &secret).expect_err("no sense");
        assert_eq!(fault.code.as_str(), "flow.expression");
        assert!(fault.message.contains("inputs.key + 1"), "{fault}");
        assert!(!fault.message.contains("s3cret"), "{fault}");
    }

    #[test]
    fn f004_the_expressions_of_one_step_share_one_bound() {
        let inputs = json!((0..10_000).collect::<Vec<u32>>());
        let one = json!("${size(inputs.map(x, x))}");
        assert_eq!(fill(&one, &inputs), Ok(json!(10_000)));
        let many: Vec<Value> = vec![one; 10];
        let fault = fill(&json!(many), &inputs).expect_err("too much together");
        assert_eq!(fault.code.as_str(), "flow.expression_limit");
    }
}
