//! The operator protocol: what a core and an operator say to each other over
//! `WS /v1/operators/{sid}/ws`, one JSON object per text frame.
//!
//! The socket carries control only. Prompts, results and files go over HTTP, with the credentials
//! that a `spawn` carries. Parts that are not in the original protocol are marked as additions;
//! peers that do not know them ignore them.

mod http;
mod message;

pub use http::{
    Blueprint, NewSeat, NewTask, Seat, SeatList, SeatMade, TaskHooks, TaskStarted,
    WorkerDegradation, WorkerProgress, WorkerPrompt, WorkerResult,
};
pub use message::{CoreMessage, OperatorMessage, Pending, PendingFile, WorkerKind};

/// What browsers offer as subprotocol, and what is echoed.
pub const SUBPROTOCOL: &str = "wharf.v1";
/// Prefix of the subprotocol with which browsers pass their token.
pub const BEARER_SUBPROTOCOL: &str = "wharf.bearer.";

/// Codes with which a connection is closed.
pub mod close {
    /// The seat was given up, or another connection took over.
    pub const NORMAL: u16 = 1000;
    /// Too many violations.
    pub const POLICY: u16 = 1008;
    /// A frame that is too large.
    pub const TOO_LARGE: u16 = 1009;
    /// The core stops.
    pub const RESTART: u16 = 1012;
    /// A reader that is too slow; what it has not got is sent again later.
    pub const TRY_AGAIN: u16 = 1013;
}
