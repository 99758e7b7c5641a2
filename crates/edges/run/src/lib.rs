//! The edge that faces tool servers: looks after those the core launches, dials them and those
//! elsewhere, and hands them attempts over the run protocol.

pub mod link;
