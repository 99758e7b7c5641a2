//! Files on their way into a world and out of it: streamed, hashed, retried, resumed.
//!
//! What is held in memory does not grow with a file. Whoever wants to show how far a file has got
//! is told through [`Progress`].

mod download;
mod flushing;
mod incoming;
mod listing;
mod local;
mod partial;
mod remote;
mod resume;
mod retry;
mod upload;

use std::fmt;
use std::sync::Arc;

use crate::error::Error;

pub use download::{Download, Downloaded};
pub use listing::{FileEntry, FileFilter, FileListing, FolderSummary};
pub use local::LocalFile;
pub use remote::{RemoteFile, prefix};
pub use upload::{Kept, Upload};

/// What happens to a file on its way.
#[derive(Debug)]
pub enum Transfer<'a> {
    /// A download begins; so many bytes are to come, if that is known.
    Started(Option<u64>),
    /// So many bytes are there from an earlier attempt and are not transferred again.
    Resumed(u64),
    /// So many more bytes were transferred.
    Moved(u64),
    /// So many bytes have been transferred in all; after a failure it may be fewer than before.
    Position(u64),
    /// Something failed that may pass; it is tried again.
    Retrying(&'a Error),
    /// All bytes were sent; the core makes a file of them, which may take a while.
    Assembling,
}

/// Is told how far a file has got.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Transfer<'_>) + Send + Sync>);

impl Progress {
    /// Calls `tell` with each step.
    pub fn new(tell: impl Fn(Transfer<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    fn tell(&self, step: Transfer<'_>) {
        (self.0)(step);
    }
}

impl Default for Progress {
    /// Tells nobody.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
