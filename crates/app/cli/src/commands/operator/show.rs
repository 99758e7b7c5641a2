//! What an operator sees: sentences for people, a line of JSON for programs.

use serde_json::{Value, json};
use wharf_vocab::Object;
use wharf_wire::operator_v1::{CoreMessage, Pending, PendingFile};

use crate::commands::inbox::about;
use crate::commands::{Output, Result};
use crate::plain;

/// Lines that are kept while a form is open.
const HELD_MAX: usize = 1_000;

/// Where an operator sees things.
#[derive(Debug)]
pub(super) struct OperatorDisplay {
    output: Output,
    /// What came while a form is open.
    held: Option<Vec<String>>,
}

impl OperatorDisplay {
    pub(super) fn new(output: Output) -> Self {
        Self { output, held: None }
    }

    /// Says something in words, or the same as JSON.
    pub(super) fn say(&mut self, words: &str, event: &Value) -> Result<()> {
        if self.output.is_json() {
            return self.output.json_line(event);
        }
        let line = plain::text(words);
        match &mut self.held {
            Some(held) if held.len() < HELD_MAX => held.push(line),
            Some(_) => {}
            None => self.output.line(&line)?,
        }
        Ok(())
    }

    /// Says that something typed or sent was wrong.
    pub(super) fn wrong(&mut self, code: &str, message: &str) -> Result<()> {
        let event = json!({ "type": "error", "code": code, "message": message });
        self.say(&format!("{message} [{code}]"), &event)
    }

    /// Holds everything back until the form is closed.
    pub(super) fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Shows what was held back.
    pub(super) fn release(&mut self) -> Result<()> {
        let held = self.held.take().unwrap_or_default();
        held.iter().try_for_each(|line| self.output.line(line))
    }

    /// Shows a message of the core; a request has a number.
    pub(super) fn message(&mut self, number: Option<usize>, message: &CoreMessage) -> Result<()> {
        self.request(number, message, &RequestFacts::default())
    }

    /// Shows a request of the core with what is known of it besides.
    pub(super) fn request(
        &mut self,
        number: Option<usize>,
        message: &CoreMessage,
        facts: &RequestFacts,
    ) -> Result<()> {
        let words = words(number, message, facts);
        let mut event = event(number, message);
        if let (Value::Object(fields), Some(inputs)) = (&mut event, &facts.inputs) {
            fields.insert("inputs".to_owned(), Value::Object(inputs.clone()));
        }
        self.say(&words, &event)
    }
}

/// What is known of a request besides what the core sent.
#[derive(Debug, Default)]
pub(super) struct RequestFacts {
    /// The inputs of the run that waits for an approval.
    pub(super) inputs: Option<Object>,
    /// Whether a rule carries it out, so that nobody need do anything.
    pub(super) is_taken: bool,
}

/// A message without what opens something.
pub(super) fn event(number: Option<usize>, message: &CoreMessage) -> Value {
    let mut event = serde_json::to_value(message).unwrap_or_default();
    if let Value::Object(fields) = &mut event {
        // The directive names the handle.
        for secret in ["capability_token", "worker_handle", "directive"] {
            fields.remove(secret);
        }
        if let Some(number) = number {
            fields.insert("number".to_owned(), number.into());
        }
    }
    event
}

/// What is asked, and what its answer must look like.
pub(super) fn question(question: &Value) -> (String, Option<&Value>) {
    match question {
        Value::String(text) => (text.clone(), None),
        Value::Object(fields) => {
            let title = fields.get("title").and_then(Value::as_str).unwrap_or("?");
            (title.to_owned(), fields.get("schema"))
        }
        other => (other.to_string(), None),
    }
}

pub(super) fn words(number: Option<usize>, message: &CoreMessage, known: &RequestFacts) -> String {
    let n = number.unwrap_or_default();
    match message {
        CoreMessage::Ask { question: asked, pending, .. } => {
            let title = plain::cut(&question(asked).0, 200);
            let about = match asked.get("detail") {
                Some(detail) => format!("\n   about: {}", plain::cut(&detail.to_string(), 400)),
                None => String::new(),
            };
            format!("#{n} question: {title}{}{about}\n   answer {n}", facts(pending))
        }
        CoreMessage::HookBefore { agent, attempt, pending, .. } => {
            let run = pending.run_id.as_deref().unwrap_or("RUN");
            let see = match other_world(pending) {
                Some(world) => format!("{run} --world {world}"),
                None => run.to_owned(),
            };
            let file = |file: &PendingFile| {
                let b3 = file.b3.as_deref().unwrap_or("not known");
                let (name, path) = (plain::line(&file.name), plain::line(&file.path));
                format!("\n   reads {name}: {path} ({} bytes, b3 {b3})", file.bytes)
            };
            let files: String = pending.files.iter().map(file).collect();
            let inputs = match &known.inputs {
                Some(inputs) if inputs.is_empty() => "\n   without inputs".to_owned(),
                Some(inputs) => format!("\n   inputs: {}", about::on_a_line(inputs)),
                None => String::new(),
            };
            format!(
                "#{n} approval: {agent} is about to run{}{}{inputs}{files}\n   approve {n}, or deny {n} \
                 REASON; all of it: wharf runs show {see}",
                attempts(*attempt),
                facts(pending),
            )
        }
        CoreMessage::Spawn { agent, attempt, pending, .. } => {
            let (attempt, facts) = (attempts(*attempt), facts(pending));
            let take = match known.is_taken {
                true => String::new(),
                false => format!("\n   take {n} COMMAND"),
            };
            format!("#{n} job for {agent}{attempt}{facts}{take}")
        }
        CoreMessage::HookAfter { agent, result, .. } => {
            format!("{agent} ended: {}", plain::cut(&result.to_string(), 400))
        }
        CoreMessage::Cancel { reason, .. } => format!("#{n} was withdrawn: {reason}"),
        CoreMessage::Error { code, message, .. } => {
            let which = number.map(|n| format!("#{n}: ")).unwrap_or_default();
            format!("{which}{message} [{code}]")
        }
    }
}

fn attempts(attempt: u32) -> String {
    if attempt > 1 { format!(", attempt {attempt}") } else { String::new() }
}

/// The world, when it is not the usual one.
fn other_world(pending: &Pending) -> Option<&str> {
    pending.world.as_deref().filter(|world| *world != "default")
}

/// What is known of a request, in brackets.
fn facts(pending: &Pending) -> String {
    let mut facts = Vec::new();
    if let Some(run) = &pending.run_id {
        facts.push(format!("run {}", plain::line(run)));
    }
    if let Some(world) = other_world(pending) {
        facts.push(format!("world {}", plain::line(world)));
    }
    if let Some(ms) = pending.deadline_ms {
        let seconds = ms.div_ceil(1_000);
        facts.push(match seconds {
            0..=120 => format!("{seconds}s left"),
            121..=7_200 => format!("{}m left", seconds.div_ceil(60)),
            7_201..=172_800 => format!("{}h left", seconds.div_ceil(3_600)),
            _ => format!("{}d left", seconds.div_ceil(86_400)),
        });
    }
    if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) }
}
