//! A form in the terminal, built from the schema of a question.
//!
//! Each field is asked for until what is typed fits; in the end the whole answer is checked
//! again. Everything a peer wrote is made safe before it is shown.

use std::io::{self, BufRead, Write};

use serde_json::Value;
use wharf_vocab::Object;

use crate::plain;
use crate::shape::{SchemaNode, plain_text};

/// How deep forms go; below that, JSON is asked for.
const DEPTH_MAX: usize = 4;

/// A form that is being filled in.
#[derive(Debug)]
pub(crate) struct Form<R, W> {
    input: R,
    out: W,
}

/// One thing to ask for.
#[derive(Clone, Copy)]
struct Field<'a> {
    label: &'a str,
    shape: SchemaNode<'a>,
    required: bool,
    depth: usize,
}

/// What became of one thing that was asked for.
#[derive(Debug, PartialEq)]
enum FieldAnswer {
    Value(Value),
    /// It may stay away, and does.
    Nothing,
    /// The input is over.
    Left,
}

impl<R: BufRead, W: Write> Form<R, W> {
    /// A form that reads from `input` and asks on `out`.
    pub(crate) fn new(input: R, out: W) -> Self {
        Self { input, out }
    }

    /// Asks until the answer fits the schema; `None` if the input ends before that.
    pub(crate) fn fill(
        &mut self,
        title: &str,
        schema: Option<&Value>,
    ) -> io::Result<Option<Value>> {
        let anything = Value::Bool(true);
        let schema = schema.unwrap_or(&anything);
        writeln!(self.out, "{}", plain::line(title))?;
        loop {
            let shape = SchemaNode::new(schema);
            let field = Field { label: "answer", shape, required: true, depth: 0 };
            let value = match self.ask(field)? {
                FieldAnswer::Value(value) => value,
                FieldAnswer::Nothing => Value::Null,
                FieldAnswer::Left => return Ok(None),
            };
            match misfit(schema, &value) {
                None => return Ok(Some(value)),
                Some(why) => writeln!(self.out, "  that does not fit: {why}; once more:")?,
            }
        }
    }

    fn ask(&mut self, field: Field<'_>) -> io::Result<FieldAnswer> {
        let shape = field.shape;
        if field.depth < DEPTH_MAX && shape.is_only("object") && !shape.fields().is_empty() {
            return self.ask_object(field);
        }
        if let Some(choices) = shape.choices() {
            self.show_choices(field, &choices)?;
            return self.ask_line(field, |text| pick(&choices, text));
        }
        if field.depth < DEPTH_MAX && shape.is_only("array") {
            return self.ask_list(field);
        }
        self.ask_line(field, |text| shape.read(text))
    }

    fn ask_object(&mut self, field: Field<'_>) -> io::Result<FieldAnswer> {
        if !field.required {
            match self.read_line(&format!("  fill in {}? [y/N] ", plain::cut(field.label, 40)))? {
                None => return Ok(FieldAnswer::Left),
                Some(text) if matches!(text.as_str(), "y" | "yes") => {}
                Some(_) => return Ok(FieldAnswer::Nothing),
            }
        }
        let mut object = Object::new();
        for (key, shape) in field.shape.fields() {
            let label =
                if field.depth == 0 { key.to_owned() } else { format!("{}.{key}", field.label) };
            let required = field.shape.requires(key);
            let inner = Field { label: &label, shape, required, depth: field.depth + 1 };
            match self.ask(inner)? {
                FieldAnswer::Value(value) => {
                    object.insert(key.to_owned(), value);
                }
                FieldAnswer::Nothing => {}
                FieldAnswer::Left => return Ok(FieldAnswer::Left),
            }
        }
        Ok(FieldAnswer::Value(Value::Object(object)))
    }

