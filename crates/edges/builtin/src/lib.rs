//! Built-in tools: an in-process provider that registers with the engine like every other.
//!
//! They are the quick start, the smoke test and the floor of the benchmarks. None of them acts
//! on the world.

mod in_process;
mod tools;

pub use in_process::{Cx, Done, InProcess};

use wharf_engine::Handle;
use wharf_vocab::Fault;

/// Adds the built-in tools to an engine.
pub async fn register(handle: &Handle) -> Result<(), Fault> {
    tools::provider()?.register(handle).await
}
