//! Tool servers as real processes: a real engine, real sockets, a server in Python that does what
//! a test tells it.
//!
//! The number in a test's name is the requirement of the run protocol that it proves.

mod elsewhere;
mod files;
mod launcher;
mod life;
mod secrets;
mod stage;
mod trust;
