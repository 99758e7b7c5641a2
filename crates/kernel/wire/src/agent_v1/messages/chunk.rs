//! What one piece of streamed output holds: a channel, and data in the shape of that channel.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::Object;

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
            Self::Partial { json } => {
                let mut counter = Counter(0);
                // The counter takes every byte, so writing to it cannot fail.
                serde_json::to_writer(&mut counter, json).map_or(u64::MAX, |()| counter.0)
            }
        }
    }
}

struct Counter(u64);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
#[derive(Serialize, Deserialize)]
pub(super) struct Data {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fraction: Option<f64>,
}

impl Chunk {
    /// Puts channel and data together if they belong together.
    pub(super) fn of(channel: Channel, data: Data) -> Result<Self, &'static str> {
        const WRONG: &str = "`data` does not have the shape of its channel";
        let text = |data: Data| data.text.ok_or(WRONG);
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
    pub(super) fn into_parts(self) -> (Channel, Data) {
        let text_only = |text| Data { text: Some(text), json: None, fraction: None };
        match self {
            Self::Text { channel: TextChannel::Stdout, text } => (Channel::Stdout, text_only(text)),
            Self::Text { channel: TextChannel::Stderr, text } => (Channel::Stderr, text_only(text)),
            Self::Text { channel: TextChannel::Log, text } => (Channel::Log, text_only(text)),
            Self::Status { text, fraction } => {
                (Channel::Status, Data { fraction, ..text_only(text) })
            }
            Self::Partial { json } => {
                let json = Some(Value::Object(json));
                (Channel::PartialResult, Data { text: None, json, fraction: None })
            }
        }
    }
}
