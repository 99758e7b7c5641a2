//! Reads documents from JSON, naming the place of everything that is wrong.

mod fields;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wharf_vocab::limits::{
    EXPRESSION_BYTES_MAX, FLOW_BYTES_MAX, FLOW_CLOSING_MAX_MS, FLOW_DEADLINE_MAX_MS,
};
use wharf_vocab::{json, quantity};

use super::step::is_word;
use super::{CodePattern, Document, Expression, FlowFinding, FlowLimits, StepId, Template};
use crate::Audience;
use fields::Fields;

/// Longest name of a flow.
const NAME_BYTES_MAX: usize = 64;
/// Names that expressions have for other things than an item or a variable.
const TAKEN: [&str; 6] = ["inputs", "vars", "steps", "index", "run", "now"];

/// Reads a document, or says all that is wrong with its form.
pub(super) fn document(value: &Value) -> Result<Document, Vec<FlowFinding>> {
    let mut reader = DocumentReader::default();
    if json::json_bytes(value) > FLOW_BYTES_MAX {
        let text = format!("The document is larger than {FLOW_BYTES_MAX} bytes.");
        return Err(vec![FlowFinding::error("", text)]);
    }
    let document = reader.document(value);
    match document {
        Some(document) if reader.findings.is_empty() => Ok(document),
        _ => Err(reader.findings),
    }
}

/// What was found so far.
#[derive(Default)]
struct DocumentReader {
    findings: Vec<FlowFinding>,
    /// Names of steps.
    ids: BTreeSet<StepId>,
    /// How many steps there are.
    steps: usize,
}

impl DocumentReader {
    fn wrong<T>(&mut self, place: &str, text: impl Into<String>) -> Option<T> {
        self.findings.push(FlowFinding::error(place, text));
        None
    }

    fn document(&mut self, value: &Value) -> Option<Document> {
        let mut fields = Fields::open(self, value, "")?;
        let name = fields.needed(self, "name").and_then(|(value, place)| self.name(value, &place));
        let description = fields.maybe("description");
        let description = description.and_then(|(value, place)| self.text(value, &place));
        let input_schema = fields.maybe("input_schema");
        let input_schema = input_schema.and_then(|(value, place)| self.schema(value, &place));
        let output_schema = fields.maybe("output_schema");
        let output_schema = output_schema.and_then(|(value, place)| self.schema(value, &place));
        let vars = fields.maybe("vars");
        let vars = vars.map_or_else(BTreeMap::new, |(value, place)| self.vars(value, &place));
        let steps = fields.needed(self, "steps");
        let steps = steps.and_then(|(value, place)| self.steps(value, &place, 1));
        let output = fields.needed(self, "output");
        let output = output.and_then(|(value, place)| self.object(value, &place));
        let on_cancel = fields.maybe("on_cancel");
        let on_cancel = on_cancel.and_then(|(value, place)| self.step(value, &place, 1));
        let limits = fields.maybe("limits");
        let limits = limits.and_then(|(value, place)| self.limits(value, &place));
        fields.close(self);
        Some(Document {
            name: name?,
            description: description.unwrap_or_default(),
            input_schema,
            output_schema,
            vars,
            steps: steps?,
            output: output?,
            on_cancel: on_cancel.map(Box::new),
            limits: limits.unwrap_or_default(),
            used: super::used::UsedCache::default(),
        })
    }

