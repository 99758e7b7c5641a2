//! The engine as a user of its handle meets it, with the built-in tools on a store in memory.

mod approvals;
mod authority;
mod bounds;
mod closed;
mod collect;
mod costs;
mod doubt;
mod family;
mod gate;
mod life;
mod many;
mod money;
mod outputs;
mod peer;
mod proposals;
mod references;
mod restart;
mod secrets;
mod staged;
mod stored;
mod support;
mod trouble;
mod world_files;
mod worlds;
