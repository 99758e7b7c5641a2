//! A hostile agent.

mod bombs;
mod fence;
mod journal;
