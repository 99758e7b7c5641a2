//! The store in one SQLite file.
//!
//! One thread writes: it gathers the batches that wait, checks each against what is stored,
//! writes those that hold, and flushes them to disk with one commit. Reads go to a few
//! connections of their own on blocking threads, so the asynchronous runtime never waits for a
//! disk. Batches are turned into bytes by whoever commits them, not by the writer.
//!
//! What is reported as committed has been flushed (`WAL`, `synchronous = FULL`). When the disk is
//! full or fails, the whole group is rolled back and reported as failed, and the writer goes on.

mod audit;
pub mod backup;
mod connect;
mod error;
mod export;
mod integrity;
pub mod migrations;
mod number;
mod read;
mod readers;
mod room;
mod seal;
mod store;
mod writer;

pub use audit::verify_audit;
pub use export::{ExportSize, SqliteExport};
pub use integrity::integrity_check;
pub use room::compact;
pub use store::SqliteStore;
