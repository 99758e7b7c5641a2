//! Sessions without I/O, both ends of each wire.
//!
//! A [`Session`] is pushed frames and moments, and polled for events, frames and the next deadline.
//! It holds no socket, no clock and no randomness: what differs from run to run is passed in. So the
//! same machine serves a core, an agent and a test that drives both ends by hand, and every rule
//! about order, limits and time is decided in one place.
//!
//! What a session does not do: it decides nothing about permissions, money or runs. It reports
//! what a peer wants, and its owner answers.

pub mod agent;
mod frame_meter;
mod heartbeat;
pub mod mcp;
pub mod operator;
mod pings;
pub mod run;
mod session;
pub mod sse;
pub mod tool;

pub use frame_meter::FrameMeter;
pub use pings::Pings;
pub use session::{Closed, Incoming, Moment, Outgoing, Session};
