//~ `#[tool]` stands above an async function
use wharf_sdk::tool;

/// Twice as much.
#[tool]
pub struct Double;
