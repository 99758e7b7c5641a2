//! Serve tools as an agent: a process that the core starts.
//!
//! Everything but the tools is done here: connecting, the handshake, schemas, validation, streams,
//! cancellation, heartbeats, one result for each call, an orderly end.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use wharf_sdk::{AgentProcess, Cx, Fault, JsonSchema, tool};
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Greet {
//!     name: String,
//! }
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Greeting {
//!     text: String,
//! }
//!
//! /// Greets somebody.
//! #[tool(side_effects = false)]
//! async fn greet(input: Greet, cx: Cx) -> Result<Greeting, Fault> {
//!     cx.status("thinking of something nice", 0.5).await?;
//!     Ok(Greeting { text: format!("Hello, {}!", input.name) })
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     AgentProcess::new("dev.example.greeter", env!("CARGO_PKG_VERSION")).own(&GREET).run()
//! }
//! ```
//!
//! Beside this crate an agent needs `serde` and `schemars`, whose derive macros name them.
//!
//! Invariants:
//! - The connection has a thread of its own; tools run on others. A tool that blocks delays
//!   neither heartbeats nor cancels.
//! - A handler runs only with input that fits its schema, and every call gets exactly one result,
//!   also when the handler panics.
//! - Nothing an agent is sent, its token least of all, is printed or logged here.
//! - A process that [`AgentProcess::run`] serves can be neither traced nor dumped by others of its user,
//!   since its environment holds the token.
//! - There is no way back after a lost or refused connection: the process ends, and the core
//!   decides whether to start it again.

mod address;
mod agent;
mod calls;
mod connection;
mod endpoint;
mod files;
mod host;

pub use agent::{AgentProcess, CheckedAgent};
pub use endpoint::Endpoint;

#[cfg(test)]
mod tests {
    #[test]
    fn the_manual_shows_the_agent_that_is_compiled_here() {
        let manual = include_str!("../../../../../docs/agents.md");
        let (_, rest) = include_str!("mod.rs").split_once("```no_run\n").expect("an example");
        let (example, _) = rest.split_once("//! ```").expect("its end");
        let lines =
            example.lines().map(|line| line.trim_start_matches("//!").trim_start_matches(' '));
        for line in lines {
            assert!(manual.contains(line), "{line}");
        }
    }
}
