//! Servers of MCP as the client half meets them: real programs on real streams and sockets.

mod catalog;
mod elsewhere;
mod eras;
mod install;
mod launcher;
mod life;
mod rug;
mod stage;
mod surroundings;
