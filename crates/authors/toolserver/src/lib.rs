//! Tool servers: programs that execute runs over the run protocol, one worker per run.
//!
//! `wharf tool serve` is this library with a handler in Python or any program; a Rust author
//! serves a [`Handler`] of their own.

#![warn(missing_docs, missing_debug_implementations)]

mod handler;
pub mod server;
mod steps;
pub mod transfer;
pub mod worker;

pub use handler::{Call, Done, Failure, Handler, Report, Reporter};
pub use steps::RunSteps;
