//! Spoilt messages against the sessions of every wire, after a handshake: nothing panics, nothing
//! grows, and every call ends once.

mod agent;
mod mcp;
mod operator;
mod run;
mod sse;
mod tool;
