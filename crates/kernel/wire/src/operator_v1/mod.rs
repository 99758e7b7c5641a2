//! The operator protocol: what a core and an operator say to each other over
//! `WS /v1/operators/{sid}/ws`, one JSON object per text frame.
//!
//! The socket carries control only. Prompts, results and files go over HTTP, with the credentials
//! that a `spawn` carries. Parts that are not in the original protocol are marked as additions;
//! peers that do not know them ignore them.

mod http;
mod message;

pub use http::{
    Blueprint, NewSeat, NewTask, Seat, SeatList, SeatMade, SeatWait, TaskHooks, TaskStarted,
    WorkerDegradation, WorkerProgress, WorkerPrompt, WorkerResult,
};
pub use message::{CoreMessage, OperatorMessage, Pending, PendingFile, WorkerKind};

pub use crate::ws::close;
