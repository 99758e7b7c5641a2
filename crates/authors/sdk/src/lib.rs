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

/// Shows these fields of a type; the others hold code, secrets or the data of calls.
macro_rules! debug_only {
    ($name:ident $(<$($of:ident),+>)?: $($field:ident),*) => {
        impl $(<$($of),+>)? std::fmt::Debug for $name $(<$($of),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                $(shown.field(stringify!($field), &self.$field);)*
                shown.finish_non_exhaustive()
            }
        }
    };
}

mod active;
mod agent;
pub mod builtin;
mod calls;
mod cx;
mod error;
pub mod host;
pub mod layers;
pub mod operative;
pub mod process;
mod schema;
#[cfg(feature = "toolserver")]
pub mod toolserver;
pub mod transport;
pub mod trial;

pub use active::Active;
pub use agent::{Activation, Agent};
pub use builtin::Answer;
pub use calls::any_layer::{AnyLayer, Around};
pub use calls::call::Call;
pub use calls::exposed::{Definition, ErasedTool};
pub use calls::layer::{Lane, Layer, LayerFn, Next};
pub use calls::scope::{Place, Scope, Within};
pub use calls::tool::{
    Data, Function, Implemented, Named, Open, TakesImplementation, Terms, Tool, ToolFn, boxed,
};
pub use cx::{CallBuilder, Cx, Each, RunningCall, directive_required};
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

/// Calling the tools of a core.
#[cfg(feature = "ws")]
pub mod principal {
    use crate::Error;
    use crate::transport::{Address, Link, Options, ws};

    /// Connects to a core to call its tools in a world, and to ask, tell and sample there.
    ///
    /// A tool goes by the id that its definition [says](crate::Tool::at) or, if no other tool has it, by
    /// its name; [`Link::named`] gives another name that is known only when the program runs. What was
    /// begun is called off when the connection ends.
    ///
    /// ```no_run
    /// use wharf_sdk::{Scope, Tool, principal};
    ///
    /// const GET_LOCATION: Tool<(), String> =
    ///     Tool::new("get-location", "Where the user is.").at("browser/get-location");
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let token = std::env::var("TOKEN")?;
    /// let core = principal::connect("http://localhost:4200", Some(&token), "default").await?;
    /// let scope = Scope::root().with_transport(core);
    /// println!("{}", GET_LOCATION.call(&scope, ()).await?);
    /// # Ok(()) }
    /// ```
    pub async fn connect(core: &str, token: Option<&str>, world: &str) -> Result<Link, Error> {
        let options = Options { token: token.map(str::to_owned), ..Options::default() };
        connect_with(core, world, &options).await
    }

    /// The same with choices about the connection.
    pub async fn connect_with(core: &str, world: &str, options: &Options) -> Result<Link, Error> {
        let address = Address::parse(core)?.at("/v1/tool/ws");
        let address = address.with("role", "principal").with("world", world);
        Ok(ws::connect_to(&address, options).await?.of_core())
    }
}

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
