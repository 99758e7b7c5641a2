//! Clients of MCP at a core on a real socket.

mod calls;
mod client;
mod declared;
mod doors;
mod joins;
mod lists;
mod loss;
mod patience;
mod questions;
mod refusals;
mod stage;
mod streams;
mod tasks;
mod tools;
