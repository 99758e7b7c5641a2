//! Calls that leave the process: one suite over every transport, peers that keep the rules in
//! their own way, and tools that are served to a core.

mod carrier;
mod child;
mod lost;
mod many;
mod race;
mod shutdown;
mod suite;
mod tools;
