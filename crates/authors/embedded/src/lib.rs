//! A core inside one's own program: the same runs, asks and recovery as `wharf up`, without a
//! server, a network or another process.
//!
//! ```
//! use serde_json::json;
//! use wharf_embedded::Embedded;
//! use wharf_sdk::{Cx, Fault, Scope, Tool};
//!
//! const DOUBLE: Tool<u32, u32, String> = Tool::new("double", "Twice as much.");
//!
//! async fn double(n: u32, cx: Cx<String>) -> Result<u32, Fault> {
//!     cx.progress("thinking".to_owned()).await;
//!     Ok(2 * n)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let root = Scope::root();
//! root.provide(&DOUBLE, double)?;
//! let core = Embedded::in_memory().await?;
//! core.offer("math", &root).await?;
//! // With types, as any other call: it can be awaited, listened to and dropped.
//! let mut call = core.call(&DOUBLE, "math", 21);
//! assert_eq!(call.progress().await.as_deref(), Some("thinking"));
//! assert_eq!(call.await?, 42);
//! // Or as a run, with JSON.
//! assert_eq!(core.run("math/double", 4).await?, json!(8));
//! core.close().await?;
//! # Ok(()) }
//! ```
//!
//! What a tool asks, with [`Cx::ask`](wharf_sdk::Cx::ask), waits in the
//! [inbox](Embedded::inbox) until the program [answers](Embedded::answer); what it tells is in the
//! run's log; a completion is a run of the model tool that was [set](Options::model_tool).
//!
//! - A run is written down before anything of it can be seen, and ends exactly once.
//! - [`Embedded::open`] keeps runs in a folder. After a crash, runs that were queued go on; one
//!   whose tool was at work is tried again if the tool has no
//!   [side effects](wharf_sdk::Tool::side_effects), and else failed with
//!   `details.executed` = `maybe`.
//! - A folder belongs to one program at a time.
//! - Runs have no files here, and there are no agents, tool servers or operators.

#![warn(missing_docs, missing_debug_implementations)]

mod ask;
mod core;
mod desk;
mod follow;
mod home;
mod outside;
mod run;
mod translate;
mod watch;

pub use crate::ask::Ask;
pub use crate::core::{Embedded, Options};
pub use crate::outside::CoreTransport;
pub use crate::run::{Request, Run};
pub use crate::watch::{Event, Watch, What};
pub use wharf_vocab::{AskId, AskKind, Code, Fault, RunId, RunKey, RunStatus, ToolId, WorldId};
