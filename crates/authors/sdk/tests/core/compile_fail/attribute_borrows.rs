//~ a tool takes its input and its `Cx` by value
use wharf_sdk::{Fault, tool};

/// How long a text is.
#[tool]
async fn length(text: &str) -> Result<usize, Fault> {
    Ok(text.len())
}
