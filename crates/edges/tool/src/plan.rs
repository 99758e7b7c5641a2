//! What a request means: a run of a tool, a question, or a message.

use serde_json::{Value, json};
use wharf_domain::{Caller, Level, Progress};
use wharf_engine::{Handle, check_schema};
use wharf_protocol::tool::ToolRequest;
use wharf_protocol::tool::value::Form;
use wharf_vocab::{Code, Fault, Object, ToolId, shown};
use wharf_wire::tool_v1::{Kind, method};

/// Longest title of a question; what is longer stands beside it.
const TITLE_CHARS_MAX: usize = 500;
/// Longest message.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Tools that are named when a name stands for several.
const NAMED_MAX: usize = 8;

/// What a request means.
pub(crate) enum RequestPlan {
    /// Run a tool.
    Run {
        /// The tool.
        tool: ToolId,
        /// What it is given.
        inputs: Object,
        /// How its outcome is read.
        reading: OutcomeReading,
    },
    /// Ask somebody.
    Question(PlannedQuestion),
    /// Tell somebody.
    Notice(PlannedNotice),
}

/// How the outcome of a run is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutcomeReading {
    /// As a tool's output of this form.
    Output(Form),
    /// As the end of a question.
    Question,
    /// As having been told.
    Notice,
}

/// A question.
#[derive(Debug, PartialEq)]
pub(crate) struct PlannedQuestion {
    /// What is asked, in one line.
    pub(crate) title: String,
    /// What the answer must look like, if that is known.
    pub(crate) schema: Value,
    /// What else there is to know.
    pub(crate) detail: Option<Value>,
}

/// A one-way message.
#[derive(Debug, PartialEq)]
pub(crate) struct PlannedNotice {
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) fraction: Option<f64>,
    pub(crate) payload: Object,
}

impl RequestPlan {
    /// What a caller's request means.
    pub(crate) fn of(
        handle: &Handle,
        caller: &Caller,
        incoming: ToolRequest,
    ) -> Result<Self, Fault> {
        let ToolRequest { kind, method, payload, .. } = incoming;
        if kind == Kind::Notify {
            return notice(payload).map(Self::Notice);
        }
        match method.as_str() {
            method::FORM | method::CONFIRMATION => question(&method, payload).map(Self::Question),
            method::SAMPLE => {
                let tool = ToolId::new("wharf/sample").map_err(|_| no_tool(&method))?;
                let reading = OutcomeReading::Output(Form::Object);
                Ok(Self::Run { tool, inputs: Form::Object.pack(payload), reading })
            }
            _ => match named(handle, caller, &method)? {
                Some(tool) => Ok(run(handle, tool, payload)),
                None if payload.get("message").is_some_and(Value::is_string) => {
                    question(&method, payload).map(Self::Question)
                }
                None => Err(no_tool(&method)),
            },
        }
    }
}

fn run(handle: &Handle, tool: ToolId, payload: Value) -> RequestPlan {
    // A tool that is not there is told of when its run is asked for.
    let known = handle.providers().tool(&tool).ok();
    let form = |schema: Option<&Value>| schema.map_or(Form::Object, Form::of);
    let input = form(known.as_ref().map(|tool| &tool.def.input_schema));
    let output = form(known.as_ref().and_then(|tool| tool.def.output_schema.as_ref()));
    RequestPlan::Run { tool, inputs: input.pack(payload), reading: OutcomeReading::Output(output) }
}

/// The tool that is meant, if it is one: by its id, or by a name that only one tool has of those
/// that the caller may use.
fn named(handle: &Handle, caller: &Caller, method: &str) -> Result<Option<ToolId>, Fault> {
    if method.contains('/') {
        return ToolId::new(method).map(Some).map_err(|_| no_tool(method));
    }
    let has_name = |id: &ToolId| {
        let name = id.name();
        name == method || name.split_once('@').is_some_and(|(bare, _)| bare == method)
    };
    let tools = handle.providers().tools().into_iter().map(|tool| tool.def.tool.clone());
    let may_use = |id: &ToolId| caller.rights.check_tool(id).is_ok();
    let mut found: Vec<ToolId> = tools.filter(|id| has_name(id) && may_use(id)).collect();
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().take(NAMED_MAX).map(ToolId::as_str).collect();
        let message = format!("{method} may be any of {}; say which.", names.join(", "));
        return Err(Fault::new(Code::ToolNotFound, message).with("candidates", json!(names)));
    }
    Ok(found.pop())
}

/// A question. A schema that is no JSON Schema is shown and not checked.
fn question(method: &str, payload: Value) -> Result<PlannedQuestion, Fault> {
    let payload = match payload {
        Value::Object(payload) => payload,
        Value::Null => Object::new(),
        _ => return Err(invalid("A question is an object with a message")),
    };
    let message = match payload.get("message") {
        Some(Value::String(message)) if message.len() <= MESSAGE_BYTES_MAX => message.clone(),
        Some(Value::String(_)) => return Err(invalid("The message of the question is too long")),
        None | Some(Value::Null) => "A program asks for an answer.".to_owned(),
        Some(_) => return Err(invalid("The message of a question is text")),
    };
    let given = payload.get("schema").filter(|schema| !schema.is_null());
    let usable = given.filter(|schema| schema.is_object() && check_schema(schema).is_ok());
    let schema = match (usable, method) {
        (Some(schema), _) => schema.clone(),
        (None, method::CONFIRMATION) if given.is_none() => json!({"type": "boolean"}),
        _ => json!({}),
    };
    let title: String = message.chars().take(TITLE_CHARS_MAX).collect();
    let mut detail = Object::new();
    if title.len() < message.len() {
        detail.insert("message".to_owned(), message.into());
    }
    if let Some(opaque) = given.filter(|_| usable.is_none()) {
        detail.insert("schema".to_owned(), opaque.clone());
    }
    if let Some(meta) = payload.get("meta").filter(|meta| !meta.is_null()) {
        detail.insert("meta".to_owned(), meta.clone());
    }
    if !matches!(method, method::FORM) {
        detail.insert("type".to_owned(), method.into());
    }
    let detail = (!detail.is_empty()).then_some(Value::Object(detail));
    Ok(PlannedQuestion { title, schema, detail })
}

