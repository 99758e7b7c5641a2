//! Sessions of MCP, driven by hand: one end against a script, or both ends against each other.
//!
//! The number in a test's name is the requirement of MCP that it proves.

mod bridge;
mod chaos;
mod client;
mod framing;
mod fuzz;
mod opening;
mod pairs;
mod server;
mod stage;
