//! A hostile agent.

mod bombs;
pub(crate) mod fence;
mod journal;
