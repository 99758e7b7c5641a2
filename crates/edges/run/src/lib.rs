//! The edge that faces tool servers: looks after those the core launches, dials them and those
//! elsewhere, and hands them attempts over the run protocol.

mod from_wire;
pub mod link;
#[cfg_attr(not(test), expect(dead_code, reason = "the control of tool servers is not there yet"))]
mod manifest;
mod to_wire;
