//! Calls that leave the process: one suite over every transport, peers that keep the rules in
//! their own way, and tools that are served to a core.

mod carrier;
mod child;
mod keeping;
mod limits;
mod lost;
mod many;
mod peer;
mod plain;
mod race;
mod shutdown;
mod sockets;
mod sse;
mod suite;
mod tools;
