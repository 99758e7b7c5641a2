//! The run protocol, `theory.run.v1`: what a control plane and a tool server say to each other
//! over a WebSocket, one run per connection.
//!
//! What is written is complete and strict JSON: [`encode`]. What is read may leave out much:
//! [`decode_first`] and [`decode_later`] read what a client sends, [`decode_from_server`] what a
//! server sends. Fields that are not in the original protocol are marked as additions; peers that
//! do not know them ignore them.

mod from_client;
mod from_server;
mod message;
mod step;
mod value;

pub use from_client::{FirstFrame, LaterFrame, UnfitRequest, decode_first, decode_later};
pub use from_server::{Envelope, FromServer, InvalidFrame, decode_from_server, read_envelope};
pub use message::{
    Ack, Cancel, Control, EventData, EventMessage, Failure, Frame, Handover, Log, LogData,
    LogLevel, Mode, Phase, RequestControl, Response, ResponseControl, RunRequest, Status,
    TokenContent, TokenMessage, ToolName, Written, encode, encode_upstream,
};
pub use step::{StepMessage, SteppedMessage};
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
    /// Steps of one run's code that may have no answer at once.
    pub const STEPS_OPEN_MAX: usize = 64;
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

/// The status with which `wharf tool serve` ends when its handler cannot be imported. Another start
/// with the same files would end in the same way.
pub const HANDLER_EXIT: i32 = 78;

/// A line of a server's log that is about a run.
#[must_use]
pub fn run_line(run: &str, text: &str) -> String {
    format!("[{run}] {text}")
}

/// What a line says of a run, if it is about that run.
#[must_use]
pub fn line_of_run<'a>(line: &'a str, run: &str) -> Option<&'a str> {
    let rest = line.strip_prefix('[')?.strip_prefix(run)?.strip_prefix(']')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_the_run_that_it_names_and_no_other() {
        assert_eq!(line_of_run(&run_line("r1", "  File"), "r1"), Some("  File"));
        assert_eq!(line_of_run("[r1]", "r1"), Some(""));
        for line in ["[r10] x", "r1 x", "[r] 1] x", "x [r1] y", ""] {
            assert_eq!(line_of_run(line, "r1"), None, "{line}");
        }
    }
}
