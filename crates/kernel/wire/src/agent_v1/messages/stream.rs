//! Streamed output of a call.

use serde::{Deserialize, Serialize};
use wharf_vocab::Micro;

use super::chunk::{Channel, Chunk, Data};
use crate::agent_v1::CallId;

/// `agent.tool.stream`: a piece of a call's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
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

#[derive(Serialize, Deserialize)]
struct Written {
    call_id: CallId,
    seq: u64,
    channel: Channel,
    data: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_micro: Option<Micro>,
}

impl TryFrom<Written> for ToolStream {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        Ok(Self {
            call_id: written.call_id,
            seq: written.seq,
            chunk: Chunk::of(written.channel, written.data)?,
            done: written.done.unwrap_or(false),
            cost_micro: written.cost_micro,
        })
    }
}

impl From<ToolStream> for Written {
    fn from(stream: ToolStream) -> Self {
        let (channel, data) = stream.chunk.into_parts();
        let done = stream.done.then_some(true);
        let ToolStream { call_id, seq, cost_micro, .. } = stream;
        Self { call_id, seq, channel, data, done, cost_micro }
    }
}
