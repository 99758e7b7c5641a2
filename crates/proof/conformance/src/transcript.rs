//! What went over one connection, in the order it was seen.

use std::time::Instant;

use serde_json::Value;
use wharf_wire::agent_v1::{AgentMessage, DecodeError, FrameError, Malformed, decode};

/// One message, in either direction.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// When it was sent or had arrived.
    pub(crate) at: Instant,
    /// Whether the agent sent it.
    pub(crate) from_agent: bool,
    /// The message.
    pub(crate) message: Value,
}

impl Line {
    /// The message's type.
    pub(crate) fn kind(&self) -> &str {
        self.message["type"].as_str().unwrap_or_default()
    }

    /// The call that the payload names.
    pub(crate) fn call_id(&self) -> Option<&str> {
        self.message["payload"]["call_id"].as_str()
    }
}

/// Everything that went over one connection.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The messages.
    pub(crate) lines: Vec<Line>,
    /// Requirements that bytes and frames already broke, and how.
    pub(crate) faults: Vec<(u16, String)>,
    /// Whether the agent was sent something that is no message, and has no id to name.
    pub(crate) garbled: bool,
    /// Whether the agent has closed its end.
    pub(crate) ended: bool,
}

impl Transcript {
    /// What the agent sent, with the place of each message among all of them.
    pub(crate) fn received(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().filter(|(_, line)| line.from_agent)
    }

    /// Messages of one type from the agent.
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.from_agent && line.kind() == kind)
    }

    /// The first result of a call.
    pub(crate) fn result(&self, call_id: &str) -> Option<&Value> {
        self.of_kind("agent.tool.result")
            .find(|line| line.call_id() == Some(call_id))
            .map(|line| &line.message)
    }

    /// How many results a call has.
    pub(crate) fn results(&self, call_id: &str) -> usize {
        self.of_kind("agent.tool.result").filter(|line| line.call_id() == Some(call_id)).count()
    }

    /// Forgets the results of a call behind the first `count`.
    pub(crate) fn keep_results(&mut self, call_id: &str, count: usize) {
        let mut seen = 0;
        self.lines.retain(|line| {
            let its_result = line.from_agent
                && line.kind() == "agent.tool.result"
                && line.call_id() == Some(call_id);
            seen += usize::from(its_result);
            !its_result || seen <= count
        });
    }

    /// The first message that answers the one with this id.
    pub(crate) fn reply(&self, to: &str) -> Option<&Value> {
        let answers = |line: &&Line| line.from_agent && line.message["in_reply_to"] == to;
        self.lines.iter().find(answers).map(|line| &line.message)
    }

    /// Takes a message that is about to be sent.
    pub(crate) fn sent(&mut self, message: Value) {
        self.lines.push(Line { at: Instant::now(), from_agent: false, message });
    }

    /// Takes a frame from the agent.
    pub(crate) fn frame(&mut self, frame: &[u8]) {
        if let Err(error) = decode::<AgentMessage>(frame)
            && let Some(number) = broken_by(&error)
        {
            self.faults.push((number, format!("A message of the agent is wrong: {error}.")));
        }
        if let Ok(message) = serde_json::from_slice(frame) {
            self.lines.push(Line { at: Instant::now(), from_agent: true, message });
        }
    }

    /// Takes the reason why the agent's bytes are no frame.
    pub(crate) fn frame_error(&mut self, error: FrameError) {
        let number = match error {
            FrameError::TooLarge { .. } => 12,
            FrameError::Empty => 5,
            FrameError::Truncated => 1,
        };
        self.faults.push((number, format!("The agent's bytes are wrong: {error}.")));
    }
}

/// The requirement that a message broke if it cannot be read; a type nobody knows breaks none.
fn broken_by(error: &DecodeError) -> Option<u16> {
    match error {
        DecodeError::Malformed(why) => Some(match why {
            Malformed::NotUtf8 | Malformed::ByteOrderMark | Malformed::LoneSurrogate => 4,
            Malformed::TooDeep => 27,
            Malformed::DuplicateKey => 26,
            Malformed::NotAnObject | Malformed::Syntax => 3,
        }),
        DecodeError::Rejected(rejected) => Some(match rejected.field.as_str() {
            "error" | "payload.error" => 29,
            "payload.seq" => 105,
            "payload.channel" | "payload.data" => 107,
            field if field.starts_with("payload.") => {
                match rejected.header.type_name.as_deref().unwrap_or_default() {
                    "agent.hello" => 40,
                    "agent.tools.register" => 68,
                    "agent.tool.stream" => 107,
                    "agent.tool.result" => 121,
                    "agent.heartbeat" => 140,
                    _ => 19,
                }
            }
            _ => 19,
        }),
        DecodeError::UnknownType(_) => None,
        DecodeError::WrongDirection(_) => Some(32),
    }
}
