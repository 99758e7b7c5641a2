//! The edge that faces agents: it lets them in, hands them attempts and speaks with them.
//!
//! Launching them and looking after their processes is [`wharf_hosting`]'s; this is the wire. One
//! task per connection owns its session. What is durable about an agent (manifest, approval, wish
//! to run, tools) lives in the engine; what is not (process, connection, health) is gone with the
//! core.

mod admit;
mod conn;
mod connect;
mod control;
mod from_wire;
mod invoke;
mod listen;
mod manifest;
mod options;
mod scan;
mod shared;
mod to_wire;
mod tokens;

pub use control::AgentEdge;
pub use options::{AgentEdgeOptions, AgentRule, Transport};
pub use wharf_protocol::agent::CoreLimits;
