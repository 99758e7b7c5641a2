//! The run protocol: a connection carries one run, and a run may outlive its connections.

pub mod client;
mod cost;
pub mod server;

pub use cost::{CostError, judge as judge_cost};
