//~ the second argument of a tool is its `Cx`; put what it takes into one type
//~ a tool takes one input and its `Cx`
use wharf_sdk::{Cx, Fault, tool};

/// The sum.
#[tool]
async fn add(a: u32, b: u32) -> Result<u32, Fault> {
    Ok(a + b)
}

/// The sum of three.
#[tool]
async fn add_three(a: u32, b: u32, cx: Cx) -> Result<u32, Fault> {
    Ok(a + b)
}
