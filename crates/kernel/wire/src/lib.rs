//! The message types of every protocol Wharf speaks: shapes and names, nothing else.
//!
//! Wire types never meet domain types in this crate; each edge translates in its own
//! `from_wire.rs` and `to_wire.rs`.

pub mod agent_v1;
pub mod operator_v1;
pub mod rest_v1;
pub mod run_v1;
pub mod tool_v1;
pub mod ws;
