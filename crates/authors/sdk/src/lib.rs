//! Write typed tools with middleware, and call them in this process, across a socket or through
//! the core, without changing them.
//!
//! - A [`Tool`] is a definition: a name, a description and types. [`#[tool]`](macro@tool) makes one of
//!   an async function.
//! - A [`Scope`] says who executes it: an implementation, or a [`transport`] to somebody elsewhere.
//!   Scopes form a tree, and what was begun in one ends with it.
//! - A [`Layer`] stands around calls; there are [ready-made ones](layers).
//! - An [`Agent`] groups tools with a configuration that they share.
//! - [`builtin`] tools ask, tell, and have a model complete texts.
//! - There are four ways to serve tools to others: as an [`AgentProcess`], as a tool server
//!   (`toolserver::ToolServer`), as an [`operative`], or by a core in the same program (the crate
//!   `wharf-embedded`). They are the same tools in all of them; see [`host`].
//!
//! ```
//! use wharf_sdk::layers::Timeout;
//! use wharf_sdk::{Fault, Scope, tool};
//!
//! /// Says hello.
//! #[tool]
//! async fn greet(name: String) -> Result<String, Fault> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Fault> {
//! let scope = Scope::root();
//! scope.around_all(Timeout::after_secs(5));
//! scope.around(&GREET, |name, next| async move { next.run(name.to_uppercase()).await });
//! assert_eq!(GREET.call(&scope, "Ada".to_owned()).await?, "Hello, ADA!");
//! scope.close().await;
//! # Ok(()) }
//! ```

#![warn(missing_docs, missing_debug_implementations)]

mod active;
mod agent;
pub mod builtin;
mod calls;
mod cx;
mod error;
pub mod host;
pub mod layers;
pub mod operative;
#[cfg(feature = "ws")]
pub mod principal;
pub mod process;
mod schema;
#[cfg(feature = "toolserver")]
pub mod toolserver;
pub mod transport;

pub use active::Active;
pub use agent::{Activation, Agent};
pub use builtin::Answer;
pub use calls::any_layer::{AnyLayer, Around};
pub use calls::call::Call;
pub use calls::exposed::{Definition, ErasedTool};
pub use calls::layer::{Lane, Layer, Next};
pub use calls::scope::{Place, Scope, Within};
pub use calls::tool::{
    Data, Function, Implemented, Named, Open, TakesImplementation, Terms, Tool, boxed,
};
pub use cx::{CallBuilder, Cx, RunningCall, directive_required};
pub use error::Error;
pub use host::file::{self, File};
pub use process::AgentProcess;
pub use schemars::JsonSchema;
pub use transport::Transport;
/// ```
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::{Cx, Fault, JsonSchema, Scope, tool};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Trip { destination: String }
///
/// /// Searches for flights.
/// #[tool(name = "search")]
/// async fn search(trip: Trip, cx: Cx<String>) -> Result<Vec<String>, Fault> {
///     cx.progress("searching".to_owned()).await;
///     Ok(vec![format!("WH 7 to {}", trip.destination)])
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Fault> {
/// assert_eq!(SEARCH.description(), "Searches for flights.");
/// let trip = Trip { destination: "Oslo".to_owned() };
/// assert_eq!(SEARCH.call(&Scope::root(), trip).await?, ["WH 7 to Oslo"]);
/// # Ok(()) }
/// ```
#[cfg(feature = "macros")]
pub use wharf_sdk_macros::tool;
pub use wharf_vocab::{Code, Fault, FaultCode, Micro, Mode, Object};
pub use wharf_wire::agent_v1::{Actor, Caller, Chunk, PartyKind, TextChannel};

#[cfg(test)]
mod tests {
    /// Programs that run in tests, and that the guide quotes.
    const PROGRAMS: [&str; 6] = [
        include_str!("../examples/search.rs"),
        include_str!("../examples/get_location.rs"),
        include_str!("../examples/flight.rs"),
        include_str!("../examples/builtins.rs"),
        include_str!("../../../../examples/sdk/faces/src/flight.rs"),
        include_str!("../../../../examples/sdk/faces/src/main.rs"),
    ];

    #[test]
    fn every_line_of_code_in_the_guide_stands_in_a_program_that_runs() {
        let guide = include_str!("../../../../docs/sdk.md");
        let blocks = guide.split("```rust\n").skip(1);
        let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
        let lines: Vec<&str> = blocks.flat_map(str::lines).collect();
        assert!(lines.len() > 50, "the guide shows code");
        for line in lines {
            let known = PROGRAMS.iter().any(|program| program.lines().any(|own| own == line));
            assert!(known, "{line}");
        }
    }
}
