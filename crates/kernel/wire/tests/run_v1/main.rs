//! The run wire from outside: first frames, later frames, what servers send, and the examples.
//!
//! The number in a test's name is the requirement of the run protocol that it proves.

mod examples;
mod first;
mod from_server;
mod later;
