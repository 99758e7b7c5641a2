//! What proves Wharf: a simulator that drives the real shards through faults.
//!
//! Nothing here is part of a running core. [`sim`] needs no clock, no threads and no files, so
//! that a seed says everything about what happens.

#[cfg(feature = "collector")]
pub mod collector;
#[cfg(feature = "scripted")]
pub mod scripted;
#[cfg(feature = "seaweed")]
pub mod seaweed;
pub mod sim;
