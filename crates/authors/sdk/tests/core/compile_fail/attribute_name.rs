//~ a tool's name is 1 to 128 letters, digits, dots, dashes and underscores
//~ this name is taken: questions, messages or models are called so
//~ `#[tool]` knows `name = "…"`, `description = "…"`, `side_effects = …`, `requires_directive = …`, `durable = …` and `sdk = "…"`
use wharf_sdk::{Fault, tool};

/// Twice as much.
#[tool(name = "twice as much")]
async fn double(n: u32) -> Result<u32, Fault> {
    Ok(2 * n)
}

/// A sample.
#[tool]
async fn sample(n: u32) -> Result<u32, Fault> {
    Ok(n)
}

/// Half as much.
#[tool(title = "Half")]
async fn half(n: u32) -> Result<u32, Fault> {
    Ok(n / 2)
}
