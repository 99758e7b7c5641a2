//! Calls that an agent makes through the core; needs the capability `invoke`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Object, StepName};

use super::CallStatus;
use super::stream::{Channel, Chunk, ChunkData};
use crate::agent_v1::{CallId, ErrorObject, InvokeId};

/// `agent.tool.invoke`: call a tool through the core.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvoke {
    /// The agent's id for this call.
    pub invoke_id: InvokeId,
    /// The tool.
    pub tool_id: String,
    /// The tool's arguments.
    pub input: Object,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// The same key with the same input is executed once.
    pub idempotency_key: Option<String>,
    /// The call on whose behalf the agent calls. Without one the agent has no right to call.
    pub parent_call_id: Option<CallId>,
    /// With the capability `steps`: the step of the call's durable code that this is.
    pub step: Option<StepName>,
}

/// `agent.tool.invoke_cancel`: stop a call that the agent made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolInvokeCancel {
    /// The agent's id for the call.
    pub invoke_id: InvokeId,
}

/// `core.tool.invoke_stream`: progress of a call that the agent made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenStream", into = "WrittenStream")]
pub struct InvokeStream {
    /// The agent's id for the call.
    pub invoke_id: InvokeId,
    /// The place of the piece: 1 for the first, then one more each time.
    pub seq: u64,
    /// The piece.
    pub chunk: Chunk,
}

/// `core.tool.invoke_result`: the single end of a call that the agent made.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvokeResult {
    /// The agent's id for the call.
    pub invoke_id: InvokeId,
    /// How it ended.
    pub status: CallStatus,
    /// What it gave.
    pub output: Option<Value>,
    /// Why it did not succeed.
    pub error: Option<ErrorObject>,
}

#[derive(Serialize, Deserialize)]
struct WrittenStream {
    invoke_id: InvokeId,
    seq: u64,
    channel: Channel,
    data: ChunkData,
}

impl TryFrom<WrittenStream> for InvokeStream {
    type Error = &'static str;

    fn try_from(written: WrittenStream) -> Result<Self, &'static str> {
        Ok(Self {
            invoke_id: written.invoke_id,
            seq: written.seq,
            chunk: Chunk::of(written.channel, written.data)?,
        })
    }
}

impl From<InvokeStream> for WrittenStream {
    fn from(stream: InvokeStream) -> Self {
        let (channel, data) = stream.chunk.into_parts();
        Self { invoke_id: stream.invoke_id, seq: stream.seq, channel, data }
    }
}