    fn ask_list(&mut self, field: Field<'_>) -> io::Result<FieldAnswer> {
        let label = plain::cut(field.label, 40);
        writeln!(self.out, "  {label}: one item per line, an empty line ends the list")?;
        let mut items = Vec::new();
        loop {
            let name = format!("{label}[{}]", items.len());
            let anything = Value::Bool(true);
            let shape = field.shape.items().unwrap_or_else(|| SchemaNode::new(&anything));
            let inner = Field { label: &name, shape, required: false, depth: DEPTH_MAX };
            match self.ask(inner)? {
                FieldAnswer::Value(value) => items.push(value),
                FieldAnswer::Nothing if items.is_empty() && !field.required => {
                    return Ok(FieldAnswer::Nothing);
                }
                FieldAnswer::Nothing => return Ok(FieldAnswer::Value(Value::Array(items))),
                FieldAnswer::Left => return Ok(FieldAnswer::Left),
            }
        }
    }

    fn show_choices(&mut self, field: Field<'_>, choices: &[&Value]) -> io::Result<()> {
        writeln!(self.out, "  {}:", plain::cut(field.label, 40))?;
        for (at, choice) in choices.iter().enumerate() {
            writeln!(self.out, "    {}) {}", at + 1, plain::cut(&plain_text(choice), 80))?;
        }
        Ok(())
    }

    /// Asks for one line until `read` takes it and the field's schema agrees.
    fn ask_line(
        &mut self,
        field: Field<'_>,
        read: impl Fn(&str) -> Result<Value, String>,
    ) -> io::Result<FieldAnswer> {
        let schema = field.shape.standalone();
        let prompt = prompt(field);
        loop {
            let Some(text) = self.read_line(&prompt)? else { return Ok(FieldAnswer::Left) };
            if text.is_empty() {
                match field.shape.default() {
                    Some(value) => return Ok(FieldAnswer::Value(value.clone())),
                    None if !field.required => return Ok(FieldAnswer::Nothing),
                    None => {
                        writeln!(self.out, "  an answer is needed here")?;
                        continue;
                    }
                }
            }
            match read(&text) {
                Ok(value) => match misfit(&schema, &value) {
                    None => return Ok(FieldAnswer::Value(value)),
                    Some(why) => writeln!(self.out, "  that does not fit: {why}")?,
                },
                Err(wanted) => writeln!(self.out, "  it must be {}", plain::line(&wanted))?,
            }
        }
    }

    fn read_line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        write!(self.out, "{prompt}")?;
        self.out.flush()?;
        let mut text = String::new();
        if self.input.read_line(&mut text)? == 0 {
            writeln!(self.out)?;
            return Ok(None);
        }
        Ok(Some(text.trim().to_owned()))
    }
}

fn prompt(field: Field<'_>) -> String {
    let label = plain::cut(field.label, 40);
    let kind = match field.shape.choices() {
        Some(choices) => format!("1-{}", choices.len()),
        None if field.shape.is_only("boolean") => "yes/no".to_owned(),
        None => plain::cut(&field.shape.kind(), 40),
    };
    let empty = match (field.shape.default(), field.required) {
        (Some(default), _) => format!(", empty for {}", plain::cut(&plain_text(default), 40)),
        (None, true) => String::new(),
        (None, false) => ", may stay empty".to_owned(),
    };
    let words = field.shape.words().map(|words| format!(" – {}", plain::cut(words, 80)));
    format!("  {label} ({kind}{empty}){}: ", words.unwrap_or_default())
}

/// The choice that was typed in full, or by its number.
fn pick(choices: &[&Value], text: &str) -> Result<Value, String> {
    let named = choices.iter().find(|choice| plain_text(choice) == text);
    let numbered = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    match named.or_else(numbered) {
        Some(choice) => Ok((*choice).clone()),
        None => Err(format!("one of the choices, or its number from 1 to {}", choices.len())),
    }
}

