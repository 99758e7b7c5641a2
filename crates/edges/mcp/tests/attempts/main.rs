//! Calls of MCP servers as attempts of runs: real programs on real streams and sockets, well
//! behaved or not.
//!
//! The number in a test's name is the requirement that it proves.

mod asks;
mod cancel;
mod fixture;
mod hostile;
mod lost;
mod models;
mod peers;
mod reports;
mod restart;
mod results;

#[path = "../servers/launcher.rs"]
mod launcher;
#[path = "../servers/stage.rs"]
#[expect(dead_code, reason = "the stage is shared with tests that do other things on it")]
mod stage;
#[path = "../servers/surroundings.rs"]
#[expect(dead_code, reason = "the surroundings are shared as well")]
mod surroundings;