/// A message: text alone, or an object that has it.
fn notice(payload: Value) -> Result<PlannedNotice, Fault> {
    let payload = match payload {
        Value::Object(payload) => payload,
        Value::String(text) => Object::from_iter([("message".to_owned(), text.into())]),
        _ => return Err(invalid("A notification is an object with a message")),
    };
    let Some(Value::String(message)) = payload.get("message") else {
        return Err(invalid("A notification has a message, which is text"));
    };
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(invalid("The message of the notification is too long"));
    }
    let level = match payload.get("level").and_then(Value::as_str) {
        Some("debug" | "trace") => Level::Debug,
        Some("warn" | "warning") => Level::Warn,
        Some("error" | "critical" | "fatal") => Level::Error,
        _ => Level::Info,
    };
    let fraction = payload.get("progress").and_then(Value::as_f64);
    let fraction = fraction.filter(|fraction| (0.0..=1.0).contains(fraction));
    Ok(PlannedNotice { level, message: message.clone(), fraction, payload })
}

impl PlannedNotice {
    /// The message as a run's own progress.
    pub(crate) fn pieces(self) -> Vec<Progress> {
        let Self { level, message, fraction, .. } = self;
        let phase = fraction
            .map(|fraction| Progress::Phase { phase: message.clone(), fraction: Some(fraction) });
        let log = Progress::Log { level, text: message };
        [Some(log), phase].into_iter().flatten().collect()
    }

    /// The message as a run of its own.
    pub(crate) fn inputs(self) -> Object {
        let mut inputs = Object::new();
        inputs.insert("message".to_owned(), self.message.into());
        inputs.insert("level".to_owned(), self.level.as_str().into());
        if let Some(fraction) = self.fraction {
            inputs.insert("progress".to_owned(), fraction.into());
        }
        let meta = self.payload.get("meta").filter(|meta| !meta.is_null());
        inputs.extend(meta.map(|meta| ("meta".to_owned(), meta.clone())));
        inputs
    }
}

impl PlannedQuestion {
    /// The question as a run of its own.
    pub(crate) fn inputs(self) -> Object {
        let mut inputs = Object::new();
        inputs.insert("question".to_owned(), self.title.into());
        inputs.insert("schema".to_owned(), self.schema);
        inputs.extend(self.detail.map(|detail| ("detail".to_owned(), detail)));
        inputs
    }
}

fn no_tool(name: &str) -> Fault {
    let short = shown(name, 100);
    Fault::new(Code::ToolNotFound, format!("There is no tool {short}."))
}

fn invalid(what: &str) -> Fault {
    Fault::new(Code::ToolInvalidInput, format!("{what}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k024_a_schema_that_is_none_is_shown_and_not_checked() {
        let schema = json!({"type": "object", "properties": {"date": {"type": "string"}}});
        let asked = question("form", json!({"message": "When?", "schema": schema}));
        let asked = asked.expect("fits");
        assert_eq!((asked.schema, asked.detail), (schema, None));
        for opaque in [json!("z.string()"), json!({"type": "strin"}), json!([1]), json!(7)] {
            let asked = question("form", json!({"message": "When?", "schema": opaque}));
            let asked = asked.expect("fits");
            assert_eq!(asked.schema, json!({}), "{opaque}");
            assert_eq!(asked.detail, Some(json!({"schema": opaque})));
        }
    }

    #[test]
    fn k019_a_question_without_a_schema_takes_any_answer_and_a_confirmation_yes_or_no() {
        assert_eq!(question("form", Value::Null).expect("fits").schema, json!({}));
        let asked = question("confirmation", json!({"message": "Sure?"})).expect("fits");
        assert_eq!(asked.schema, json!({"type": "boolean"}));
        let long = "x".repeat(600);
        let asked = question("form", json!({"message": long})).expect("fits");
        assert_eq!(asked.title.len(), 500);
        assert_eq!(asked.detail, Some(json!({"message": long})));
        assert!(question("form", json!({"message": 5})).is_err());
    }

    #[test]
    fn k019_a_notification_has_a_level_and_perhaps_a_fraction() {
        let told = notice(json!({"message": "half", "level": "warning", "progress": 0.5}));
        let pieces = told.expect("fits").pieces();
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0], Progress::Log { level: Level::Warn, text: "half".into() });
        let told = notice(json!({"message": "m", "progress": 7})).expect("fits");
        assert_eq!(
            told.inputs(),
            *json!({"message": "m", "level": "info"}).as_object().expect("object")
        );
        assert!(notice(json!({"level": "info"})).is_err() && notice(json!(5)).is_err());
    }
}
