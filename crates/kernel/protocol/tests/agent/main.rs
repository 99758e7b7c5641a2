//! Agent sessions, driven by hand: one end against a script, or both ends against each other.
//!
//! The number in a test's name is the requirement of the agent protocol that it proves.

mod additions;
mod calls;
mod cancel;
mod correlation;
mod endings;
mod envelope;
mod evolution;
mod framing;
mod fuzz;
mod golden;
mod handshake;
mod health;
mod pair;
mod register;
mod results;
mod secrecy;
mod stage;
mod steps;
mod streams;
