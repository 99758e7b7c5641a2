//! A tool server, over real sockets, with a small handler in this process.
//!
//! The number in a test's name is the requirement of the run protocol that it proves.

mod access;
mod admission;
mod attach;
mod drain;
mod endings;
mod first_frame;
mod handshake;
mod kit;
mod load;
mod silence;
mod steps;
mod stop;
mod streams;
mod turns;
