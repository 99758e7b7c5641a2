//! The core's end of the run protocol: a real engine, real sockets, and a server that does what a
//! test tells it.
//!
//! The number in a test's name is the requirement of the run protocol that it proves.

mod attach;
mod bounds;
mod cancel;
mod endings;
mod files;
mod peers;
mod reach;
mod restart;
mod secrets;
mod stage;
mod steps;
mod stream;
mod troupe;
