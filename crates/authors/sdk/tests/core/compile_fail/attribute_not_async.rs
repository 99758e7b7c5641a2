//~ a tool is an async function: write `async fn`
use wharf_sdk::{Fault, tool};

/// Twice as much.
#[tool]
fn double(n: u32) -> Result<u32, Fault> {
    Ok(2 * n)
}
