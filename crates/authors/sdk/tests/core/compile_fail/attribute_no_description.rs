//~ a tool needs a description: write a doc comment above it
use wharf_sdk::{Fault, tool};

#[tool]
async fn double(n: u32) -> Result<u32, Fault> {
    Ok(2 * n)
}
