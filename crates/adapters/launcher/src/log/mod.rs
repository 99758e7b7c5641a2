//! The log of a launch: what its program writes on its standard output and error.
//!
//! Bytes go one way: pipe, [`redact`], [`lines`], then [`book`] (memory) and [`file`] (disk).
//! [`drain`] moves them. Everything is bounded: a line, the lines in memory, the file, and the
//! bytes taken per second. Nothing reaches memory or disk before secrets are taken out.

mod book;
mod drain;
mod file;
mod lines;
mod redact;

pub(crate) use book::LogBook;
pub(crate) use drain::{LogWriter, drain};
pub(crate) use file::{LogFile, read_tail};
pub use redact::{Redactor, StreamRedaction};
