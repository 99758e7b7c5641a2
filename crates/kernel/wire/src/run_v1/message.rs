//! The messages.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::limits::PHASE_TEXT_BYTES_MAX;
use super::{StepMessage, SteppedMessage};

/// Any message, by its `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Frame {
    /// Client to server: do this.
    Request(RunRequest),
    /// Client to server, an addition: stop.
    Cancel(Cancel),
    /// Client to server, an addition: what became of a step.
    Stepped(SteppedMessage),
    /// Server to client: the run is known.
    Ack(Ack),
    /// Server to client: a line for people.
    Log(Log),
    /// Server to client: how far it is.
    Event(EventMessage),
    /// Server to client, of the authors' software: a piece of text.
    Token(TokenMessage),
    /// Server to client, an addition: do a step of the run's code.
    Step(StepMessage),
    /// Server to client: partial or final outputs.
    Response(Response),
}

/// The text of a frame: one line of strict JSON. A message holds nothing that JSON cannot say,
/// so this never fails.
#[must_use]
pub fn encode(frame: &Frame) -> String {
    serde_json::to_string(frame).unwrap_or_default()
}

/// The text of a frame for peers of the half-migrated wire, with the `content` that they look for:
/// the run's id, the phase or the line. Everything else is as [`encode`] writes it.
#[must_use]
pub fn encode_upstream(frame: &Frame) -> String {
    let content = match frame {
        Frame::Ack(ack) => json!({"run_id": ack.control.run_id}),
        Frame::Event(event) => json!({"phase": event.data.phase}),
        Frame::Log(log) => json!({"msg": log.data.msg}),
        Frame::Request(_)
        | Frame::Cancel(_)
        | Frame::Stepped(_)
        | Frame::Token(_)
        | Frame::Step(_)
        | Frame::Response(_) => return encode(frame),
    };
    match serde_json::to_value(frame) {
        Ok(Value::Object(mut object)) => {
            object.insert("content".to_owned(), content);
            Value::Object(object).to_string()
        }
        _ => encode(frame),
    }
}

/// Whether a run is real or pretended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It pretends.
    #[default]
    Mock,
    /// It acts, and costs.
    Real,
}

/// The first message of a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Which run, and how.
    pub control: RequestControl,
    /// Values, addresses and paths by key.
    #[serde(default)]
    pub inputs: Object,
    /// Where outputs go: addresses and paths by key.
    #[serde(default)]
    pub outputs: Object,
}

/// What a request says beside data.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestControl {
    /// The run.
    pub run_id: String,
    /// Real or pretended.
    #[serde(default)]
    pub mode: Mode,
    /// An addition: which attempt of the run, from 1; not written when it is the first.
    #[serde(default = "first_attempt", skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// An addition: keys of inputs that are references; without it prefixes decide.
    pub refs: Option<Vec<String>>,
    /// An addition: the world that the run belongs to, since ids of runs are unique in their world
    /// only.
    pub world: Option<String>,
    /// An addition: send only what comes after this number. Whoever gives one, 0 included, asks for
    /// a run that was begun: a server that does not know it answers `ERR_WORKER` instead of
    /// beginning it a second time.
    pub after: Option<u64>,
    /// An addition: how long the attempt may run, in milliseconds from now.
    pub deadline_ms: Option<u64>,
    /// An addition: outputs without which the run has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// An addition: the tool that the request is for. A server that serves another one refuses it.
    pub tool: Option<ToolName>,
    /// An addition: whether whoever asks does the steps of the run's code, which are found again
    /// when the run is attempted anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steps: bool,
    /// An addition: the place of the attempt in its trace, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
    /// An addition: what tracing systems add to that for each other.
    pub tracestate: Option<String>,
}

/// An addition: which tool is meant, and in which definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolName {
    /// The tool, such as `text/shout@1`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The hash of its definition, as whoever speaks knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl ToolName {
    /// Whether both mean the same tool. What one of them leaves open is not compared.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        let differ = self.digest.as_ref().zip(other.digest.as_ref()).is_some_and(|(a, b)| a != b);
        self.reference == other.reference && !differ
    }
}

impl RequestControl {
    /// The first attempt of a run, without any additions.
    pub fn new(run_id: impl Into<String>, mode: Mode) -> Self {
        Self {
            run_id: run_id.into(),
            mode,
            attempt: first_attempt(),
            refs: None,
            world: None,
            after: None,
            deadline_ms: None,
            required: Vec::new(),
            tool: None,
            steps: false,
            traceparent: None,
            tracestate: None,
        }
    }
}

fn first_attempt() -> u32 {
    1
}

fn is_first(attempt: &u32) -> bool {
    *attempt == first_attempt()
}

/// What most messages say beside data.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// The run; the connection's when absent.
    pub run_id: Option<String>,
    /// An addition: what the attempt has cost so far, in micro-dollars. Kept as it came, since it
    /// is judged apart.
    pub cost_micro: Option<Value>,
    /// An addition: the message's number within the attempt, from 1.
    pub seq: Option<u64>,
}

impl Control {
    /// Names a run and says nothing else.
    pub fn of(run_id: impl Into<String>) -> Self {
        Self { run_id: Some(run_id.into()), ..Self::default() }
    }
}

