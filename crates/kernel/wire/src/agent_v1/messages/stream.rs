//! Streamed output of a call: a channel, and data in the shape of that channel.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::json::json_bytes;
use wharf_vocab::{Micro, Object};

use crate::agent_v1::CallId;

/// `agent.tool.stream`: a piece of a call's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StreamFields", into = "StreamFields")]
pub struct ToolStream {
    /// The call.
    pub call_id: CallId,
    /// The place of the piece: 1 for the first, then one more each time.
    pub seq: u64,
    /// The piece.
    pub chunk: Chunk,
    /// Whether it is the last one.
    pub done: bool,
    /// What the call has cost so far, in millionths of a dollar.
    pub cost_micro: Option<Micro>,
}

impl ToolStream {
    /// Whether it tells nothing but a cost: a status without text.
    #[must_use]
    pub fn is_cost_only(&self) -> bool {
        let silent = |chunk: &Chunk| matches!(chunk, Chunk::Status { text, fraction: None } if text.is_empty());
        self.cost_micro.is_some() && silent(&self.chunk)
    }
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
struct StreamFields {
    call_id: CallId,
    seq: u64,
    channel: Channel,
    data: ChunkData,
    done: Option<bool>,
    cost_micro: Option<Micro>,
}

impl TryFrom<StreamFields> for ToolStream {
    type Error = &'static str;

    fn try_from(written: StreamFields) -> Result<Self, &'static str> {
        Ok(Self {
            call_id: written.call_id,
            seq: written.seq,
            chunk: Chunk::of(written.channel, written.data)?,
            done: written.done.unwrap_or(false),
            cost_micro: written.cost_micro,
        })
    }
}

impl From<ToolStream> for StreamFields {
    fn from(stream: ToolStream) -> Self {
        let (channel, data) = stream.chunk.into_parts();
        let done = stream.done.then_some(true);
        let ToolStream { call_id, seq, cost_micro, .. } = stream;
        Self { call_id, seq, channel, data, done, cost_micro }
    }
}

/// A piece of streamed output.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// Text that was added to a channel.
    Text {
        /// The channel.
        channel: TextChannel,
        /// The text.
        text: String,
    },
    /// What the tool is doing, and how far it is.
    Status {
        /// What it is doing.
        text: String,
        /// How far it is, from 0 to 1.
        fraction: Option<f64>,
    },
    /// A result that is not final; for display only.
    Partial {
        /// The result so far.
        json: Object,
    },
}

/// A channel for text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextChannel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The log.
    Log,
}

impl Chunk {
    /// How many bytes of output the chunk holds, as budgets count them.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        match self {
            Self::Text { text, .. } | Self::Status { text, .. } => text.len() as u64,
            Self::Partial { json } => json_bytes(json) as u64,
        }
    }
}

/// The channel as the wire names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Channel {
    Stdout,
    Stderr,
    Log,
    PartialResult,
    Status,
}

/// The data as the wire has it, before it is compared with the channel.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
pub(super) struct ChunkData {
    text: Option<String>,
    json: Option<Value>,
    fraction: Option<f64>,
}

impl Chunk {
    /// Puts channel and data together if they belong together.
    pub(super) fn of(channel: Channel, data: ChunkData) -> Result<Self, &'static str> {
        const WRONG: &str = "`data` does not have the shape of its channel";
        let text = |data: ChunkData| data.text.ok_or(WRONG);
        let channel = match channel {
            Channel::PartialResult => {
                return match data.json {
                    Some(Value::Object(json)) => Ok(Self::Partial { json }),
                    _ => Err(WRONG),
                };
            }
            Channel::Status => {
                let fraction = data.fraction.map(|fraction| fraction.clamp(0.0, 1.0));
                return Ok(Self::Status { fraction, text: text(data)? });
            }
            Channel::Stdout => TextChannel::Stdout,
            Channel::Stderr => TextChannel::Stderr,
            Channel::Log => TextChannel::Log,
        };
        Ok(Self::Text { channel, text: text(data)? })
    }

    /// Takes channel and data apart again.
    pub(super) fn into_parts(self) -> (Channel, ChunkData) {
        let text_only = |text| ChunkData { text: Some(text), json: None, fraction: None };
        match self {
            Self::Text { channel: TextChannel::Stdout, text } => (Channel::Stdout, text_only(text)),
            Self::Text { channel: TextChannel::Stderr, text } => (Channel::Stderr, text_only(text)),
            Self::Text { channel: TextChannel::Log, text } => (Channel::Log, text_only(text)),
            Self::Status { text, fraction } => {
                (Channel::Status, ChunkData { fraction, ..text_only(text) })
            }
            Self::Partial { json } => {
                let json = Some(Value::Object(json));
                (Channel::PartialResult, ChunkData { text: None, json, fraction: None })
            }
        }
    }
}
