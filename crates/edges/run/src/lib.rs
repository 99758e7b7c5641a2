//! The edge that faces tool servers: looks after those the core launches, dials them and those
//! elsewhere, and hands them attempts over the run protocol.

mod control;
mod doors;
mod equip;
mod folder;
pub mod link;
mod manifest;
mod options;
mod station;
mod tools;

pub use control::RunEdge;
pub use options::{Options, Storage};
