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

mod access;
mod connection;
mod execution;
mod handshake;
mod http;
mod hub;
mod listener;
mod metered;
mod options;
mod service;

pub use options::{Listen, Options};
pub use service::Server;
pub use wharf_protocol::run::server::{Limits, Profile};
pub use wharf_tls::CertFiles;

use std::io;
use std::path::PathBuf;

use crate::Failure;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error("`{0}` is no address to listen on; write HOST:PORT, unix:PATH or fd:NUMBER")]
    Address(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// Without a token it may not listen where others can reach it.
    #[error("{0} can be reached from elsewhere; give a token file, or listen on 127.0.0.1")]
    Open(String),
    /// A file cannot be used.
    #[error("cannot use {path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate or its key cannot be used.
    #[error("{0}")]
    Tls(#[from] wharf_tls::Error),
    /// The settings for files do not fit.
    #[error("{}", .0.message)]
    Files(Failure),
    /// The handler cannot get ready.
    #[error("the handler cannot start: {}", .0.message)]
    Handler(Failure),
}