/// The run is known; comes before anything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Which run.
    #[serde(default)]
    pub control: Control,
    /// An addition: the tool that is served. It is said to those who named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
}

/// An addition: stop the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Which run.
    #[serde(default)]
    pub control: Control,
}

/// A line for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Which run.
    #[serde(default)]
    pub control: Control,
    /// The line.
    pub data: LogData,
}

/// A line and when it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogData {
    /// The text.
    pub msg: String,
    /// How grave it is.
    #[serde(default)]
    pub level: LogLevel,
    /// Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<f64>,
}

/// How grave a line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// The usual.
    #[default]
    Info,
    /// Something is odd.
    Warn,
    /// Something went wrong.
    Error,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventMessage {
    /// Which run.
    #[serde(default)]
    pub control: Control,
    /// The phase.
    pub data: EventData,
}

/// A phase and how much is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventData {
    /// The phase.
    pub phase: Phase,
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// What the run is doing, in the tool's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl EventData {
    /// A phase, and how much is done. What is no phase of the protocol's becomes the text of a
    /// checkpoint, as much of it as may be said.
    #[must_use]
    pub fn new(phase: Phase, progress: Option<f64>) -> Self {
        let Phase::Other(text) = phase else { return Self { phase, progress, text: None } };
        let text = clean_text(&text);
        Self { phase: Phase::Checkpoint, progress, text: Some(text).filter(|it| !it.is_empty()) }
    }
}

/// What a run is doing, on one line of bounded length.
pub(super) fn clean_text(text: &str) -> String {
    let text = text.get(..text.floor_char_boundary(PHASE_TEXT_BYTES_MAX)).unwrap_or(text);
    let plain = text.split(|c: char| c.is_control() || c.is_whitespace());
    plain.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Phase {
    /// It began.
    Started,
    /// It goes on.
    Checkpoint,
    /// It is over.
    Completed,
    /// It was stopped.
    Preempted,
    /// Another word of the authors' software, such as `paused`.
    Other(String),
}

impl Phase {
    /// Its word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Started => "started",
            Self::Checkpoint => "checkpoint",
            Self::Completed => "completed",
            Self::Preempted => "preempted",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for Phase {
    fn from(word: String) -> Self {
        match word.as_str() {
            "started" => Self::Started,
            "checkpoint" => Self::Checkpoint,
            "completed" => Self::Completed,
            "preempted" => Self::Preempted,
            _ => Self::Other(word),
        }
    }
}

impl From<Phase> for String {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Other(word) => word,
            known => known.as_str().to_owned(),
        }
    }
}

/// A piece of text that the authors' software streams; pieces follow on each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenMessage {
    /// Which run.
    #[serde(default)]
    pub control: Control,
    /// The piece.
    pub content: TokenContent,
}

/// What is new in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenContent {
    /// The text.
    pub text: String,
}

/// Partial or final outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Which run, and how it went.
    pub control: ResponseControl,
    /// Values, or where they were written.
    #[serde(default)]
    pub outputs: Object,
    /// What went wrong, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What a response says beside data.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseControl {
    /// The run; the connection's when absent.
    pub run_id: Option<String>,
    /// How it went; only final ones have it.
    pub status: Option<Status>,
    /// Micro-dollars. Kept as it came, since it is judged apart.
    pub cost_micro: Option<Value>,
    /// Whether it is the last.
    #[serde(default, rename = "final")]
    pub is_final: bool,
    /// An addition: the message's number within the attempt, from 1.
    pub seq: Option<u64>,
    /// An addition: what was written, by output key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, Written>,
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Well.
    Success,
    /// Not well; there is an error.
    Error,
}

/// An output that is where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// How large it is.
    pub bytes: u64,
    /// Its BLAKE3 hash, in hexadecimal.
    pub b3: String,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A code.
    #[serde(default = "unknown")]
    pub code: String,
    /// One sentence.
    #[serde(default)]
    pub message: String,
}

impl Failure {
    /// A failure of which nothing is said.
    #[must_use]
    pub fn unknown() -> Self {
        Self { code: unknown(), message: String::new() }
    }
}

fn unknown() -> String {
    super::code::UNKNOWN.to_owned()
}

/// What a core hands to a server that it launches, over the descriptor that the server inherits.
///
/// It comes as one message of JSON, together with the socket that the server listens on. Nothing of
/// it stands in an argument, in the environment or in a file, so that no process of the server's
/// own making learns it by inheritance.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// What the core shows with every connection for a run, as a bearer token. It is for this
    /// launch alone.
    pub secret: String,
    /// The tool that is served.
    pub tool: ToolName,
}

impl Handover {
    /// Longest message.
    pub const BYTES_MAX: usize = 4 * 1024;
}

// A secret must not reach a log by way of a debug print.
impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").field("tool", &self.tool).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back_and_not_shown() {
        let tool = ToolName { reference: "a/b@1".into(), digest: None };
        let handover = Handover { secret: "canary".into(), tool };
        let text = serde_json::to_string(&handover).expect("writes");
        assert_eq!(text, r#"{"secret":"canary","tool":{"ref":"a/b@1"}}"#);
        assert_eq!(serde_json::from_str::<Handover>(&text).expect("reads"), handover);
        assert!(!format!("{handover:?}").contains("canary"));
    }
}
