//! The run protocol, `theory.run.v1`: what a control plane and a tool server say to each other
//! over a WebSocket, one run per connection.
//!
//! What is written is complete and strict JSON: [`encode`]. What is read may leave out much:
//! [`decode_first`] and [`decode_later`] read what a client sends, [`decode_from_server`] what a
//! server sends. Fields that are not in the original protocol are marked as additions; peers that
//! do not know them ignore them.

mod from_client;
mod from_server;
mod log;
mod message;
mod value;

pub use from_client::{FirstFrame, LaterFrame, UnfitRequest, decode_first, decode_later};
pub use from_server::{Envelope, FromServer, InvalidFrame, decode_from_server, read_envelope};
pub use log::{HANDLER_EXIT, line_of_run, run_line};
pub use message::{
    Ack, Cancel, Control, EventData, EventMessage, Failure, Frame, Handover, Log, LogData,
    LogLevel, Mode, Phase, RequestControl, Response, ResponseControl, RunRequest, Status,
    TokenContent, TokenMessage, ToolName, Written, encode, encode_upstream,
};
pub use value::Refusal;

pub use crate::ws::close;

/// The subprotocol that both ends must name.
pub const SUBPROTOCOL: &str = "theory.run.v1";
/// Where a tool server takes runs.
pub const RUN_PATH: &str = "/run";
/// Where a tool server says how it is.
pub const HEALTH_PATH: &str = "/healthz";

/// The numbers of this wire.
pub mod limits {
    /// Largest frame unless a server is told otherwise.
    pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;
    /// Longest id of a run.
    pub const RUN_ID_BYTES_MAX: usize = 256;
    /// Longest word for a phase.
    pub const PHASE_BYTES_MAX: usize = 64;
    /// Longest text that says what a run is doing; the rest is cut off.
    pub const PHASE_TEXT_BYTES_MAX: usize = 200;
    /// Deepest nesting of a frame.
    pub const NESTING_MAX: usize = crate::agent_v1::limits::NESTING_MAX;
}

/// Codes of failures that a tool server gives by itself.
pub mod code {
    /// Inputs or outputs are not objects, or do not fit.
    pub const INPUTS: &str = "ERR_INPUTS";
    /// The handler raised something, or gave nothing usable.
    pub const HANDLER: &str = "ERR_HANDLER";
    /// The worker was killed or ended without an answer.
    pub const WORKER: &str = "ERR_WORKER";
    /// The run took too long.
    pub const TIMEOUT: &str = "ERR_TIMEOUT";
    /// The run was canceled.
    pub const CANCELED: &str = "ERR_CANCELED";
    /// Too many runs at once.
    pub const BUSY: &str = "ERR_BUSY";
    /// The run used more memory or gave more output than it may.
    pub const LIMIT: &str = "ERR_LIMIT";
    /// The reported cost is not a whole number of micro-dollars.
    pub const COST: &str = "ERR_COST";
    /// The peer broke the protocol.
    pub const PROTOCOL: &str = "ERR_PROTOCOL";
    /// An address that may not be reached.
    pub const EGRESS: &str = "ERR_EGRESS";
    /// A path that may not be opened.
    pub const PATH: &str = "ERR_PATH";
    /// An input that is not there.
    pub const NOT_FOUND: &str = "ERR_NOT_FOUND";
    /// Storage refused an address.
    pub const STORAGE_DENIED: &str = "ERR_STORAGE_DENIED";
    /// An address of storage is good no more.
    pub const STORAGE_EXPIRED: &str = "ERR_STORAGE_EXPIRED";
    /// Storage does not answer as it should.
    pub const STORAGE: &str = "ERR_STORAGE";
    /// A required output was not produced.
    pub const OUTPUT_MISSING: &str = "ERR_OUTPUT_MISSING";
    /// The request is for another tool than the one that is served.
    pub const WRONG_TOOL: &str = "ERR_WRONG_TOOL";
    /// A failure that came without a code.
    pub const UNKNOWN: &str = "UNKNOWN";
}
