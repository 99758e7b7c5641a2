//! The server: listens, keeps runs, and lets a handler execute them.
//!
//! ```text
//! connection ──▶ session (what may come when) ──▶ hub (book of runs, admission) ──▶ execution
//!      ▲                                             │ one task per run: handler, limits, cancel
//!      └────────────── frames, by position ◀─────────┘
//! ```
//!
//! Invariants:
//! - A run is executed by its own task and never waits for a connection; a connection reads what
//!   the run said from the book, at its own pace.
//! - Every run that was started ends with one final response, whatever happens to its handler.
//! - Nothing waits without a bound: connections, runs, frames, lines and kept runs have limits.

mod connection;
mod error;
mod execution;
mod guard;
mod handover;
mod handshake;
mod http;
mod hub;
mod listener;
mod metered;
mod options;
mod service;
mod tls;
mod tokens;

pub use error::Error;
pub use options::{Listen, Options, Tls};
pub use service::Server;
pub use wharf_protocol::run::server::{Limits, Profile};
