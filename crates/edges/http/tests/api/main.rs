//! The API over real sockets, with the memory store behind it.

mod agent_logs;
mod agents;
mod asks;
mod canary;
mod document;
mod events;
mod limits;
mod lists;
mod refusals;
mod runs;
mod stop;
mod support;
