//! Operators and their workers over real sockets, with the memory store behind the core.

mod chain;
mod credentials;
mod frames;
mod gates;
mod seats;
mod stage;
mod tasks;
mod work;
mod worker;
