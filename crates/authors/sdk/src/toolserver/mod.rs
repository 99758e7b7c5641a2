//! Serve a tool as a tool server, in ten lines of Rust.
//!
//! A tool server executes runs of one tool, `ns/name@1`, over the run protocol. Everything but the
//! tool is done here: listening, connections that come back, fetching what inputs refer to,
//! writing outputs, cost, cancellation, and an orderly end.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use wharf_sdk::toolserver::ToolServer;
//! use wharf_sdk::{Cx, Fault, JsonSchema, tool};
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Input { text: String }
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Output { words: usize }
//!
//! /// Counts words.
//! #[tool]
//! async fn words(input: Input, cx: Cx) -> Result<Output, Fault> {
//!     cx.cost(25);
//!     Ok(Output { words: input.text.split_whitespace().count() })
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     ToolServer::own("demo/words@1", &WORDS).run()
//! }
//! ```
//!
//! Invariants:
//! - A handler runs only with inputs that are there and fit its schema.
//! - Handlers have threads of their own: one that blocks delays no connection.
//! - A handler that panics fails its own run and no other.

mod arguments;
pub mod cost;
mod host;
mod hydrate;
mod server;

pub use server::ToolServer;
pub use wharf_toolserver::server::{Listen, Options};
pub use wharf_toolserver::transfer::Policy;
