//! The tool protocol: one connection between a principal and an operative.
//!
//! The session is the same at both ends, because either may call the other: it matches progress
//! and responses to the calls that were made here, keeps the calls that are served here apart, and
//! bounds both. What a call means is its owner's business.
//!
//! - Every call that was made ends with exactly one answer: the peer's, or that the connection was
//!   lost. A call that was taken back ends without one.
//! - Every request that was taken gets exactly one response; what is said afterwards is dropped.
//! - Answers that nobody waits for are counted and otherwise ignored.
//! - What a call cost is told between peers of ours only, as it grows, and once more with the
//!   response; it is taken in also when the call is over, as long as it is remembered.

mod answer;
mod event;
mod event_log;
mod session;
#[cfg(test)]
mod tests;
pub mod value;

pub use answer::ToolAnswer;
pub use event::{CallError, Counters, Limits, ToolEvent, ToolRequest};
pub use event_log::{EventLog, NextEvents, ReaderPlace};
pub use session::ToolSession;
