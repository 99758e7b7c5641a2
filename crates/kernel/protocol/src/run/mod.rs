//! The run protocol: a connection carries one run, and a run may outlive its connections.

pub mod client;
pub mod server;
