//! Built-in tools: an in-process provider that registers with the engine like every other.
//!
//! They are the quick start, the smoke test and the floor of the benchmarks. None of them acts
//! on the world.

mod notify;
mod sample;
mod tools;

use wharf_engine::Handle;
use wharf_vocab::{Fault, ToolId};

/// What can be set about the built-in tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltinOptions {
    /// The tool that completes prompts; the usual one when absent.
    pub model_tool: Option<ToolId>,
}

/// Adds the built-in tools to an engine.
pub async fn register(handle: &Handle) -> Result<(), Fault> {
    register_with(handle, BuiltinOptions::default()).await
}

/// Adds the built-in tools to an engine, as they are set.
pub async fn register_with(handle: &Handle, options: BuiltinOptions) -> Result<(), Fault> {
    tools::provider(options)?.register(handle).await
}
