//~ a tool gives a `Result<Output, Fault>`
use wharf_sdk::tool;

/// Twice as much.
#[tool]
async fn double(n: u32) -> u32 {
    2 * n
}
