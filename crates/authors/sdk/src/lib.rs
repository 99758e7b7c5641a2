//! Write typed tools with middleware, and call them in this process, across a socket or through
//! the core, without changing them.

mod name;
pub mod process;
mod schema;
#[cfg(feature = "toolserver")]
pub mod toolserver;

pub use schemars::JsonSchema;
pub use wharf_vocab::{Code, Fault, FaultCode, Micro, Mode, Object};
