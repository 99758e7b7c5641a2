//! Write a tool server in ten lines of Rust.
//!
//! A tool server executes runs of one tool, `ns/name@1`, over the run protocol. Its handler is an
//! async function from a typed input and a [`ToolCx`] to a typed output or a
//! [`Fault`](crate::Fault). Everything else is done here: listening, connections that come back,
//! fetching what inputs refer to, writing outputs, cost, cancellation, and an orderly end.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use wharf_sdk::toolserver::{ToolCx, ToolServer};
//! use wharf_sdk::{Fault, JsonSchema};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Input { text: String }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Output { words: usize }
//!
//! fn main() -> std::process::ExitCode {
//!     ToolServer::new("demo/words@1")
//!         .handler(|input: Input, cx: ToolCx| async move {
//!             cx.cost(25);
//!             Ok::<_, Fault>(Output { words: input.text.split_whitespace().count() })
//!         })
//!         .run()
//! }
//! ```
//!
//! Invariants:
//! - A handler runs only with inputs that are there and fit its schema.
//! - Handlers have threads of their own: one that blocks delays no connection.
//! - A handler that panics fails its own run and no other.

mod arguments;
pub mod cost;
mod cx;
mod error;
mod face;
mod file;
mod handler;
mod hydrate;
mod server;

pub use cx::ToolCx;
pub use error::Error;
pub use file::{Stored, ToolFile};
pub use server::ToolServer;
pub use wharf_toolserver::server::{Listen, Options};
pub use wharf_toolserver::transfer::{Policy, Reading};
pub use wharf_wire::run_v1::{LogLevel, Mode};