    fn name(&mut self, value: &Value, place: &str) -> Option<String> {
        let name = self.text(value, place)?;
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter) {
            return Some(name);
        }
        let text = "A name has up to 64 lower-case letters, digits, `-` and `_`.";
        self.wrong(place, text)
    }

    fn vars(&mut self, value: &Value, place: &str) -> BTreeMap<String, Template> {
        let Some(fields) = Fields::open(self, value, place) else { return BTreeMap::new() };
        let mut vars = BTreeMap::new();
        for (name, value, place) in fields.all() {
            let name = self.word(name, &place);
            let value = self.template(value, &place);
            vars.extend(name.zip(value));
        }
        vars
    }

    fn limits(&mut self, value: &Value, place: &str) -> Option<FlowLimits> {
        let mut fields = Fields::open(self, value, place)?;
        let deadline_ms = self.time(fields.maybe("deadline"), FLOW_DEADLINE_MAX_MS);
        let budget = fields.maybe("budget_micro");
        let budget_micro = budget.and_then(|(value, place)| self.whole(value, &place, u64::MAX));
        let on_cancel_ms = self.time(fields.maybe("on_cancel"), FLOW_CLOSING_MAX_MS);
        fields.close(self);
        Some(FlowLimits { deadline_ms, budget_micro, on_cancel_ms })
    }

    fn text(&mut self, value: &Value, place: &str) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            _ => self.wrong(place, "This is a text."),
        }
    }

    fn truth(&mut self, value: &Value, place: &str) -> Option<bool> {
        match value {
            Value::Bool(truth) => Some(*truth),
            _ => self.wrong(place, "This is `true` or `false`."),
        }
    }

    /// A whole number of at least 0.
    fn whole(&mut self, value: &Value, place: &str, max: u64) -> Option<u64> {
        match value.as_u64() {
            Some(number) if number <= max => Some(number),
            _ if max == u64::MAX => self.wrong(place, "This is a whole number."),
            _ => self.wrong(place, format!("This is a whole number up to {max}.")),
        }
    }

    /// A whole number of at least 1.
    fn count(&mut self, value: &Value, place: &str, max: u32) -> Option<u32> {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number {
            Some(number) if (1..=max).contains(&number) => Some(number),
            _ => self.wrong(place, format!("This is a whole number from 1 to {max}.")),
        }
    }

    /// A length of time, if there is one.
    fn time(&mut self, field: Option<(&Value, String)>, max_ms: u64) -> Option<u64> {
        let (value, place) = field?;
        let ms = value.as_str().and_then(quantity::duration_ms);
        match ms {
            Some(ms) if (1..=max_ms).contains(&ms) => Some(ms),
            Some(_) => {
                let text = format!("This is a time of 1ms to {}s.", max_ms / 1_000);
                self.wrong(&place, text)
            }
            None => self.wrong(&place, "This is a length of time, such as `30s` or `1h30m`."),
        }
    }

    /// One of several words.
    fn one_of<T: Copy>(
        &mut self,
        field: Option<(&Value, String)>,
        words: &[(&str, T)],
    ) -> Option<T> {
        let (value, place) = field?;
        let known = words.iter().find(|(word, _)| value.as_str() == Some(word));
        if let Some((_, meaning)) = known {
            return Some(*meaning);
        }
        let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        self.wrong(&place, format!("This is one of {}.", words.join(", ")))
    }

    fn schema(&mut self, value: &Value, place: &str) -> Option<Value> {
        match value {
            Value::Object(_) | Value::Bool(_) => Some(value.clone()),
            _ => self.wrong(place, "This is a JSON Schema."),
        }
    }

    /// A name that expressions can use.
    fn word(&mut self, text: &str, place: &str) -> Option<String> {
        if is_word(text) {
            return Some(text.to_owned());
        }
        let text = "A name begins with a letter or `_`, has only letters, digits and `_`, and is \
                    no word of the expressions' language.";
        self.wrong(place, text)
    }

    /// What an item is called.
    fn item(&mut self, text: &str, place: &str) -> Option<String> {
        if TAKEN.contains(&text) {
            return self.wrong(place, format!("`{text}` already stands for something else."));
        }
        self.word(text, place)
    }

    /// A step's name that is not another one's.
    fn new_id(&mut self, value: &Value, place: &str) -> Option<StepId> {
        let id = self.id(value, place)?;
        if !self.ids.insert(id.clone()) {
            return self.wrong(place, format!("Another step is called `{id}` as well."));
        }
        Some(id)
    }

    fn id(&mut self, value: &Value, place: &str) -> Option<StepId> {
        let text = self.text(value, place)?;
        self.word(&text, place).and_then(|word| StepId::new(&word))
    }

    fn audience(&mut self, field: Option<(&Value, String)>) -> Option<Audience> {
        let (value, place) = field?;
        let text = self.text(value, &place)?;
        match Audience::try_from(text) {
            Ok(audience) => Some(audience),
            Err(_) => self.wrong(&place, "This is `person`, `any` or `seat:` and a seat."),
        }
    }

    fn codes(&mut self, field: Option<(&Value, String)>) -> Vec<CodePattern> {
        let Some((value, place)) = field else { return Vec::new() };
        let Value::Array(items) = value else {
            let _none: Option<()> = self.wrong(&place, "This is a list of error codes.");
            return Vec::new();
        };
        let mut codes = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let code = item.as_str().and_then(CodePattern::parse);
            let wrong = "This is an error code such as `tool.failed`, or `tool.*`, or `*`.";
            codes.extend(code.or_else(|| self.wrong(&format!("{place}[{at}]"), wrong)));
        }
        codes
    }

    /// A value in which expressions may stand.
    fn template(&mut self, value: &Value, place: &str) -> Option<Template> {
        match value {
            Value::String(text) => match Template::parse(text) {
                Ok(template) => self.bounded(template, place),
                Err(error) => {
                    let error = error.to_string();
                    let (first, rest) = error.split_at(1);
                    self.wrong(place, format!("{}{rest}.", first.to_uppercase()))
                }
            },
            Value::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    list.push(self.template(item, &format!("{place}[{at}]"))?);
                }
                Some(match literals(&list) {
                    Some(values) => Template::Literal(Value::Array(values)),
                    None => Template::List(list),
                })
            }
            Value::Object(_) => self.object(value, place),
            plain => Some(Template::Literal(plain.clone())),
        }
    }

    /// An object in which expressions may stand. A text that is one expression may give it, too.
    fn object(&mut self, value: &Value, place: &str) -> Option<Template> {
        if let Value::String(text) = value
            && let Ok(whole @ Template::Whole(_)) = Template::parse(text)
        {
            return self.bounded(whole, place);
        }
        let fields = Fields::open(self, value, place)?;
        let mut object = BTreeMap::new();
        for (name, value, place) in fields.all() {
            object.insert(name.to_owned(), self.template(value, &place)?);
        }
        if !object.values().all(Template::is_literal) {
            return Some(Template::Object(object));
        }
        let values = object.into_iter().filter_map(|(name, template)| match template {
            Template::Literal(value) => Some((name, value)),
            _ => None,
        });
        Some(Template::Literal(Value::Object(values.collect())))
    }

    /// Refuses expressions that are too long to be looked at.
    fn bounded(&mut self, template: Template, place: &str) -> Option<Template> {
        let mut longest = 0;
        template.visit("", &mut |_, found| longest = longest.max(found.as_str().len()));
        if longest > EXPRESSION_BYTES_MAX {
            return self.wrong(place, too_long());
        }
        Some(template)
    }

    /// An expression: a text, with or without `${…}` around it, or a plain value.
    fn expression(&mut self, value: &Value, place: &str) -> Option<Expression> {
        let expression = match value {
            Value::String(text) => match Template::parse(text) {
                Ok(Template::Whole(expression)) => expression,
                Ok(Template::Text(_)) => {
                    return self.wrong(place, "This is an expression as a whole; leave out `${`.");
                }
                _ => Expression::new(text),
            },
            Value::Number(_) | Value::Bool(_) | Value::Null => Expression::new(&value.to_string()),
            _ => return self.wrong(place, "This is an expression: a text such as `inputs.n > 1`."),
        };
        match expression.as_str() {
            "" => self.wrong(place, "This is an expression, and it is empty."),
            text if text.len() > EXPRESSION_BYTES_MAX => self.wrong(place, too_long()),
            _ => Some(expression),
        }
    }
}

fn too_long() -> String {
    format!("An expression has at most {EXPRESSION_BYTES_MAX} bytes.")
}

/// The values of templates if no expression stands in any.
fn literals(list: &[Template]) -> Option<Vec<Value>> {
    let literal = |template: &Template| match template {
        Template::Literal(value) => Some(value.clone()),
        _ => None,
    };
    list.iter().map(literal).collect()
}