/// Why the value does not fit the schema. A schema that cannot be used is left to the core.
pub(crate) fn misfit(schema: &Value, value: &Value) -> Option<String> {
    let validator = jsonschema::Validator::new(schema).ok()?;
    let error = validator.iter_errors(value).next()?;
    let path = error.instance_path().to_string();
    let at = if path.is_empty() { String::new() } else { format!(" (at {path})") };
    Some(plain::cut(&format!("{error}{at}"), 200))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_misfit_says_what_would_fit() {
        let colours = json!({"enum": ["red", "green"]});
        let why = misfit(&colours, &json!("blue")).expect("none of them");
        for part in ["blue", "red", "green"] {
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(misfit(&colours, &json!("red")), None);
        let why = misfit(&json!({"type": "integer"}), &json!("many")).expect("no number");
        assert!(why.contains("integer"), "{why}");
    }

    /// Fills a form from typed lines; gives the answer and everything that was asked.
    fn fill(schema: &Value, typed: &str) -> (Option<Value>, String) {
        let mut out = Vec::new();
        let value = Form::new(typed.as_bytes(), &mut out).fill("What?", Some(schema));
        (value.expect("no error"), String::from_utf8(out).expect("text"))
    }

    #[test]
    fn scalars_are_asked_until_they_fit() {
        let number = json!({"type": "integer", "minimum": 1});
        let (value, asked) = fill(&number, "many\n0\n\n3\n");
        assert_eq!(value, Some(json!(3)));
        assert!(asked.contains("it must be a whole number"), "{asked}");
        assert!(asked.contains("that does not fit"), "{asked}");
        assert!(asked.contains("an answer is needed here"), "{asked}");
        assert_eq!(fill(&json!({"type": "boolean"}), "y\n").0, Some(json!(true)));
        assert_eq!(fill(&json!({"type": "string"}), "  dark blue \n").0, Some(json!("dark blue")));
    }

    #[test]
    fn choices_are_taken_by_name_or_number() {
        let color = json!({"type": "string", "enum": ["red", "blue"]});
        assert_eq!(fill(&color, "2\n").0, Some(json!("blue")));
        assert_eq!(fill(&color, "red\n").0, Some(json!("red")));
        let (value, asked) = fill(&color, "3\ngreen\n1\n");
        assert_eq!(value, Some(json!("red")));
        assert_eq!(asked.matches("one of the choices").count(), 2, "{asked}");
        // A number that is itself a choice is meant as such.
        assert_eq!(fill(&json!({"enum": [2, 1]}), "1\n").0, Some(json!(1)));
    }

    #[test]
    fn objects_are_asked_field_by_field() {
        let schema = json!({
            "type": "object",
            "required": ["age", "name"],
            "properties": {
                "age": {"type": "integer"},
                "mood": {"type": "string", "default": "fine"},
                "name": {"type": "string"},
                "note": {"type": "string"},
                "place": {"type": "object", "properties": {"city": {"type": "string"}}},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        });
        let typed = "41\n\nAda\n\ny\nTurin\na\nb\n\n";
        let expect = json!({
            "age": 41, "mood": "fine", "name": "Ada", "place": {"city": "Turin"}, "tags": ["a", "b"],
        });
        assert_eq!(fill(&schema, typed).0, Some(expect));
        assert_eq!(
            fill(&schema, "41\n\nAda\n\nn\n\n").0,
            Some(json!({"age": 41, "mood": "fine", "name": "Ada"}))
        );
    }

    #[test]
    fn a_rule_over_several_fields_is_checked_in_the_end() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "minProperties": 1,
        });
        let (value, asked) = fill(&schema, "\n\n1\n\n");
        assert_eq!(value, Some(json!({"a": 1})));
        assert!(asked.contains("once more"), "{asked}");
    }

    #[test]
    fn leaving_early_answers_nothing() {
        assert_eq!(fill(&json!({"type": "string"}), "").0, None);
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}});
        assert_eq!(fill(&schema, "1\n").0, None);
    }

    #[test]
    fn a_hostile_schema_cannot_reach_the_terminal() {
        let schema =
            json!({"type": "string", "title": "x\u{1b}]0;owned\u{7}y", "enum": ["a\u{1b}[2J"]});
        let (_, asked) = fill(&schema, "1\n");
        assert!(!asked.contains('\u{1b}') && !asked.contains('\u{7}'), "{asked:?}");
    }
}
