//! A client for Wharf's REST API.
//!
//! It finds a core, starts runs and follows them to their end over lost connections and restarts,
//! moves files in and out of worlds with resume and verification, answers what waits in the
//! inbox, and administers agents, tools, worlds, tokens and secrets. Requests and answers are the
//! types of [`wharf_wire::rest_v1`]. `docs/rust-client.md` is a tour.
//!
//! ```no_run
//! use serde_json::json;
//! use wharf_client::{Client, Locator};
//!
//! # async fn example() -> wharf_client::Result<()> {
//! let client = Client::new(Locator::from_env())?;
//! let run = client.runs().run("wharf/count", json!({"n": 3})).await?;
//! println!("{} {:?}", run.status, run.outputs);
//! # Ok(())
//! # }
//! ```
//!
//! - An answer that is an error becomes an [`Error`] with the core's own code.
//! - Only what is safe to repeat is repeated, and only while the core is away.
//! - The owner's token of a home is sent to the core of that home and to nobody else.
//! - What is held in memory does not grow with the size of a file.

#![warn(missing_docs, missing_debug_implementations)]

mod api;
mod call;
mod client;
mod error;
mod files;
mod follow;
mod home;
mod locator;
#[cfg(test)]
mod scripted;
mod trust;

pub use api::{
    Agents, Audit, AuditFilter, Flows, Inbox, LogFollower, McpServers, Operatives, Providers,
    Receivers, RunFilter, Runs, Schedules, Seats, Secrets, Tokens, Tools, Triggers, Worlds,
};
pub use call::{Call, List};
pub use client::Client;
pub use error::{Error, Result};
pub use files::{
    Download, Downloaded, FileEntry, FileFilter, FileListing, FolderSummary, Kept, LocalFile,
    Progress, RemoteFile, Transfer, Upload, prefix,
};
pub use follow::{Follower, RunEvent, Update};
pub use home::{Holder, Home};
pub use locator::{Locator, TokenNarrowing};
pub use wharf_wire::rest_v1;
