//! Why a server does not start.

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
    /// Everybody could use the server.
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
    /// The settings for files do not fit.
    #[error("{}", .0.message)]
    Files(Failure),
    /// The handler cannot get ready.
    #[error("the handler cannot start: {}", .0.message)]
    Handler(Failure),
}
