//! Sessions of the run protocol, driven by hand: one end against a script, or both ends against
//! each other.
//!
//! The number in a test's name is the requirement of the run protocol that it proves.

mod client;
mod server;
