//! The edge that faces agents: it launches them, lets them in, hands them attempts and watches
//! over them.
//!
//! One supervisor per agent owns its process, one task per connection owns its session. What is
//! durable about an agent (manifest, approval, wish to run, tools) lives in the engine; what is
//! not (process, connection, health) lives here and is gone with the core.

mod admit;
mod conn;
mod control;
mod cpu;
mod fence;
mod files;
mod from_wire;
mod instance;
mod invoke;
mod json;
mod launch;
mod listen;
mod live;
mod manifest;
mod options;
mod places;
mod pool;
mod remove;
mod scan;
mod sink;
mod storage;
mod supervisor;
mod throttle;
mod to_wire;
mod tokens;
mod workdir;

pub use control::AgentEdge;
pub use options::{Options, Transport};
pub use wharf_protocol::agent::CoreLimits;
