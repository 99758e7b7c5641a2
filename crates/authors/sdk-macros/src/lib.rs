//! The `#[tool]` attribute of `wharf-sdk`, which re-exports it.
//!
//! It is sugar: everything that it writes can be written by hand in two lines.

mod arguments;
mod function;
mod tool;

use proc_macro::TokenStream;

/// Makes a tool of an async function: a constant definition with the function as its own
/// implementation.
///
/// The constant is called like the function, in capitals. The tool is called like the function,
/// too, with dashes for underscores, unless `name = "…"` says otherwise. Its description is the
/// doc comment, unless `description = "…"` says otherwise. `side_effects = false`,
/// `requires_directive = true` and `durable = true` say what the methods of the definition of these
/// names say.
///
/// The function takes the input, by value, and may take the `Cx` of the call. It gives a
/// `Result<Output, Fault>`. A function without an input is a tool that takes `()`.
///
/// ```text
/// /// Searches for flights.
/// #[tool(name = "search")]
/// async fn search(trip: Trip, cx: Cx<Status>) -> Result<Vec<Flight>, Fault> { … }
///
/// // SEARCH: Tool<Trip, Vec<Flight>, Status, Implemented>
/// let flights = SEARCH.call(&scope, trip).await?;
/// ```
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(arguments.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
