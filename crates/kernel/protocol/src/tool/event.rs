//! What happens on a connection, and what bounds it.

use serde_json::Value;
use wharf_vocab::limits::VALUE_BYTES_MAX;
use wharf_wire::tool_v1::{Kind, Offer, OfferedTool};

use super::ToolAnswer;

/// What one connection may make its owner keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest frame that is read or written.
    pub frame_bytes_max: usize,
    /// Calls that may wait for an answer at once.
    pub calls_max: usize,
    /// Requests that may be served at once; the next is answered `tool.busy`.
    pub served_max: usize,
    /// Longest id of a request.
    pub id_bytes_max: usize,
    /// Frames that nobody can read before the connection is closed.
    pub unreadable_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A value of the largest size in its envelope.
            frame_bytes_max: VALUE_BYTES_MAX + 64 * 1024,
            calls_max: 4_096,
            served_max: 256,
            id_bytes_max: 256,
            unreadable_max: u64::MAX,
        }
    }
}

/// Why a call was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Too many calls wait for an answer.
    #[error("too many calls wait for an answer on this connection")]
    Full,
    /// A call with this id waits already.
    #[error("a call with this id waits for an answer already")]
    Duplicate,
    /// The input is too large for a frame.
    #[error("the input is too large for this connection")]
    TooLarge,
    /// The connection has ended.
    #[error("the connection has ended")]
    Ended,
}

/// What a session has ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Progress, responses and cancels about calls that nobody knows.
    pub unknown_ids: u64,
    /// Responses to calls that were answered before.
    pub duplicate_responses: u64,
    /// Frames that could not be read.
    pub unreadable: u64,
    /// Messages of a type that nobody knows.
    pub unknown_types: u64,
}

/// A request that the peer made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// Names it; progress and the answer go under this name.
    pub id: String,
    /// What kind of answer is waited for.
    pub kind: Kind,
    /// The tool or method.
    pub method: String,
    /// Its input.
    pub payload: Value,
    /// The call made here that the peer is serving while it asks this.
    pub of: Option<String>,
}

/// What happened on a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolEvent {
    /// The peer asks for something.
    Request(ToolRequest),
    /// The peer does not wait for a request any more, or has gone.
    Canceled {
        /// The request.
        id: String,
    },
    /// Something on the way to an answer.
    Progress {
        /// The call.
        id: String,
        /// What the peer says.
        data: Value,
    },
    /// What a call has cost so far, in millionths of a dollar. It may also come after the answer
    /// and after the call was taken back; a smaller number than before says nothing.
    Cost {
        /// The call.
        id: String,
        /// What it has cost.
        so_far_micro: u64,
    },
    /// The answer to a call.
    Answered {
        /// The call.
        id: String,
        /// The answer.
        answer: ToolAnswer,
    },
    /// The peer offers these tools, and no others.
    Offer(Vec<OfferedTool>),
    /// What became of an offer made here.
    Offered(Offer),
}
