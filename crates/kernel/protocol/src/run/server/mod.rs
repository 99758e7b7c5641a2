//! The end that works: a tool server.
//!
//! Two machines without I/O. A [`RunServer`] judges what one connection sends and when it has been
//! silent for too long. The [`Book`] keeps the runs: which request is which run, what was said so
//! far, who watches, and how each one ended. Their owner moves bytes, executes handlers and tells
//! the time.

mod book;
mod ending;
mod limits;
mod record;
mod session;
mod speech;

pub use book::{Book, Credential, NextFrames, OpenResult, RunNo, WatcherNo};
pub use ending::{Ending, answer};
pub use limits::{Limits, Profile};
pub use record::digest;
pub use session::{RunServer, ServerEvent};
pub use speech::{Overflow, RunReport};
