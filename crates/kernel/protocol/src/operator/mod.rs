//! The operator protocol, seen from the core: one connection of a seat.
//!
//! The session judges frames and matches replies to requests; what a reply means and whether it
//! is taken is its owner's decision. Requests live longer than connections: the owner sends those
//! that are still open again on the next one.

mod session;
#[cfg(test)]
mod tests;

pub use session::{SeatEvent, SeatLimits, SeatSession};
