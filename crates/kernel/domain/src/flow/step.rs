//! The steps of a document.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::{FaultCode, Micro, ToolId};

use super::{Expression, Template};
use crate::Audience;

/// What one step of a document is called, in it and in expressions: a word such as `fetch`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(Arc<str>);

/// Longest name of a step or a variable.
const WORD_BYTES_MAX: usize = 64;
/// Words of the expressions' language, which name nothing in it.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

impl StepId {
    /// Takes a name that can stand in an expression.
    pub fn new(text: &str) -> Option<Self> {
        is_word(text).then(|| Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for StepId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for StepId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| serde::de::Error::custom("this is no name of a step"))
    }
}

/// Whether a text can name something in an expression.
pub(super) fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    first && rest && text.len() <= WORD_BYTES_MAX && !RESERVED.contains(&text)
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name, unique in the document.
    pub id: StepId,
    /// What it does.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// Runs a tool.
    Call(Box<Call>),
    /// Does steps one after another.
    Seq(Vec<Step>),
    /// Does steps side by side.
    Parallel(Parallel),
    /// Does a step once for every item of a list.
    Each(Box<Each>),
    /// Does one of several steps.
    Branch(Branch),
    /// Does a step again and again.
    Loop(Box<Loop>),
    /// Does a step, and another one if it fails.
    Try(Box<Try>),
    /// Waits for a time.
    Sleep(Sleep),
    /// Asks a question.
    Ask(Box<AskStep>),
    /// Asks for permission.
    Approve(Box<ApproveStep>),
    /// Waits for a message from outside.
    Signal(Box<SignalStep>),
    /// Gives variables values, all evaluated before any is given.
    Set(BTreeMap<String, Expression>),
    /// Ends the flow with this output.
    Return(Template),
    /// Fails with an error.
    Fail(FailStep),
    /// Ends this run and begins a new one of the same flow with these inputs.
    Restart(Template),
}

impl StepKind {
    /// The word for it in a document.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Seq(_) => "seq",
            Self::Parallel(_) => "parallel",
            Self::Each(_) => "each",
            Self::Branch(_) => "branch",
            Self::Loop(_) => "loop",
            Self::Try(_) => "try",
            Self::Sleep(_) => "sleep",
            Self::Ask(_) => "ask",
            Self::Approve(_) => "approve",
            Self::Signal(_) => "signal",
            Self::Set(_) => "set",
            Self::Return(_) => "return",
            Self::Fail(_) => "fail",
            Self::Restart(_) => "restart",
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool, as it is written; a flow without a version is its newest one.
    pub tool: ToolId,
    /// Its inputs: an object.
    pub inputs: Template,
    /// Where outputs go, by their names: an object.
    pub outputs: Option<Template>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// Whether it is tried again when it fails.
    pub retry: Option<RetryRule>,
    /// The most it and all below it may cost.
    pub budget_micro: Option<Micro>,
    /// Who must approve it, beyond what policy asks: a person or a seat.
    pub gate: Option<Audience>,
    /// The step whose local files it may read.
    pub continues: Option<StepId>,
    /// What undoes it: a call without `compensate`, `continues` and `gate`.
    pub compensate: Option<Box<Call>>,
}

/// How often and when a call is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryRule {
    /// How many tries there are at most, the first one among them.
    pub max: u32,
    /// The pause before the second try; it doubles with each.
    pub backoff_ms: u64,
    /// Which errors are tried again; empty for all of them.
    pub on: Vec<CodePattern>,
    /// Whether it is tried again even where the last try may have acted.
    pub is_unsafe: bool,
}

/// Error codes: one, such as `tool.failed`; all that begin alike, such as `tool.*`; or all: `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePattern(String);

impl CodePattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Option<Self> {
        let is_code = text.strip_suffix(".*").map_or_else(
            || FaultCode::parse(text).is_some(),
            |prefix| FaultCode::parse(&format!("{prefix}.x")).is_some(),
        );
        (text == "*" || is_code).then(|| Self(text.to_owned()))
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it means a code.
    pub fn matches(&self, code: &FaultCode) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => code.as_str().starts_with(prefix),
            None => self.0 == code.as_str(),
        }
    }
}

/// Steps side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Parallel {
    /// The steps.
    pub branches: Vec<Step>,
    /// Which of them must succeed.
    pub mode: ParallelMode,
    /// What becomes of the others when one fails.
    pub on_error: OnError,
}

/// Which branches must succeed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParallelMode {
    /// All of them.
    #[default]
    All,
    /// One; the others are canceled then.
    Any,
}

/// What becomes of the others when one branch or item fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// They are canceled, and the step fails.
    #[default]
    FailFast,
    /// They go on. The step succeeds, and the result of one that failed is `{"error": …}`.
    Collect,
}

/// A step for every item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    /// The list.
    pub over: Expression,
    /// What an item is called in the step's expressions.
    pub bind: Arc<str>,
    /// The step.
    pub step: Step,
    /// How many items are worked on at once.
    pub concurrency: u32,
    /// What becomes of the others when one fails.
    pub on_error: OnError,
}

/// One of several steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The first of these whose condition holds.
    pub cases: Vec<Case>,
    /// The step if none holds.
    pub otherwise: Option<Box<Step>>,
}

/// A step with a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The condition.
    pub when: Expression,
    /// The step.
    pub step: Step,
}

/// A step that is done again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// It is done while this holds, which is looked at before each time.
    pub condition: Expression,
    /// How often at most; a condition that still holds then fails the step.
    pub max: u32,
    /// The step.
    pub step: Step,
}

/// A step, and what is done when it fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Try {
    /// The step.
    pub step: Step,
    /// The first of these whose codes fit the error is done.
    pub catches: Vec<Catch>,
    /// What is done at last, whatever happened.
    pub finally: Option<Step>,
}

/// What is done when a step fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Catch {
    /// With which errors; empty for all of them.
    pub codes: Vec<CodePattern>,
    /// The step.
    pub step: Step,
}

/// A time to wait for.
#[derive(Debug, Clone, PartialEq)]
pub enum Sleep {
    /// A length of time, such as `1h30m`, or a number of milliseconds.
    For(Template),
    /// A moment, as RFC 3339 writes it.
    Until(Template),
}

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub struct AskStep {
    /// What is asked: a text.
    pub question: Template,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// Who may answer; whoever may answer asks of the world unless it says otherwise.
    pub audience: Option<Audience>,
    /// How long it waits for an answer.
    pub deadline_ms: Option<u64>,
    /// What happens then.
    pub on_timeout: OnTimeout,
}

/// What happens when nobody answers in time.
#[derive(Debug, Clone, PartialEq)]
pub enum OnTimeout {
    /// The step fails.
    Fail,
    /// This is the answer.
    Answer(Template),
}

/// A request for permission.
#[derive(Debug, Clone, PartialEq)]
pub struct ApproveStep {
    /// What is to be approved: a text.
    pub title: Template,
    /// Who may approve; whoever may answer asks of the world unless it says otherwise.
    pub audience: Option<Audience>,
    /// How long it waits.
    pub deadline_ms: Option<u64>,
}

/// A message from outside that is waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalStep {
    /// Its name; all steps that wait under one name have the same schema.
    pub name: Arc<str>,
    /// JSON Schema of its value.
    pub schema: Option<Value>,
    /// How long it waits.
    pub deadline_ms: Option<u64>,
}

/// An error that a flow makes itself.
#[derive(Debug, Clone, PartialEq)]
pub struct FailStep {
    /// Its code.
    pub code: FaultCode,
    /// Its message: a text.
    pub message: Template,
}
