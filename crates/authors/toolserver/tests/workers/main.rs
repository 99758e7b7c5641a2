//! Handlers in other languages, with real interpreters and real processes.

mod apart;
mod bounds;
mod cancel;
mod contract;
mod endings;
mod exec;
mod files;
mod kit;
mod leftovers;
#[cfg(feature = "node")]
mod node;
mod start;
mod streams;
